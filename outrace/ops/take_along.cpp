#include "outrace/ops/take_along.h"

#include "outrace/graph/recorder.h"
#include "outrace/graph/scope.h"
#include "outrace/ops/elementwise.h"
#include "outrace/ops/op_def.h"

namespace outrace {
namespace {

// Throws unless `index` fits x but for the axis, which is returned.
int check(const char* op, At x, const Tensor& index, int64_t axis) {
  const Shape& s = x.tensor.shape();
  const int a = normalize_axis(axis, s.rank(), op);
  if (index.dtype() != DType::i64 && index.dtype() != DType::i32)
    fail(ErrorKind::dtype, "[", op, "] positions must be i64 or i32; got ", name_of(index.dtype()), call_site(x.where));
  if (index.rank() != s.rank() || !(index.shape().with(a, 1) == s.with(a, 1)))
    fail(ErrorKind::shape, "[", op, "] positions must have the array's shape but for axis ", a, "; got ", index.shape(),
         " for ", s, call_site(x.where));
  return a;
}

Tensor take_along_derivative(const DerivativeArgs& a, int which) {
  if (which != 0) return Tensor();
  const int64_t axis = std::get<AxisAttrs>(a.attrs).axis;
  return put_along(a.g, a.inputs[1], axis, a.inputs[0].shape()[static_cast<int>(axis)]);
}

Tensor put_along_derivative(const DerivativeArgs& a, int which) {
  return which == 0 ? take_along(a.g, a.inputs[1], std::get<AxisAttrs>(a.attrs).axis) : Tensor();
}

}  // namespace

Tensor take_along(At x, const Tensor& index, int64_t axis) {
  const int a = check("take_along", x, index, axis);
  const Tensor wide = cast(index, DType::i64);
  return record(kTakeAlong, {&x.tensor, &wide}, x.tensor.dtype(), index.shape(), AxisAttrs{a}, x.where);
}

Tensor put_along(At x, const Tensor& index, int64_t axis, int64_t size) {
  const int a = check("put_along", x, index, axis);
  if (!(x.tensor.shape() == index.shape()))
    fail(ErrorKind::shape, "[put_along] each element needs a position; got ", x.tensor.shape(), " and ", index.shape(),
         call_site(x.where));
  const DType t = x.tensor.dtype();
  if (t == DType::boolean) fail(ErrorKind::dtype, "[put_along] adds numbers; got bool", call_site(x.where));
  const DType sum = size_of(t) == 2 ? DType::f32 : t;
  const Tensor wide = cast(index, DType::i64), values = cast(x, sum);
  return cast(record(kPutAlong, {&values, &wide}, sum, x.tensor.shape().with(a, size), AxisAttrs{a}, x.where), t);
}

const OpDef kTakeAlong(OpFacts{
    .name = "take_along", .kind = OpKind::producer, .derivative = take_along_derivative, .may_throw = true});
const OpDef kPutAlong(OpFacts{
    .name = "put_along", .kind = OpKind::producer, .derivative = put_along_derivative, .may_throw = true});

}  // namespace outrace
