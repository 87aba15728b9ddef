#include "outrace/ops/arg_reduce.h"

#include "outrace/graph/recorder.h"
#include "outrace/graph/scope.h"
#include "outrace/ops/index.h"
#include "outrace/ops/movement.h"
#include "outrace/ops/op_def.h"

namespace outrace {
namespace {

// Without the axis.
Tensor position(const OpDef& op, At x, int64_t axis) {
  const Shape& s = x.tensor.shape();
  const int a = normalize_axis(axis, s.rank(), op.name);
  if (s[a] == 0)
    fail(ErrorKind::shape, "[", op.name, "] no element along axis ", a, " to point at; got shape ", s,
         call_site(x.where));
  return record(op, {&x.tensor}, DType::i64, s.without(a), AxisAttrs{a}, x.where);
}

Tensor arg_extreme(const OpDef& op, At x, std::optional<int64_t> axis, bool keepdim) {
  const int rank = x.tensor.rank();
  if (axis) {
    const Tensor i = position(op, x, *axis);
    return keepdim ? unsqueeze(i, normalize_axis(*axis, rank, op.name)) : i;
  }
  const Tensor flat = flatten(x);
  const Tensor i = position(op, At(flat, x.where), 0);
  const std::vector<int64_t> ones(static_cast<size_t>(keepdim ? rank : 0), 1);
  return reshape(i, Shape(std::span<const int64_t>(ones)));
}

ValuesAndIndices extreme_with_indices(const OpDef& op, At x, int64_t axis, bool keepdim) {
  const int a = normalize_axis(axis, x.tensor.rank(), op.name);
  const Tensor i = unsqueeze(position(op, x, a), a);
  const Tensor v = detail::gather_checked(x, a, i);
  return keepdim ? ValuesAndIndices{v, i} : ValuesAndIndices{squeeze(v, a), squeeze(i, a)};
}

double arg_flops(std::span<const Shape> inputs, const Shape&, const Attrs&) {
  return static_cast<double>(inputs[0].numel());
}

}  // namespace

Tensor argmax(At x, std::optional<int64_t> axis, bool keepdim) { return arg_extreme(kArgMax, x, axis, keepdim); }
Tensor argmin(At x, std::optional<int64_t> axis, bool keepdim) { return arg_extreme(kArgMin, x, axis, keepdim); }

ValuesAndIndices max_with_indices(At x, int64_t axis, bool keepdim) {
  return extreme_with_indices(kArgMax, x, axis, keepdim);
}
ValuesAndIndices min_with_indices(At x, int64_t axis, bool keepdim) {
  return extreme_with_indices(kArgMin, x, axis, keepdim);
}

const OpDef kArgMax(OpFacts{.name = "argmax", .kind = OpKind::producer, .flops = arg_flops});
const OpDef kArgMin(OpFacts{.name = "argmin", .kind = OpKind::producer, .flops = arg_flops});

}  // namespace outrace
