// Elementwise ops: shape rule, promotion, derivatives and rows, all generated from ops.def.
#include "outrace/ops/elementwise.h"

#include <deque>

#include "outrace/graph/recorder.h"
#include "outrace/graph/scope.h"
#include "outrace/ops/movement.h"
#include "outrace/ops/reduce.h"

namespace outrace {
namespace {

// Parts of derivatives. gelu_tanh(x) = x sigmoid(u(x)) with u = 2 sqrt(2 / pi) (x + 0.044715 x^3).
Tensor gelu_tanh_slope(const Tensor& x) {
  const Tensor s = sigmoid(1.5957691216057308 * (x + 0.044715 * x * x * x));
  return s + x * s * (1 - s) * (1.5957691216057308 * (1 + 0.134145 * x * x));
}
// x^2 + z^2, but 1 at the origin: atan2's gradient there is 0.
Tensor square_or_one(const Tensor& x, const Tensor& z) {
  const Tensor square = x * x + z * z;
  return select(equal(square, 0), 1, square);
}

Tensor sum_to_input(const Tensor& g, const Tensor& input) { return g.defined() ? sum_to(g, input.shape()) : Tensor(); }

// The derivatives of ops.def, with the row's letters bound to the node's tensors. A broadcast input gets its gradient
// summed back.
#define BIND_LETTERS                                                        \
  [[maybe_unused]] const Tensor& x = a.inputs[0];                           \
  [[maybe_unused]] const Tensor& z = a.inputs[a.inputs.size() > 1 ? 1 : 0]; \
  [[maybe_unused]] const Tensor& w = a.inputs[a.inputs.size() > 2 ? 2 : 0]; \
  [[maybe_unused]] const Tensor& y = a.output;                              \
  [[maybe_unused]] const Tensor& g = a.g;
#define UNARY(name, value, gx, types, autocast, low, high) \
  Tensor name##_derivative(const DerivativeArgs& a, int) { \
    BIND_LETTERS                                           \
    return gx;                                             \
  }
#define BINARY(name, value, gx, gz, types, autocast, low, high)                 \
  Tensor name##_derivative(const DerivativeArgs& a, int which) {                \
    BIND_LETTERS                                                                \
    return sum_to_input(which == 0 ? Tensor(gx) : Tensor(gz), a.inputs[which]); \
  }
#define COMPARE(name, value)
#define SELECT(name, value, gz, gw, low, high)                                  \
  Tensor name##_derivative(const DerivativeArgs& a, int which) {                \
    BIND_LETTERS                                                                \
    if (which == 0) return Tensor();                                            \
    return sum_to_input(which == 1 ? Tensor(gz) : Tensor(gw), a.inputs[which]); \
  }
#include "outrace/ops/ops.def"
#undef UNARY
#undef BINARY
#undef COMPARE
#undef SELECT
#undef BIND_LETTERS

const std::deque<OpDef>& rows() {
  static const std::deque<OpDef> table = [] {
    std::deque<OpDef> t;
    int ew = 0;
    auto add_row = [&](const char* name, decltype(OpDef::derivative) derivative, Autocast autocast) {
      t.emplace_back(OpFacts{
          .name = name, .kind = OpKind::elementwise, .derivative = derivative, .autocast = autocast, .ew = ew++});
    };
#define UNARY(name, value, gx, types, autocast, low, high) add_row(#name, name##_derivative, Autocast::autocast);
#define BINARY(name, value, gx, gz, types, autocast, low, high) add_row(#name, name##_derivative, Autocast::autocast);
#define COMPARE(name, value) add_row(#name, nullptr, Autocast::follow);
#define SELECT(name, value, gz, gw, low, high) add_row(#name, name##_derivative, Autocast::follow);
#include "outrace/ops/ops.def"
#undef UNARY
#undef BINARY
#undef COMPARE
#undef SELECT
    return t;
  }();
  return table;
}
// Registered before main: all_ops() is complete when tests and docs walk it.
[[maybe_unused]] const auto& registered = rows();

Shape broadcast(const char* op, const Tensor& x, const Tensor& z, std::source_location where) {
  Shape out;
  if (!broadcast_shapes(x.shape(), z.shape(), out))
    fail(ErrorKind::shape, "[", op, "] shapes do not broadcast; got ", x.shape(), " and ", z.shape(), call_site(where));
  return out;
}

void require_type(Ew op, DType t, std::source_location where) {
  if (info_of(op).real_only && !is_float(t))
    fail(ErrorKind::dtype, "[", info_of(op).name, "] needs floating point; got ", name_of(t),
         "; convert with to(DType::f32)", call_site(where));
}

Tensor unary(Ew op, At x) {
  require_type(op, x.tensor.dtype(), x.where);
  return record(op_of(op), {&x.tensor}, x.tensor.dtype(), x.tensor.shape(), NoAttrs{}, x.where);
}

Tensor binary(Ew op, At x, At z) {
  const DType t = promote(x.tensor.dtype(), z.tensor.dtype());
  require_type(op, t, x.where);
  const Shape shape = broadcast(info_of(op).name.data(), x.tensor, z.tensor, x.where);
  const DType result = info_of(op).compares ? DType::boolean : t;
  if (x.tensor.dtype() == t && z.tensor.dtype() == t)
    return record(op_of(op), {&x.tensor, &z.tensor}, result, shape, NoAttrs{}, x.where);
  const Tensor xt = cast(x, t), zt = cast(z, t);
  return record(op_of(op), {&xt, &zt}, result, shape, NoAttrs{}, x.where);
}

// A fraction beside integers makes the result f32, as in NumPy and PyTorch.
Tensor with_number(const Tensor& x, double v) {
  const DType t = is_float(x.dtype()) || v == std::trunc(v) ? x.dtype() : DType::f32;
  return number(v, t == DType::boolean ? DType::i64 : t, x.device());
}

Tensor cast_derivative(const DerivativeArgs& a, int) { return cast(a.g, a.inputs[0].dtype()); }

}  // namespace

DType promote(DType a, DType b) {
  if (a == b) return a;
  if (is_float(a) != is_float(b)) return is_float(a) ? a : b;
  if (is_float(a)) return a == DType::f64 || b == DType::f64 ? DType::f64 : DType::f32;
  return size_of(a) > size_of(b) || (size_of(a) == size_of(b) && b == DType::boolean) ? a : b;
}

const OpDef& op_of(Ew op) { return rows()[static_cast<size_t>(op)]; }

const OpDef kCast(OpFacts{.name = "cast", .kind = OpKind::elementwise, .derivative = cast_derivative});

#define UNARY(name, ...) \
  Tensor name(At x) { return unary(Ew::name, x); }
#define BINARY(name, ...)                                                                            \
  Tensor name(At x, At z) { return binary(Ew::name, x, z); }                                         \
  Tensor name(At x, double z) { return binary(Ew::name, x, At(with_number(x.tensor, z), x.where)); } \
  Tensor name(double x, At z) { return binary(Ew::name, At(with_number(z.tensor, x), z.where), z); }
#define COMPARE(name, ...) BINARY(name)
#define SELECT(name, ...)
#include "outrace/ops/ops.def"
#undef UNARY
#undef BINARY
#undef COMPARE
#undef SELECT

Tensor select(At condition, At z, At w) {
  const Tensor& c = condition.tensor;
  if (c.dtype() != DType::boolean)
    fail(ErrorKind::dtype, "[select] the condition must be bool; got ", name_of(c.dtype()), call_site(condition.where));
  const DType t = promote(z.tensor.dtype(), w.tensor.dtype());
  const Tensor zt = cast(z, t), wt = cast(w, t);
  Shape shape = broadcast("select", z.tensor, w.tensor, condition.where);
  Shape all;
  if (!broadcast_shapes(c.shape(), shape, all))
    fail(ErrorKind::shape, "[select] shapes do not broadcast; got condition ", c.shape(), " and values ", shape,
         call_site(condition.where));
  return record(op_of(Ew::select), {&c, &zt, &wt}, t, all, NoAttrs{}, condition.where);
}
Tensor select(At condition, At z, double w) { return select(condition, z, At(with_number(z.tensor, w), z.where)); }
Tensor select(At condition, double z, At w) { return select(condition, At(with_number(w.tensor, z), w.where), w); }

Tensor logical_not(At x) { return equal(x, 0); }

Tensor cast(At x, DType dtype) {
  if (x.tensor.dtype() == dtype) return x.tensor;
  return record(kCast, {&x.tensor}, dtype, x.tensor.shape(), NoAttrs{}, x.where);
}

}  // namespace outrace
