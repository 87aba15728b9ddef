// Elements chosen by index tensors or masks, and written back. Indices are i64 or i32 and count from 0: a negative one
// or one that is too large is an Error(value) that names op, position, index and size when the call runs; nothing is
// changed by then. Positions that are named twice: additions go in order of position, of overwriting ones the highest
// position wins, for any number of threads.
#pragma once
#include "outrace/graph/tensor.h"

namespace outrace {

// y[i][j][k] = x[index[i][j][k]][j][k] for axis 0, and so on, of the index's shape (PyTorch's gather). Throws
// Error(shape) unless the ranks are equal and the index is nowhere larger than x but along `axis`.
Tensor gather(At x, int64_t axis, const Tensor& index);
// The entries of `axis` that a vector names, in its order.
Tensor index_select(At x, int64_t axis, const Tensor& index);
// The elements of x, counted row-major, that an index of any shape names.
Tensor take(At x, const Tensor& index);

// x with x[index[i][j][k]][j][k] = source[i][j][k] for axis 0, and so on: gather's counterpart. `source` has x's dtype
// and is nowhere smaller than the index. Its gradient goes to the elements that were kept.
Tensor scatter(At x, int64_t axis, const Tensor& index, const Tensor& source);
Tensor scatter(At x, int64_t axis, const Tensor& index, double value);
// The same with +=.
Tensor scatter_add(At x, int64_t axis, const Tensor& index, const Tensor& source);
// x with entry i of `source` along `axis` added to, or put over, entry index[i].
Tensor index_add(At x, int64_t axis, const Tensor& index, const Tensor& source);
Tensor index_copy(At x, int64_t axis, const Tensor& index, const Tensor& source);

// x where the mask (bool, broadcast to x) is false, `value` elsewhere.
Tensor masked_fill(At x, const Tensor& mask, double value);
// The elements of x, row-major, where the mask is true: a vector; the two broadcast. Its length depends on values: the
// mask is computed now, and a captured step cannot contain this (Error(state)).
Tensor masked_select(At x, const Tensor& mask);
// The positions of the elements that are not 0, row-major: i64 [count, rank]. Computed now, as masked_select.
Tensor nonzero(At x);
// [..., classes] with 1 at the index and 0 elsewhere.
Tensor one_hot(At index, int64_t classes, DType dtype = DType::i64);

namespace detail {
// gather and index_select with indices made here: nothing has to run before them.
Tensor gather_checked(At x, int64_t axis, const Tensor& index);
Tensor index_select_checked(At x, int axis, const Tensor& index);
}  // namespace detail

}  // namespace outrace
