#include "outrace/ops/logsumexp.h"

#include <limits>

#include "outrace/graph/recorder.h"
#include "outrace/graph/scope.h"
#include "outrace/ops/elementwise.h"
#include "outrace/ops/loss.h"
#include "outrace/ops/movement.h"
#include "outrace/ops/reduce_axes.h"

namespace outrace {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

DType wide_type(const Tensor& x) { return x.dtype() == DType::f64 ? DType::f64 : DType::f32; }

// The largest elements, 0 where they are not finite. Without history: the shift cancels, and with it its derivative.
Tensor shift_of(const Tensor& x, const ReduceOptions& keeping) {
  const Tensor m = max(x.detach(), keeping);
  return select(abs(m) < kInf, m, 0.0);
}

Tensor kept(const char* op, At x, const Tensor& keep, double otherwise) {
  Shape joint;
  if (keep.dtype() != DType::boolean)
    fail(ErrorKind::dtype, "[", op, "] keep must be bool; got ", name_of(keep.dtype()), call_site(x.where));
  if (!broadcast_shapes(x.tensor.shape(), keep.shape(), joint))
    fail(ErrorKind::shape, "[", op, "] keep must broadcast with the array; got ", keep.shape(), " and ",
         x.tensor.shape(), call_site(x.where));
  return select(At(keep, x.where), x, otherwise);
}

// In other ops: any axes, f32 or f64.
Tensor in_ops(const Tensor& x, const ReduceAttrs& a) {
  const Shape shape = reduced_shape(x.shape(), a);
  const ReduceOptions keeping = keeping_dims(x.shape(), a);
  const Tensor shift = shift_of(x, keeping);
  const Tensor s = sum(exp(x - shift), keeping);
  // Of -inf alone nothing flows back: not 0 / 0.
  const Tensor some = not_equal(s, 0.0);
  return reshape(select(some, log(select(some, s, 1.0)) + shift, -kInf), shape);
}

Tensor last_axis_in_ops(std::span<const Tensor> in, const Attrs&) {
  const Tensor wide = cast(in[0], wide_type(in[0]));
  return cast(in_ops(wide, reduce_attrs("logsumexp", wide, {{-1}})), in[0].dtype());
}

Tensor derivative(const DerivativeArgs& d, int) {
  // Not e^(x - y), which has the rounding of y in it. Of -inf alone, where softmax is NaN, nothing flows back.
  const Tensor g = unsqueeze(d.g, -1), nothing = equal(unsqueeze(d.output, -1), -kInf);
  if (!grad_enabled()) return select(nothing, 0.0, g * softmax(d.inputs[0]));
  // Differentiated again, a NaN must not be there at all.
  return select(nothing, 0.0, g) * softmax(select(nothing, 0.0, d.inputs[0]));
}

// Difference, maximum, exponential and sum of each element.
double flops(std::span<const Shape> inputs, const Shape&, const Attrs&) {
  return 4.0 * static_cast<double>(inputs[0].numel());
}

Tensor logsumexp_of(const char* op, At at, const ReduceOptions& options) {
  const Tensor& x = at.tensor;
  const ReduceAttrs a = reduce_attrs(op, x, options);
  if (reduced_count(x.shape(), a) == 0) return cast(log(sum(x, options)), x.dtype());  // log 0
  // The last axes are rows, which have a kernel of their own.
  int first = x.rank();
  while (first > 0 && (a.axes >> (first - 1) & 1)) --first;
  const int64_t leading = (int64_t{1} << first) - 1;
  if (first == x.rank() || (a.axes & leading) != 0) {
    const Tensor wide = cast(at, wide_type(x));
    return cast(in_ops(wide, a), x.dtype());
  }
  const Tensor flat = flatten(at, first, -1);
  const Shape kept(flat.shape().dims().first(static_cast<size_t>(first)));
  return reshape(record(kLogSumExp, {&flat}, x.dtype(), kept, NoAttrs{}, at.where), reduced_shape(x.shape(), a));
}

}  // namespace

Tensor logsumexp(At x, const ReduceOptions& options) {
  require_float("logsumexp", x);
  return logsumexp_of("logsumexp", x, options);
}

Tensor masked_logsumexp(At x, const Tensor& keep, const ReduceOptions& options) {
  require_float("masked_logsumexp", x);
  return logsumexp_of("masked_logsumexp", At(kept("masked_logsumexp", x, keep, -kInf), x.where), options);
}

Tensor masked_sum(At x, const Tensor& keep, const ReduceOptions& options) {
  const Tensor chosen = kept("masked_sum", x, keep, 0);
  return sum(At(chosen, x.where), options);
}

Tensor masked_softmax(At x, const Tensor& keep, int64_t axis) {
  require_float("masked_softmax", x);
  const Tensor chosen = cast(kept("masked_softmax", x, keep, -kInf), wide_type(x.tensor));
  const int a = normalize_axis(axis, chosen.rank(), "masked_softmax");
  if (chosen.shape()[a] == 0) return cast(chosen, x.tensor.dtype());
  const ReduceOptions along{{a}, true};
  const Tensor terms = exp(chosen - shift_of(chosen, along));
  const Tensor s = sum(terms, along);
  return cast(terms / select(not_equal(s, 0.0), s, 1.0), x.tensor.dtype());
}

Tensor masked_log_softmax(At x, const Tensor& keep, int64_t axis) {
  require_float("masked_log_softmax", x);
  const Tensor chosen = cast(kept("masked_log_softmax", x, keep, -kInf), wide_type(x.tensor));
  const int a = normalize_axis(axis, chosen.rank(), "masked_log_softmax");
  const Tensor total = logsumexp_of("masked_log_softmax", chosen, {{a}, true});
  // What is left out, and a row of -inf alone, would be -inf - -inf.
  const Tensor finite = select(not_equal(chosen, -kInf), chosen, 0.0);
  return cast(select(not_equal(chosen, -kInf), finite - select(not_equal(total, -kInf), total, 0.0), -kInf),
              x.tensor.dtype());
}

const OpDef kLogSumExp(OpFacts{.name = "logsumexp",
                               .kind = OpKind::producer,
                               .derivative = derivative,
                               .decompose = last_axis_in_ops,
                               .autocast = Autocast::wide,
                               .flops = flops});

}  // namespace outrace
