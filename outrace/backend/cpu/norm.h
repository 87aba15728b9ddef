// Layer norm (Ba, Kiros and Hinton, 2016) and RMS norm (Zhang and Sennrich, NeurIPS 2019) over the last axis of a
// row-major [rows, columns], and their derivatives. f32, f64, and bf16 or f16 computed in f32. Bits depend on the
// shape, the type and the instruction set only.
#pragma once
#include <cstdint>

#include "outrace/core/dtype.h"

namespace outrace::cpu {

struct NormCall {
  DType dtype = DType::f32;  // of everything
  int64_t rows = 0, columns = 0;
  double eps = 1e-5;
  bool centered = true;  // layer norm: the mean is subtracted; else RMS norm
};

// y = (x - mean) / sqrt(variance + eps) * weight + bias, row by row; weight and bias are [columns] or null.
void norm(const NormCall& call, const void* x, const void* weight, const void* bias, void* y);
// dx for the upstream gradient g [rows, columns].
void norm_backward(const NormCall& call, const void* x, const void* weight, const void* g, void* dx);
// out [2, columns]: the gradients of weight and bias.
void norm_weight_grad(const NormCall& call, const void* x, const void* g, void* out);

}  // namespace outrace::cpu
