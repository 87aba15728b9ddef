#include "outrace/ops/scan.h"

#include "outrace/graph/recorder.h"
#include "outrace/graph/scope.h"
#include "outrace/ops/elementwise.h"
#include "outrace/ops/index.h"
#include "outrace/ops/movement.h"
#include "outrace/ops/op_def.h"
#include "outrace/ops/reduce_axes.h"

namespace outrace {
namespace {

const ScanAttrs& scan_of(const Attrs& attrs) { return std::get<ScanAttrs>(attrs); }

// Element i gets what the scan visits just before it (`ahead`: just after it), the end 0.
Tensor neighbour(const Tensor& x, const ScanAttrs& a, bool ahead) {
  const int axis = static_cast<int>(a.axis);
  const int64_t n = x.shape()[axis];
  if (n == 0) return x;
  const bool up = a.reverse == ahead;  // positions grow
  SliceAttrs to;
  to.step.fill(1);
  to.start[axis] = up ? 1 : 0;
  return pad(up ? slice(x, axis, 0, n - 1) : slice(x, axis, 1, n), x.shape(), to);
}

Tensor cumsum_derivative(const DerivativeArgs& a, int) {
  const ScanAttrs& s = scan_of(a.attrs);
  return cumsum(a.g, s.axis, {.reverse = !s.reverse, .exclusive = s.exclusive});
}

// Element k is in the products that come after it: g[i] times those before k (one factor for all i) times those between
// k and i (a recurrence).
Tensor cumprod_derivative(const DerivativeArgs& a, int) {
  const ScanAttrs& s = scan_of(a.attrs);
  const Tensor& x = a.inputs[0];
  const Tensor before = cumprod(x, s.axis, {.reverse = s.reverse, .exclusive = true});
  if (s.exclusive) return before * neighbour(linear_recurrence(x, a.g, s.axis, !s.reverse), s, true);
  return before * linear_recurrence(neighbour(x, s, true), a.g, s.axis, !s.reverse);
}

Tensor recurrence_derivative(const DerivativeArgs& a, int which) {
  const ScanAttrs& s = scan_of(a.attrs);
  const Tensor gb = linear_recurrence(neighbour(a.inputs[0], s, true), a.g, s.axis, !s.reverse);
  return which == 1 ? gb : gb * neighbour(a.output, s, false);
}

// `fn` of x as it is, or, without axes, as an array of one.
template <class Fn>
Tensor with_axis(At x, const Fn& fn) {
  return x.tensor.rank() > 0 ? fn(x.tensor) : reshape(fn(reshape(x, Shape{1})), Shape{});
}

Tensor scan(const OpDef& op, At x, int64_t axis, const ScanOptions& o) {
  const DType t = is_float(x.tensor.dtype()) ? x.tensor.dtype() : DType::i64;
  return with_axis(x, [&](const Tensor& v) {
    const int a = normalize_axis(axis, v.rank(), op.name);
    const Tensor in = cast(v, t);
    return record(op, {&in}, t, in.shape(), ScanAttrs{a, o.reverse, o.exclusive}, x.where);
  });
}

ValuesAndIndices running_extreme(const OpDef& op, At x, int64_t axis) {
  ValuesAndIndices r;
  r.values = with_axis(x, [&](const Tensor& v) {
    const int a = normalize_axis(axis, v.rank(), op.name);
    r.indices = record(op, {&v}, DType::i64, v.shape(), ScanAttrs{a}, x.where);
    return detail::gather_checked(At(v, x.where), a, r.indices);
  });
  r.indices = reshape(r.indices, x.tensor.shape());
  return r;
}

}  // namespace

Tensor cumsum(At x, int64_t axis, const ScanOptions& options) { return scan(kCumsum, x, axis, options); }
Tensor cumprod(At x, int64_t axis, const ScanOptions& options) { return scan(kCumprod, x, axis, options); }
ValuesAndIndices cummax(At x, int64_t axis) { return running_extreme(kCumArgMax, x, axis); }
ValuesAndIndices cummin(At x, int64_t axis) { return running_extreme(kCumArgMin, x, axis); }

Tensor linear_recurrence(At at, const Tensor& b, int64_t axis, bool reverse) {
  const Tensor& a = at.tensor;
  require_float("linear_recurrence", at);
  if (!(a.shape() == b.shape()) || a.dtype() != b.dtype())
    fail(ErrorKind::shape, "[linear_recurrence] factors and terms must have one shape and dtype; got ", a.shape(), " ",
         name_of(a.dtype()), " and ", b.shape(), " ", name_of(b.dtype()), call_site(at.where));
  const int over = normalize_axis(axis, a.rank(), "linear_recurrence");
  return record(kRecurrence, {&a, &b}, a.dtype(), a.shape(), ScanAttrs{over, reverse}, at.where);
}

const OpDef kCumsum(OpFacts{
    .name = "cumsum", .kind = OpKind::producer, .derivative = cumsum_derivative, .autocast = Autocast::wide});
const OpDef kCumprod(OpFacts{
    .name = "cumprod", .kind = OpKind::producer, .derivative = cumprod_derivative, .autocast = Autocast::wide});
const OpDef kRecurrence(OpFacts{.name = "linear_recurrence",
                                .kind = OpKind::producer,
                                .derivative = recurrence_derivative,
                                .autocast = Autocast::wide});
const OpDef kCumArgMax(OpFacts{.name = "cumargmax", .kind = OpKind::producer});
const OpDef kCumArgMin(OpFacts{.name = "cumargmin", .kind = OpKind::producer});

}  // namespace outrace
