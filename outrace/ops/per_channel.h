// What normalizations per channel share. Used by group_norm and batch_norm only.
#pragma once
#include "outrace/graph/tensor.h"

namespace outrace {

// [C] as [1, C, 1, ...], to stand beside x [N, C, ...].
Tensor per_channel(const Tensor& t, const Tensor& x);
// y * weight + bias per channel, each where defined.
Tensor scaled_per_channel(Tensor y, const Tensor& weight, const Tensor& bias);
// Throws Error naming `op` unless x is floating point [N, C, ...] and each defined tensor [C].
void check_channels(const char* op, const Tensor& x, std::initializer_list<const Tensor*> each,
                    std::source_location where);

}  // namespace outrace
