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
Tensor squeeze(At x);  // without every axis of size 1
// Axis `axis` split into several; one size may be -1. Throws Error(shape) unless they multiply to the axis's size.
Tensor unflatten(At x, int64_t axis, const std::vector<int64_t>& sizes);
// Axis `from` moved to position `to`, the others in their order.
Tensor movedim(At x, int64_t from, int64_t to);
inline Tensor swapaxes(At x, int64_t a, int64_t b) { return transpose(x, a, b); }
inline Tensor broadcast_to(At x, const Shape& shape) { return expand(x, shape); }
// Every op reads through strides: there is nothing to do.
inline Tensor contiguous(At x) { return x.tensor; }

// Elements start, start + step, ... below stop along `axis`. Negative positions count from the end; step > 0.
Tensor slice(At x, int64_t axis, int64_t start, int64_t stop, int64_t step = 1);
// `length` entries from `start` on. Throws Error(value) if they do not all exist.
Tensor narrow(At x, int64_t axis, int64_t start, int64_t length);
// Entry `position` of `axis`, without that axis. Throws Error(value) when there is none; -1 is the last.
Tensor select(At x, int64_t axis, int64_t position);
// The entries of these axes in reverse order; no axes: of all.
Tensor flip(At x, std::initializer_list<int64_t> axes = {});
// Windows of `size` entries, one every `step` of them, along `axis`: [..., (n - size) / step + 1, ..., size]. Windows
// may overlap; the gradient adds up where they do. A view: im2col without a copy.
Tensor unfold(At x, int64_t axis, int64_t size, int64_t step = 1);
// unfold's derivative: windows [..., count, ..., size] added into zeros of `shape`, in order of the windows.
Tensor fold(At windows, const Shape& shape, int64_t axis, int64_t step);
// A copy on another device.
Tensor to_device(At x, Device device);

// slice's derivative: x's elements at start + i * step of a tensor of shape `shape` that is where_to.fill elsewhere.
Tensor pad(At x, const Shape& shape, const SliceAttrs& where_to);

}  // namespace outrace
