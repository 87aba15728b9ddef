// Diagonals of matrices and what lies on either side of them. Diagonal k runs from row max(-k, 0), column max(k, 0):
// k > 0 lies above the main one.
#pragma once
#include "outrace/graph/tensor.h"

namespace outrace {

// The elements (i, i + offset) of axes (a, b), as the last axis: [..., length]. A view.
Tensor diagonal(At x, int64_t offset = 0, int64_t axis_a = 0, int64_t axis_b = 1);
// [..., n] as diagonal `offset` of zero matrices, which take the places of axes a and b of the result.
Tensor diag_embed(At x, int64_t offset = 0, int64_t axis_a = -2, int64_t axis_b = -1);
// A vector as a diagonal, the diagonal of a matrix. Throws Error(shape) for another number of axes.
Tensor diag(At x, int64_t offset = 0);
Tensor trace(At x);  // the sum of a matrix's main diagonal

// The last two axes with 0 above (tril) or below (triu) diagonal `offset`.
Tensor tril(At x, int64_t offset = 0);
Tensor triu(At x, int64_t offset = 0);

}  // namespace outrace
