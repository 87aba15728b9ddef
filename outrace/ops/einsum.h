// Products of several arrays named by axes. Contractions become matrix products, so they cost no copies that these do
// not; products that sum over nothing are elementwise and fuse.
#pragma once
#include <string_view>
#include <vector>

#include "outrace/graph/tensor.h"

namespace outrace {

// "bij,bjk->bik": a letter an axis, axes of one letter are of one size (or 1, which is repeated). Letters that the
// result does not name are summed over; one that an operand names twice means its diagonal. "..." stands for the axes
// not named, which broadcast. Without "->" the result has "..." and the letters named once, in alphabetical order.
// Blanks count for nothing. More than two operands are combined pair by pair, the cheapest product first. Throws
// Error(value) that shows the place in the equation, Error(shape) for sizes that differ.
Tensor einsum(std::string_view equation, const std::vector<Tensor>& operands,
              std::source_location where = std::source_location::current());

// The sum over axes_a of a and axes_b of b, taken in pairs; the result has a's other axes, then b's. With a number: the
// last `axes` of a and the first of b.
Tensor tensordot(At a, const Tensor& b, const std::vector<int64_t>& axes_a, const std::vector<int64_t>& axes_b);
Tensor tensordot(At a, const Tensor& b, int64_t axes = 2);

Tensor outer(At x, const Tensor& z);  // vectors [m] and [n] -> [m, n]
Tensor dot(At x, const Tensor& z);    // vectors of one length -> one number
// The sum of x * z along `axis`; the other axes broadcast.
Tensor vecdot(At x, const Tensor& z, int64_t axis = -1);
// The Kronecker product: each element of x times the whole of z, [a0 * b0, a1 * b1, ...]; at most four axes.
Tensor kron(At x, const Tensor& z);

}  // namespace outrace
