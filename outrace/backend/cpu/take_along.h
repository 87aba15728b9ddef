// Elements picked along an axis by positions, and added back.
#pragma once
#include "outrace/backend/cpu/axis.h"
#include "outrace/core/dtype.h"

namespace outrace::cpu {

// out[o, j, i] = x[o, index[o, j, i], i]. `view` is x's; index and out are [outer, count, inner]. Throws Error(value)
// for a position outside the axis; what is written then is undefined.
void take_along(DType dtype, const void* x, const AxisView& view, const int64_t* index, int64_t count, void* out);

// out = 0, then out[o, index[o, j, i], i] += x[o, j, i], in the order of j. `view` is out's. f32, f64 and integers.
void put_along(DType dtype, const void* x, const AxisView& view, const int64_t* index, int64_t count, void* out);

}  // namespace outrace::cpu
