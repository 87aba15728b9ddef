#include "outrace/ops/loss.h"

#include "outrace/graph/recorder.h"
#include "outrace/graph/scope.h"
#include "outrace/ops/creation.h"
#include "outrace/ops/elementwise.h"
#include "outrace/ops/index.h"
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
  // A class may be the ignored one.
  const Tensor rows = select(not_equal(in[1], static_cast<double>(a.ignore_index)), -sum(picked, {{1}}), 0.0);
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
  // Not multiplied by 0: a row that is ignored may hold infinities.
  const Tensor rows = unsqueeze(not_equal(target, static_cast<double>(a.ignore_index)), 1);
  const Tensor p = softmax(select(rows, logits, 0.0)) - cast(one_hot(target, logits.shape()[1]), logits.dtype());
  return select(rows, unsqueeze(expand(g, target.shape()), 1) * p, 0.0);
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

Tensor reduce_loss(const Tensor& loss, Reduction reduction) {
  if (reduction == Reduction::none) return loss;
  return reduction == Reduction::mean ? mean(loss) : sum(loss);
}

namespace {

// Logits or log-probabilities as [N, C] and class numbers as [N]; `rest` is the shape of a loss a row.
struct Rows {
  Tensor scores, target;
  Shape rest;
};

// Axis 1 of [N, C, d1, ...] moved to the end, all others joined.
Tensor classes_last(const Tensor& t) {
  if (t.rank() <= 2) return t.rank() == 1 ? unsqueeze(t, 0) : t;
  std::vector<int64_t> axes{0};
  for (int i = 2; i < t.rank(); ++i) axes.push_back(i);
  axes.push_back(1);
  return flatten(permute(t, axes), 0, -2);
}

Rows rows_of(const char* op, At at, const Tensor& target, const Tensor& weight) {
  const Tensor& x = at.tensor;
  if (x.rank() == 0)
    fail(ErrorKind::shape, "[", op, "] needs [N, C], [C] or [N, C, ...]; got ", x.shape(), call_site(at.where));
  const int axis = x.rank() == 1 ? 0 : 1;
  const Shape rest = x.shape().without(axis);
  if (!(target.shape() == rest))
    fail(ErrorKind::shape, "[", op, "] needs class numbers of the shape ", rest, " for input ", x.shape(), "; got ",
         target.shape(), call_site(at.where));
  if (!is_float(x.dtype()) || (target.dtype() != DType::i64 && target.dtype() != DType::i32))
    fail(ErrorKind::dtype, "[", op, "] needs floating point input and i64 or i32 targets; got ", name_of(x.dtype()),
         " and ", name_of(target.dtype()), call_site(at.where));
  if (weight.defined() && !(weight.shape() == Shape{x.shape()[axis]} && weight.dtype() == x.dtype()))
    fail(ErrorKind::shape, "[", op, "] the weight must be [", x.shape()[axis], "] ", name_of(x.dtype()),
         ", one a class; got ", weight.shape(), " ", name_of(weight.dtype()), call_site(at.where));
  return {classes_last(x), target.rank() == 1 ? target : reshape(target, Shape{rest.numel()}), rest};
}

// The mean divides by the weights of the counted rows.
Tensor finish(const Tensor& rows, const Tensor& weights, Reduction reduction, const Shape& rest) {
  if (reduction == Reduction::none) return reshape(rows, rest);
  return reduction == Reduction::sum ? sum(rows) : sum(rows) / sum(weights);
}

// In ops, for what the kernel does not know: weights and smoothing over log-probabilities.
Tensor weighed_nll(At at, const Rows& r, const Tensor& weight, double smoothing, int64_t ignore_index,
                   Reduction reduction) {
  const Tensor& lp = r.scores;
  const Tensor counted = not_equal(r.target, static_cast<double>(ignore_index));
  // Ignored rows read class 0: their target may be no class at all.
  const Tensor safe = select(counted, r.target, 0.0);
  const double classes = static_cast<double>(lp.shape()[1]);
  const Tensor weights =
      weight.defined() ? select(counted, index_select(weight, 0, safe), 0.0) : cast(counted, lp.dtype());
  Tensor rows = -squeeze(gather(At(lp, at.where), 1, unsqueeze(safe, 1)), 1) * weights;
  if (smoothing > 0) {
    const Tensor all = sum(weight.defined() ? lp * weight : lp, {{1}});
    rows = rows * (1 - smoothing) - select(counted, all, 0.0) * (smoothing / classes);
  }
  // Not multiplied by 0: a row that is ignored may hold infinities.
  return finish(select(counted, rows, 0.0), weights, reduction, r.rest);
}

Tensor cross_entropy_of_probabilities(At at, const Tensor& target, const CrossEntropyOptions& o) {
  const Tensor& x = at.tensor;
  if (!(target.shape() == x.shape()) || target.dtype() != x.dtype() || x.rank() == 0)
    fail(ErrorKind::shape, "[cross_entropy] probabilities must have the logits' shape and dtype; got ", x.shape(), " ",
         name_of(x.dtype()), " and ", target.shape(), " ", name_of(target.dtype()), call_site(at.where));
  const Tensor lp = log_softmax(classes_last(x));
  Tensor p = classes_last(target);
  const int64_t classes = lp.shape()[1];
  if (o.weight.defined() && !(o.weight.shape() == Shape{classes}))
    fail(ErrorKind::shape, "[cross_entropy] the weight must be [", classes, "], one a class; got ", o.weight.shape(),
         call_site(at.where));
  if (o.label_smoothing > 0) p = p * (1 - o.label_smoothing) + o.label_smoothing / static_cast<double>(classes);
  // 0 * log 0 is 0 here: a masked class (logit -inf) whose target is 0 counts nothing.
  Tensor terms = select(equal(p, 0.0), 0.0, p * lp);
  if (o.weight.defined()) terms = terms * o.weight;
  const Tensor rows = -sum(terms, {{1}});
  if (o.reduction == Reduction::none) return reshape(rows, x.shape().without(x.rank() == 1 ? 0 : 1));
  return reduce_loss(rows, o.reduction);
}

}  // namespace

Tensor cross_entropy(At at, const Tensor& target, const CrossEntropyOptions& o) {
  const Tensor& logits = at.tensor;
  if (!(o.label_smoothing >= 0 && o.label_smoothing <= 1))
    fail(ErrorKind::value, "[cross_entropy] label smoothing must be from 0 to 1; got ", o.label_smoothing,
         call_site(at.where));
  if (is_float(target.dtype())) return cross_entropy_of_probabilities(at, target, o);
  const Rows r = rows_of("cross_entropy", at, target, o.weight);
  if (o.weight.defined() || o.label_smoothing > 0) {
    const Rows lp{log_softmax(At(r.scores, at.where)), r.target, r.rest};
    return weighed_nll(at, lp, o.weight, o.label_smoothing, o.ignore_index, o.reduction);
  }
  const Shape shape = o.reduction == Reduction::none ? r.target.shape() : Shape{};
  const Tensor loss = record(kCrossEntropy, {&r.scores, &r.target}, logits.dtype(), shape,
                             CrossEntropyAttrs{o.reduction, o.ignore_index}, at.where);
  return o.reduction == Reduction::none && !(r.rest == shape) ? reshape(loss, r.rest) : loss;
}

Tensor nll_loss(At at, const Tensor& target, const NllOptions& o) {
  const Rows r = rows_of("nll_loss", at, target, o.weight);
  return weighed_nll(at, r, o.weight, 0, o.ignore_index, o.reduction);
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
