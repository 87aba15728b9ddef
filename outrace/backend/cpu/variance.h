// Variance along an axis.
#pragma once
#include "outrace/backend/cpu/axis.h"
#include "outrace/core/dtype.h"

namespace outrace::cpu {

// out [outer, inner] = the sum of squared distances from the mean, divided by size - correction; NaN unless that is
// positive. Each element is read from memory once: blocks go through two passes in cache and are joined in f64 (Chan,
// Golub and LeVeque 1979), pairs of equal size first. bf16 and f16 in f32. out has x's dtype, and so have the means,
// which are stored unless `means` is null.
void variance(DType dtype, const void* x, const AxisView& view, int64_t correction, void* out, void* means = nullptr);

}  // namespace outrace::cpu
