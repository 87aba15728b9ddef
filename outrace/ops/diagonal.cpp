#include "outrace/ops/diagonal.h"

#include <algorithm>
#include <cstdlib>

#include "outrace/graph/recorder.h"
#include "outrace/graph/scope.h"
#include "outrace/ops/creation.h"
#include "outrace/ops/elementwise.h"
#include "outrace/ops/movement.h"
#include "outrace/ops/reduce.h"

namespace outrace {
namespace {

// x [..., length] as a diagonal of zero matrices [..., rows, columns]: the elements of a diagonal lie columns + 1
// apart.
Tensor on_diagonal(At x, int64_t offset, int64_t rows, int64_t columns) {
  const Shape& s = x.tensor.shape();
  const int last = s.rank() - 1;
  SliceAttrs to;
  to.step.fill(1);
  to.start[last] = offset < 0 ? -offset * columns : offset;
  to.step[last] = columns + 1;
  const Tensor flat = pad(x, s.with(last, rows * columns), to);
  return reshape(At(flat, x.where), s.with(last, rows).inserted(last + 1, columns));
}

// The last two axes moved to places a and b.
Tensor last_two_to(At x, int a, int b) {
  std::vector<int64_t> axes;
  const int rank = x.tensor.rank();
  for (int i = 0, from = 0; i < rank; ++i) axes.push_back(i == a ? rank - 2 : i == b ? rank - 1 : from++);
  return permute(x, axes);
}

Tensor diagonal_derivative(const DerivativeArgs& d, int) {
  const auto& a = std::get<DiagonalAttrs>(d.attrs);
  const Shape& s = d.inputs[0].shape();
  if (d.g.numel() == 0) return expand(constant(0, d.g.dtype(), d.g.device()), s);
  const int first = static_cast<int>(a.axis_a), second = static_cast<int>(a.axis_b);
  return last_two_to(on_diagonal(d.g, a.offset, s[first], s[second]), first, second);
}

// x where column - row is on the wanted side of `offset`.
Tensor triangle(const char* op, At x, int64_t offset, Tensor (*keeps)(At, double)) {
  const Shape& s = x.tensor.shape();
  if (s.rank() < 2) fail(ErrorKind::shape, "[", op, "] needs at least two axes; got ", s, call_site(x.where));
  const CreateOptions integers{.dtype = DType::i64, .device = x.tensor.device()};
  const Tensor rows = reshape(arange(s.back(1), integers), Shape{s.back(1), 1});
  const Tensor kept = keeps(arange(s.back(0), integers) - rows, static_cast<double>(offset));
  return cast(select(At(kept, x.where), x, 0.0), x.tensor.dtype());
}

}  // namespace

Tensor diagonal(At x, int64_t offset, int64_t axis_a, int64_t axis_b) {
  const Shape& s = x.tensor.shape();
  const int a = normalize_axis(axis_a, s.rank(), "diagonal"), b = normalize_axis(axis_b, s.rank(), "diagonal");
  if (a == b) fail(ErrorKind::shape, "[diagonal] needs two axes; got axis ", a, " twice for ", s, call_site(x.where));
  const int64_t length =
      offset < 0 ? std::min(s[a] + std::max(offset, -s[a]), s[b]) : std::min(s[a], s[b] - std::min(offset, s[b]));
  const Shape rest = s.without(std::max(a, b)).without(std::min(a, b));
  return record(kDiagonal, {&x.tensor}, x.tensor.dtype(), rest.inserted(rest.rank(), length),
                DiagonalAttrs{offset, a, b}, x.where);
}

Tensor diag_embed(At x, int64_t offset, int64_t axis_a, int64_t axis_b) {
  const Shape& s = x.tensor.shape();
  if (s.rank() == 0) fail(ErrorKind::shape, "[diag_embed] needs an axis; got ", s, call_site(x.where));
  const int rank = s.rank() + 1;
  const int a = normalize_axis(axis_a, rank, "diag_embed"), b = normalize_axis(axis_b, rank, "diag_embed");
  if (a == b) fail(ErrorKind::shape, "[diag_embed] needs two axes; got axis ", a, " twice", call_site(x.where));
  if (std::abs(offset) > kMaxElements)
    fail(ErrorKind::value, "[diag_embed] the offset must be below 2^59; got ", offset, call_site(x.where));
  const int64_t n = s.back() + std::abs(offset);
  const Tensor matrices = on_diagonal(x, offset, n, n);
  return a == rank - 2 && b == rank - 1 ? matrices : last_two_to(At(matrices, x.where), a, b);
}

Tensor diag(At x, int64_t offset) {
  const int rank = x.tensor.rank();
  if (rank != 1 && rank != 2)
    fail(ErrorKind::shape, "[diag] needs a vector or a matrix; got ", x.tensor.shape(), call_site(x.where));
  return rank == 1 ? diag_embed(x, offset) : diagonal(x, offset);
}

Tensor trace(At x) {
  if (x.tensor.rank() != 2)
    fail(ErrorKind::shape, "[trace] needs a matrix; got ", x.tensor.shape(), call_site(x.where));
  return sum(At(diagonal(x), x.where));
}

Tensor tril(At x, int64_t offset) { return triangle("tril", x, offset, less_equal); }
Tensor triu(At x, int64_t offset) { return triangle("triu", x, offset, greater_equal); }

const OpDef kDiagonal(OpFacts{.name = "diagonal", .kind = OpKind::movement, .derivative = diagonal_derivative});

}  // namespace outrace
