#include "outrace/ops/reduce.h"

#include "outrace/graph/recorder.h"
#include "outrace/graph/scope.h"
#include "outrace/ops/elementwise.h"
#include "outrace/ops/movement.h"

namespace outrace {
namespace {

ReduceAttrs attrs_of(const char* op, const Tensor& x, const ReduceOptions& options) {
  ReduceAttrs a{0, options.keepdim};
  for (int64_t axis : options.axes) a.axes |= int64_t{1} << normalize_axis(axis, x.rank(), op);
  if (options.axes.empty()) a.axes = (int64_t{1} << x.rank()) - 1;
  return a;
}

Shape reduced(const Shape& shape, const ReduceAttrs& a) {
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

// `t`, a result of reducing x, stretched over x again.
Tensor stretch(const Tensor& t, const Tensor& x, const ReduceAttrs& a) {
  return expand(reshape(t, reduced(x.shape(), {a.axes, true})), x.shape());
}

Tensor sum_derivative(const DerivativeArgs& a, int) {
  return stretch(a.g, a.inputs[0], std::get<ReduceAttrs>(a.attrs));
}

Tensor mean_derivative(const DerivativeArgs& a, int) {
  const auto& attrs = std::get<ReduceAttrs>(a.attrs);
  const int64_t n = reduced_count(a.inputs[0].shape(), attrs);
  return stretch(a.g / static_cast<double>(n), a.inputs[0], attrs);
}

Tensor max_derivative(const DerivativeArgs& a, int) {
  const auto& attrs = std::get<ReduceAttrs>(a.attrs);
  const Tensor& x = a.inputs[0];
  const Tensor hit = cast(equal(x, stretch(a.output, x, attrs)), x.dtype());
  ReduceOptions over{{}, true};
  for (int i = 0; i < x.rank(); ++i)
    if (attrs.axes >> i & 1) over.axes.push_back(i);
  if (over.axes.empty()) return a.g;
  return hit / sum(hit, over) * stretch(a.g, x, attrs);
}

double reduce_flops(std::span<const Shape> inputs, const Shape&, const Attrs&) {
  return static_cast<double>(inputs[0].numel());
}

Tensor reduce(const OpDef& op, At x, DType result, const ReduceOptions& options) {
  const ReduceAttrs a = attrs_of(op.name, x.tensor, options);
  return record(op, {&x.tensor}, result, reduced(x.tensor.shape(), a), a, x.where);
}

}  // namespace

Tensor sum(At x, const ReduceOptions& options) {
  const DType t = x.tensor.dtype();
  if (is_float(t) || t == DType::i64) return reduce(kSum, x, t, options);
  const Tensor wide = cast(x, DType::i64);
  return reduce(kSum, At(wide, x.where), DType::i64, options);
}

Tensor mean(At x, const ReduceOptions& options) {
  if (!is_float(x.tensor.dtype()))
    fail(ErrorKind::dtype, "[mean] needs floating point; got ", name_of(x.tensor.dtype()),
         "; convert with to(DType::f32)", call_site(x.where));
  return reduce(kMean, x, x.tensor.dtype(), options);
}

Tensor max(At x, const ReduceOptions& options) {
  if (reduced_count(x.tensor.shape(), attrs_of("max", x.tensor, options)) == 0)
    fail(ErrorKind::shape, "[max] the maximum of no elements; got shape ", x.tensor.shape(), call_site(x.where));
  return reduce(kMax, x, x.tensor.dtype(), options);
}

Tensor sum_to(const Tensor& g, const Shape& shape) {
  if (!g.defined() || g.shape() == shape) return g;
  ReduceOptions over;
  const int shift = g.rank() - shape.rank();
  for (int i = 0; i < g.rank(); ++i)
    if (i < shift || (shape[i - shift] == 1 && g.shape()[i] != 1)) over.axes.push_back(i);
  const Tensor s = over.axes.empty() ? g : sum(g, over);
  return s.shape() == shape ? s : reshape(s, shape);
}

const OpDef kSum(OpFacts{.name = "sum",
                         .kind = OpKind::producer,
                         .derivative = sum_derivative,
                         .autocast = Autocast::wide,
                         .flops = reduce_flops});
const OpDef kMean(OpFacts{.name = "mean",
                          .kind = OpKind::producer,
                          .derivative = mean_derivative,
                          .autocast = Autocast::wide,
                          .flops = reduce_flops});
const OpDef kMax(OpFacts{.name = "max",
                         .kind = OpKind::producer,
                         .derivative = max_derivative,
                         .autocast = Autocast::follow,
                         .flops = reduce_flops});

}  // namespace outrace
