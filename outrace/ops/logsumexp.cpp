#include "outrace/ops/logsumexp.h"

#include <limits>

#include "outrace/graph/scope.h"
#include "outrace/ops/elementwise.h"
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

Tensor logsumexp_of(const char* op, const Tensor& x, const ReduceOptions& options) {
  const ReduceAttrs a = reduce_attrs(op, x, options);
  const Shape shape = reduced_shape(x.shape(), a);
  if (reduced_count(x.shape(), a) == 0) return cast(log(sum(x, options)), x.dtype());  // log 0
  const ReduceOptions keeping = keeping_dims(x.shape(), a);
  const Tensor shift = shift_of(x, keeping);
  const Tensor s = sum(exp(x - shift), keeping);
  // Of -inf alone nothing flows back: not 0 / 0.
  const Tensor some = not_equal(s, 0.0);
  return reshape(select(some, log(select(some, s, 1.0)) + shift, -kInf), shape);
}

}  // namespace

Tensor logsumexp(At x, const ReduceOptions& options) {
  require_float("logsumexp", x);
  const Tensor wide = cast(x, wide_type(x.tensor));
  return cast(logsumexp_of("logsumexp", wide, options), x.tensor.dtype());
}

Tensor masked_logsumexp(At x, const Tensor& keep, const ReduceOptions& options) {
  require_float("masked_logsumexp", x);
  const Tensor wide = kept("masked_logsumexp", x, keep, -kInf);
  return cast(logsumexp_of("masked_logsumexp", cast(wide, wide_type(x.tensor)), options), x.tensor.dtype());
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

}  // namespace outrace
