// The sums that batch norm's derivative needs.
#pragma once
#include "outrace/core/dtype.h"

namespace outrace::cpu {

// g, x: [rows, columns]; mean: [columns]; out: [2, columns], the sums over the rows of g and of g * (x - mean). Blocks
// of rows are summed in the type of the arithmetic and joined in f64, in an order fixed by the sizes. bf16, f16 in f32.
void batch_norm_sums(DType dtype, int64_t rows, int64_t columns, const void* g, const void* x, const void* mean,
                     void* out);

// The SIMD loop over one block: sums of `rows` rows of g and of g * (x - mean) for `width` columns.
template <class T>
struct BatchSumKernels {
  void (*block)(const T* g, const T* x, int64_t stride, int64_t rows, int64_t width, const T* mean, T* sums,
                T* products);
};
template <class T>
const BatchSumKernels<T>& batch_sum_kernels();

}  // namespace outrace::cpu
