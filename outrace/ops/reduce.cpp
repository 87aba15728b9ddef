#include "outrace/ops/reduce.h"

#include "outrace/graph/recorder.h"
#include "outrace/graph/scope.h"
#include "outrace/ops/elementwise.h"
#include "outrace/ops/movement.h"
#include "outrace/ops/reduce_axes.h"
#include "outrace/ops/scan.h"

namespace outrace {
namespace {

Tensor sum_derivative(const DerivativeArgs& a, int) {
  return stretch(a.g, a.inputs[0], std::get<ReduceAttrs>(a.attrs));
}

Tensor mean_derivative(const DerivativeArgs& a, int) {
  const auto& attrs = std::get<ReduceAttrs>(a.attrs);
  const int64_t n = reduced_count(a.inputs[0].shape(), attrs);
  return stretch(a.g / static_cast<double>(n), a.inputs[0], attrs);
}

// Of max and min.
Tensor extreme_derivative(const DerivativeArgs& a, int) {
  const auto& attrs = std::get<ReduceAttrs>(a.attrs);
  const Tensor& x = a.inputs[0];
  if (attrs.axes == 0) return a.g;
  // 16-bit floats do not count far enough.
  const DType wide = x.dtype() == DType::f64 ? DType::f64 : DType::f32;
  const Tensor hit = cast(equal(x, stretch(a.output, x, attrs)), wide);
  const Tensor share = hit / sum(hit, keeping_dims(x.shape(), attrs));
  return cast(share * stretch(cast(a.g, wide), x, attrs), x.dtype());
}

// An element's gradient is the product of those before it and those after it.
Tensor prod_derivative(const DerivativeArgs& a, int) {
  const auto& attrs = std::get<ReduceAttrs>(a.attrs);
  const Tensor& x = a.inputs[0];
  const Tensor along = along_one_axis(x, attrs);
  const Tensor others =
      cumprod(along, 1, {.exclusive = true}) * cumprod(along, 1, {.reverse = true, .exclusive = true});
  return from_one_axis(others, x.shape(), attrs) * stretch(a.g, x, attrs);
}

double reduce_flops(std::span<const Shape> inputs, const Shape&, const Attrs&) {
  return static_cast<double>(inputs[0].numel());
}

Tensor reduce(const OpDef& op, At x, DType result, const ReduceOptions& options) {
  const ReduceAttrs a = reduce_attrs(op.name, x.tensor, options);
  return record(op, {&x.tensor}, result, reduced_shape(x.tensor.shape(), a), a, x.where);
}

// Sums and products of integers are formed and stored in i64.
Tensor accumulate(const OpDef& op, At x, const ReduceOptions& options) {
  const DType t = x.tensor.dtype();
  if (is_float(t) || t == DType::i64) return reduce(op, x, t, options);
  const Tensor wide = cast(x, DType::i64);
  return reduce(op, At(wide, x.where), DType::i64, options);
}

Tensor extreme(const OpDef& op, const char* name, At x, const ReduceOptions& options) {
  if (reduced_count(x.tensor.shape(), reduce_attrs(op.name, x.tensor, options)) == 0)
    fail(ErrorKind::shape, "[", op.name, "] the ", name, " of no elements; got shape ", x.tensor.shape(),
         call_site(x.where));
  return reduce(op, x, x.tensor.dtype(), options);
}

// Whether the extreme of 0 (x is 0) and 1 is 1, in x's compute type, so that the comparison is the reduction's
// prologue.
Tensor extreme_truth(const OpDef& op, bool of_nothing, At at, const ReduceOptions& options) {
  const Tensor& x = at.tensor;
  const ReduceAttrs a = reduce_attrs(of_nothing ? "all" : "any", x, options);
  if (reduced_count(x.shape(), a) == 0)
    return expand(constant(of_nothing, DType::boolean, x.device()), reduced_shape(x.shape(), a));
  const DType t = x.dtype() == DType::f64 ? DType::f64 : is_float(x.dtype()) ? DType::f32 : DType::i64;
  const Tensor truth = select(not_equal(x, 0.0), constant(1, t, x.device()), 0.0);
  return not_equal(reduce(op, At(truth, at.where), t, options), 0.0);
}

}  // namespace

Tensor sum(At x, const ReduceOptions& options) { return accumulate(kSum, x, options); }
Tensor prod(At x, const ReduceOptions& options) { return accumulate(kProd, x, options); }

Tensor mean(At x, const ReduceOptions& options) {
  require_float("mean", x);
  return reduce(kMean, x, x.tensor.dtype(), options);
}

Tensor max(At x, const ReduceOptions& options) { return extreme(kMax, "maximum", x, options); }
Tensor min(At x, const ReduceOptions& options) { return extreme(kMin, "minimum", x, options); }
Tensor any(At x, const ReduceOptions& options) { return extreme_truth(kMax, false, x, options); }
Tensor all(At x, const ReduceOptions& options) { return extreme_truth(kMin, true, x, options); }

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
                         .derivative = extreme_derivative,
                         .autocast = Autocast::follow,
                         .flops = reduce_flops});
const OpDef kMin(OpFacts{.name = "min",
                         .kind = OpKind::producer,
                         .derivative = extreme_derivative,
                         .autocast = Autocast::follow,
                         .flops = reduce_flops});
const OpDef kProd(OpFacts{.name = "prod",
                          .kind = OpKind::producer,
                          .derivative = prod_derivative,
                          .autocast = Autocast::wide,
                          .flops = reduce_flops});

}  // namespace outrace
