#include "outrace/ops/loss.h"

#include "outrace/graph/recorder.h"
#include "outrace/graph/scope.h"
#include "outrace/ops/creation.h"
#include "outrace/ops/elementwise.h"
#include "outrace/ops/movement.h"
#include "outrace/ops/reduce.h"

namespace outrace {
namespace {

// Row ops work along the last axis; another one is moved there and back.
Tensor along(const OpDef& op, At x, int64_t axis) {
  const Tensor& t = x.tensor;
  if (!is_float(t.dtype()))
    fail(ErrorKind::dtype, "[", op.name, "] needs floating point; got ", name_of(t.dtype()), call_site(x.where));
  const int a = normalize_axis(axis, t.rank(), op.name);
  if (a == t.rank() - 1) return record(op, {&t}, t.dtype(), t.shape(), NoAttrs{}, x.where);
  const Tensor moved = transpose(x, a, -1);
  return transpose(record(op, {&moved}, t.dtype(), moved.shape(), NoAttrs{}, x.where), a, -1);
}

Tensor softmax_derivative(const DerivativeArgs& a, int) { return a.output * (a.g - sum(a.g * a.output, {{-1}, true})); }
Tensor log_softmax_derivative(const DerivativeArgs& a, int) { return a.g - exp(a.output) * sum(a.g, {{-1}, true}); }

Tensor softmax_in_ops(std::span<const Tensor> in, const Attrs&) {
  const Tensor e = exp(in[0] - max(in[0], {{-1}, true}));
  return e / sum(e, {{-1}, true});
}
Tensor log_softmax_in_ops(std::span<const Tensor> in, const Attrs&) {
  const Tensor shifted = in[0] - max(in[0], {{-1}, true});
  return shifted - log(sum(exp(shifted), {{-1}, true}));
}

// [N, C] bool: column is the row's target.
Tensor one_hot(const Tensor& target, int64_t classes) {
  return equal(unsqueeze(cast(target, DType::i64), 1),
               arange(classes, {.dtype = DType::i64, .device = target.device()}));
}

// [N]: 1 for counted rows, in the loss's dtype.
Tensor counted_rows(const Tensor& target, const CrossEntropyAttrs& a, DType dtype) {
  return cast(not_equal(target, static_cast<double>(a.ignore_index)), dtype);
}

Tensor cross_entropy_in_ops(std::span<const Tensor> in, const Attrs& attrs) {
  const auto& a = std::get<CrossEntropyAttrs>(attrs);
  const Tensor picked = select(one_hot(in[1], in[0].shape()[1]), log_softmax(in[0]), 0.0);
  const Tensor rows = -sum(picked, {{1}});
  if (a.reduction == Reduction::none) return rows;
  const Tensor total = sum(rows);
  return a.reduction == Reduction::sum ? total : total / sum(counted_rows(in[1], a, in[0].dtype()));
}

Tensor cross_entropy_grad_in_ops(std::span<const Tensor> in, const Attrs& attrs) {
  const auto& a = std::get<CrossEntropyAttrs>(attrs);
  const Tensor &logits = in[0], &target = in[1];
  const Tensor counted = counted_rows(target, a, logits.dtype());
  Tensor g = in[2];
  if (a.reduction == Reduction::mean) g = g / sum(counted);
  const Tensor per_row = select(not_equal(target, static_cast<double>(a.ignore_index)), expand(g, target.shape()), 0.0);
  return unsqueeze(per_row, 1) * (softmax(logits) - cast(one_hot(target, logits.shape()[1]), logits.dtype()));
}

Tensor cross_entropy_derivative(const DerivativeArgs& d, int which) {
  if (which != 0) return Tensor();
  const std::array<Tensor, 3> in{d.inputs[0], d.inputs[1], d.g};
  // A gradient that will be differentiated again is written in ops that can be.
  if (grad_enabled()) return cross_entropy_grad_in_ops(in, d.attrs);
  return record(kCrossEntropyGrad, {&in[0], &in[1], &in[2]}, in[0].dtype(), in[0].shape(), d.attrs,
                d.output.node().where);
}

// exp, maximum, sum, difference, logarithm or quotient of each element.
double row_flops(std::span<const Shape> inputs, const Shape&, const Attrs&) {
  return 5.0 * static_cast<double>(inputs[0].numel());
}

}  // namespace

Tensor softmax(At x, int64_t axis) { return along(kSoftmax, x, axis); }
Tensor log_softmax(At x, int64_t axis) { return along(kLogSoftmax, x, axis); }

Tensor cross_entropy(At at, const Tensor& target, const CrossEntropyOptions& options) {
  const Tensor& logits = at.tensor;
  if (logits.rank() != 2 || target.rank() != 1 || logits.shape()[0] != target.shape()[0])
    fail(ErrorKind::shape, "[cross_entropy] needs logits [N, C] and targets [N]; got ", logits.shape(), " and ",
         target.shape(), call_site(at.where));
  if (!is_float(logits.dtype()) || (target.dtype() != DType::i64 && target.dtype() != DType::i32))
    fail(ErrorKind::dtype, "[cross_entropy] needs floating point logits and i64 or i32 targets; got ",
         name_of(logits.dtype()), " and ", name_of(target.dtype()), call_site(at.where));
  const Shape shape = options.reduction == Reduction::none ? target.shape() : Shape{};
  return record(kCrossEntropy, {&logits, &target}, logits.dtype(), shape,
                CrossEntropyAttrs{options.reduction, options.ignore_index}, at.where);
}

const OpDef kSoftmax(OpFacts{.name = "softmax",
                             .kind = OpKind::producer,
                             .derivative = softmax_derivative,
                             .decompose = softmax_in_ops,
                             .autocast = Autocast::wide,
                             .flops = row_flops});
const OpDef kLogSoftmax(OpFacts{.name = "log_softmax",
                                .kind = OpKind::producer,
                                .derivative = log_softmax_derivative,
                                .decompose = log_softmax_in_ops,
                                .autocast = Autocast::wide,
                                .flops = row_flops});
const OpDef kCrossEntropy(OpFacts{.name = "cross_entropy",
                                  .kind = OpKind::producer,
                                  .derivative = cross_entropy_derivative,
                                  .decompose = cross_entropy_in_ops,
                                  .autocast = Autocast::wide,
                                  .flops = row_flops,
                                  .may_throw = true});
const OpDef kCrossEntropyGrad(OpFacts{.name = "cross_entropy_grad",
                                      .kind = OpKind::producer,
                                      .decompose = cross_entropy_grad_in_ops,
                                      .autocast = Autocast::wide,
                                      .flops = row_flops,
                                      .may_throw = true});

}  // namespace outrace
