#include "outrace/ops/reduce_axes.h"

#include "outrace/graph/scope.h"
#include "outrace/ops/movement.h"

namespace outrace {
namespace {

// How along_one_axis permutes: kept axes, then reduced ones; empty when the reduced ones lie side by side.
struct OneAxis {
  std::vector<int64_t> order;
  Shape permuted, along;
};

OneAxis one_axis(const Shape& shape, const ReduceAttrs& a) {
  OneAxis o;
  std::vector<int64_t> kept, reduced;
  int64_t outer = 1, count = 1, inner = 1;
  bool apart = false;
  for (int i = 0; i < shape.rank(); ++i) {
    const bool is_reduced = a.axes >> i & 1;
    (is_reduced ? reduced : kept).push_back(i);
    if (shape[i] == 1) continue;
    if (is_reduced)
      apart = apart || inner != 1, count *= shape[i];
    else
      (count == 1 ? outer : inner) *= shape[i];
  }
  if (!apart) {
    o.along = Shape{outer, count, inner};
    return o;
  }
  o.order = kept;
  o.order.insert(o.order.end(), reduced.begin(), reduced.end());
  std::vector<int64_t> dims;
  for (int64_t axis : o.order) dims.push_back(shape[static_cast<int>(axis)]);
  o.permuted = Shape(std::span<const int64_t>(dims));
  o.along = Shape{outer * inner, count, 1};
  return o;
}

}  // namespace

ReduceAttrs reduce_attrs(const char* op, const Tensor& x, const ReduceOptions& options) {
  ReduceAttrs a{0, options.keepdim};
  for (int64_t axis : options.axes) a.axes |= int64_t{1} << normalize_axis(axis, x.rank(), op);
  if (options.axes.empty()) a.axes = (int64_t{1} << x.rank()) - 1;
  return a;
}

Shape reduced_shape(const Shape& shape, const ReduceAttrs& a) {
  std::array<int64_t, kMaxRank> dims{};
  int rank = 0;
  for (int i = 0; i < shape.rank(); ++i) {
    if (!(a.axes >> i & 1))
      dims[rank++] = shape[i];
    else if (a.keepdim)
      dims[rank++] = 1;
  }
  return Shape(std::span<const int64_t>(dims.data(), rank));
}

int64_t reduced_count(const Shape& shape, const ReduceAttrs& a) {
  int64_t n = 1;
  for (int i = 0; i < shape.rank(); ++i)
    if (a.axes >> i & 1) n *= shape[i];
  return n;
}

ReduceOptions keeping_dims(const Shape& shape, const ReduceAttrs& a) {
  ReduceOptions over{{}, true};
  for (int i = 0; i < shape.rank(); ++i)
    if (a.axes >> i & 1) over.axes.push_back(i);
  return over;
}

Tensor stretch(const Tensor& t, const Tensor& x, const ReduceAttrs& a) {
  return expand(reshape(t, reduced_shape(x.shape(), {a.axes, true})), x.shape());
}

Tensor along_one_axis(const Tensor& x, const ReduceAttrs& a) {
  const OneAxis o = one_axis(x.shape(), a);
  return reshape(o.order.empty() ? x : permute(x, o.order), o.along);
}

Tensor from_one_axis(const Tensor& along, const Shape& x_shape, const ReduceAttrs& a) {
  const OneAxis o = one_axis(x_shape, a);
  if (o.order.empty()) return reshape(along, x_shape);
  std::vector<int64_t> back(o.order.size());
  for (size_t i = 0; i < back.size(); ++i) back[static_cast<size_t>(o.order[i])] = static_cast<int64_t>(i);
  return permute(reshape(along, o.permuted), back);
}

void require_float(const char* op, At x) {
  if (!is_float(x.tensor.dtype()))
    fail(ErrorKind::dtype, "[", op, "] needs floating point; got ", name_of(x.tensor.dtype()),
         "; convert with to(DType::f32)", call_site(x.where));
}

}  // namespace outrace
