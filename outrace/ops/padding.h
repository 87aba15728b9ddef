// Padding as users write it.
#pragma once
#include <vector>

#include "outrace/graph/tensor.h"

namespace outrace {

// constant: a value; reflect: the entries mirrored at the edge, which is not repeated (c b [a b c]); replicate: the
// edge again and again; circular: the entries of the other end.
enum class PadMode : uint8_t { constant, reflect, replicate, circular };

// `pads` holds {before, after} pairs from the last axis on, as PyTorch's F.pad: {1, 2} pads the last axis, {1, 2, 3, 4}
// the last two. Negative pads crop the padded array. Throws Error(value) when an axis would get a negative size, or
// when a reflect pad is not below, or a circular pad above, the size of its axis; Error(shape) for more pairs than
// axes.
Tensor pad(At x, const std::vector<int64_t>& pads, PadMode mode, double value = 0);
Tensor pad_constant(At x, const std::vector<int64_t>& pads, double value = 0);

}  // namespace outrace
