// Ops that move or view elements without arithmetic. Of a computed tensor, reshapes and slices along the first axis
// share its memory.
#pragma once
#include "outrace/graph/tensor.h"

namespace outrace {

// The same elements in row-major order under another shape; one size may be -1 (what is left).
Tensor reshape(At x, const Shape& shape);
Tensor reshape(At x, std::initializer_list<int64_t> dims);
// Joins the axes from first_axis to last_axis.
Tensor flatten(At x, int64_t first_axis = 0, int64_t last_axis = -1);
// Axis i of the result is axis axes[i] of x.
Tensor permute(At x, std::span<const int64_t> axes);
Tensor transpose(At x, int64_t a, int64_t b);
// Repeats axes of size 1, adds leading axes.
Tensor expand(At x, const Shape& shape);
Tensor unsqueeze(At x, int64_t axis);
Tensor squeeze(At x, int64_t axis);
// Elements start, start + step, ... below stop along `axis`. Negative positions count from the end; step > 0.
Tensor slice(At x, int64_t axis, int64_t start, int64_t stop, int64_t step = 1);
// A copy on another device.
Tensor to_device(At x, Device device);

// slice's derivative: x's elements at start + i * step of a zero tensor of shape `shape`.
Tensor pad(At x, const Shape& shape, const SliceAttrs& where_to);

}  // namespace outrace
