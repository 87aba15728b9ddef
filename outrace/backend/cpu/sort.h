// The order of rows' elements. NaN counts as the largest number, -0 equals 0, equal elements keep their order.
#pragma once
#include <cstdint>

#include "outrace/core/dtype.h"
#include "outrace/ops/attrs.h"

namespace outrace::cpu {

// out [rows, size]: positions within the row, in order.
void argsort(DType dtype, bool descending, const void* x, int64_t rows, int64_t size, int64_t* out);

// out [rows, k], for only_kth [rows]: positions of the first k in order. 0 <= k <= size, for only_kth 1 <= k.
void top_k(DType dtype, const TopKAttrs& attrs, const void* x, int64_t rows, int64_t size, int64_t* out);

}  // namespace outrace::cpu
