#include "outrace/ops/statistics.h"

#include <cmath>
#include <limits>

#include "outrace/graph/recorder.h"
#include "outrace/graph/scope.h"
#include "outrace/ops/elementwise.h"
#include "outrace/ops/movement.h"
#include "outrace/ops/op_def.h"
#include "outrace/ops/reduce_axes.h"

namespace outrace {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

Tensor variance_derivative(const DerivativeArgs& a, int) {
  const auto& attrs = std::get<VarianceAttrs>(a.attrs);
  const Tensor& x = a.inputs[0];
  const int axis = static_cast<int>(attrs.axis);
  const double free = static_cast<double>(x.shape()[axis] - attrs.correction);
  const Tensor scale = unsqueeze(a.g, axis) * (free > 0 ? 2 / free : kNaN);
  return scale * (x - mean(x, {{axis}, true}));
}

Tensor variance_in_ops(std::span<const Tensor> in, const Attrs& attrs) {
  const auto& a = std::get<VarianceAttrs>(attrs);
  const Tensor& x = in[0];
  const int64_t free = x.shape()[static_cast<int>(a.axis)] - a.correction;
  const Tensor squares = sum(square(x - mean(x, {{a.axis}, true})), {{a.axis}});
  return free > 0 ? squares / static_cast<double>(free) : squares * kNaN;
}

double variance_flops(std::span<const Shape> inputs, const Shape&, const Attrs&) {
  return 4.0 * static_cast<double>(inputs[0].numel());
}

DType wide_type(const Tensor& x) { return x.dtype() == DType::f64 ? DType::f64 : DType::f32; }

// The root, whose derivative at 0 is 0.
Tensor flat_root(const Tensor& x) {
  const Tensor some = not_equal(x, 0.0);
  return select(some, sqrt(select(some, x, 1.0)), 0.0);
}

// (sum |x|^p)^(1/p) as m * (sum (|x| / m)^p)^(1/p), m being the largest |x| (for p < 0 the smallest). As the value does
// not depend on m, nothing is lost by taking m for a constant.
Tensor power_norm(const Tensor& x, double p, const ReduceOptions& options) {
  const ReduceAttrs a = reduce_attrs("norm", x, options);
  const Shape shape = reduced_shape(x.shape(), a);
  const ReduceOptions over = keeping_dims(x.shape(), a);
  const Tensor size = abs(x), held = abs(x.detach());
  const Tensor m = p > 0 ? max(held, over) : min(held, over);
  const Tensor unit = select(m > 0, select(m < kInf, m, 1.0), 1.0);
  const Tensor some = not_equal(size, 0.0);
  const Tensor terms = exp(log(select(some, size, unit) / unit) * p);
  // |0|^p is 0, and for p < 0 infinite: then the norm is 0.
  const Tensor total = sum(p > 0 ? select(equal(size, 0.0), 0.0, terms) : terms, over);
  Tensor y = unit * exp(log(select(equal(total, 0.0), 1.0, total)) / p);
  if (p < 0) y = select(equal(m, kInf), kInf, y);
  return reshape(select(equal(m, 0.0), 0.0, y), shape);
}

Tensor norm_of(const Tensor& x, double p, const ReduceOptions& options) {
  if (p == 0) return sum(cast(not_equal(x, 0.0), x.dtype()), options);
  if (p == 1) return sum(abs(x), options);
  if (p == 2) return flat_root(sum(square(x), options));
  if (p == kInf) return max(abs(x), options);
  if (p == -kInf) return min(abs(x), options);
  return power_norm(x, p, options);
}

}  // namespace

Tensor var(At at, const VarianceOptions& o) {
  const Tensor& x = at.tensor;
  require_float("var", at);
  if (o.correction < 0)
    fail(ErrorKind::value, "[var] the correction must not be negative; got ", o.correction, call_site(at.where));
  const ReduceAttrs a = reduce_attrs("var", x, {o.axes, o.keepdim});
  const Tensor along = along_one_axis(x, a);
  const Tensor v =
      record(kVariance, {&along}, x.dtype(), along.shape().without(1), VarianceAttrs{1, o.correction}, at.where);
  return reshape(v, reduced_shape(x.shape(), a));
}

Tensor std(At x, const VarianceOptions& options) { return flat_root(var(x, options)); }

VarianceAndMean var_mean(At x, const VarianceOptions& o) { return {var(x, o), mean(x, {o.axes, o.keepdim})}; }

Tensor norm(At x, double p, const ReduceOptions& options) {
  require_float("norm", x);
  if (std::isnan(p)) fail(ErrorKind::value, "[norm] p must be a number; got NaN", call_site(x.where));
  const Tensor wide = cast(x, wide_type(x.tensor));
  const int64_t count = reduced_count(wide.shape(), reduce_attrs("norm", wide, options));
  if (count == 0) {
    if (p < 0 || p == kInf)
      fail(ErrorKind::shape, "[norm] of no elements there is none for p = ", p, "; got shape ", wide.shape(),
           call_site(x.where));
    return cast(sum(wide, options), x.tensor.dtype());
  }
  return cast(norm_of(wide, p, options), x.tensor.dtype());
}

Tensor histogram(At x, int64_t bins, double low, double high) {
  if (bins < 1) fail(ErrorKind::value, "[histogram] needs at least one bin; got ", bins, call_site(x.where));
  if (!(low < high) || std::isinf(low) || std::isinf(high))
    fail(ErrorKind::value, "[histogram] low must be below high, both finite; got ", low, " and ", high,
         call_site(x.where));
  return record(kHistogram, {&x.tensor}, DType::i64, Shape{bins}, HistogramAttrs{bins, low, high}, x.where);
}

Tensor bincount(At at, int64_t minlength) {
  const Tensor& x = at.tensor;
  if (is_float(x.dtype()))
    fail(ErrorKind::dtype, "[bincount] counts integers; got ", name_of(x.dtype()), call_site(at.where));
  if (minlength < 0)
    fail(ErrorKind::value, "[bincount] minlength must not be negative; got ", minlength, call_site(at.where));
  int64_t bins = minlength;
  if (x.numel() > 0) {
    const int64_t least = cast(min(x), DType::i64).to_vector<int64_t>()[0];
    if (least < 0) fail(ErrorKind::value, "[bincount] elements must not be negative; got ", least, call_site(at.where));
    bins = std::max(bins, cast(max(x), DType::i64).to_vector<int64_t>()[0] + 1);
  }
  const Tensor wide = cast(x, DType::i64);
  return record(kBincount, {&wide}, DType::i64, Shape{bins}, HistogramAttrs{bins, 0, static_cast<double>(bins)},
                at.where);
}

const OpDef kVariance(OpFacts{.name = "var",
                              .kind = OpKind::producer,
                              .derivative = variance_derivative,
                              .decompose = variance_in_ops,
                              .autocast = Autocast::wide,
                              .flops = variance_flops});
const OpDef kHistogram(OpFacts{.name = "histogram", .kind = OpKind::producer, .autocast = Autocast::wide});
const OpDef kBincount(OpFacts{.name = "bincount", .kind = OpKind::producer, .may_throw = true});

}  // namespace outrace
