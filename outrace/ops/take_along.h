// Elements picked along one axis by an array of positions, and the inverse.
#pragma once
#include "outrace/graph/tensor.h"

namespace outrace {

// y[.., j, ..] = x[.., index[.., j, ..], ..]: `index` (i64 or i32) has x's shape but for the axis. Error(value), when
// it is computed, for a position outside 0 .. size - 1.
Tensor take_along(At x, const Tensor& index, int64_t axis);

// take_along's derivative: zeros with `size` entries along the axis, to which x's elements are added at their
// positions, in order. 16-bit floats are added up in f32.
Tensor put_along(At x, const Tensor& index, int64_t axis, int64_t size);

}  // namespace outrace
