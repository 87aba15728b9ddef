#include "outrace/ops/pointwise_loss.h"

#include "outrace/graph/scope.h"
#include "outrace/ops/elementwise.h"
#include "outrace/ops/loss.h"
#include "outrace/ops/reduce.h"

namespace outrace {
namespace {

void check_pair(const char* op, const Tensor& x, const Tensor& target, std::source_location where) {
  if (!(x.shape() == target.shape()))
    fail(ErrorKind::shape, "[", op, "] input and target must have one shape (nothing is broadcast); got ", x.shape(),
         " and ", target.shape(), call_site(where));
  if (x.dtype() != target.dtype() || !is_float(x.dtype()))
    fail(ErrorKind::dtype, "[", op, "] input and target must have one floating point dtype; got ", name_of(x.dtype()),
         " and ", name_of(target.dtype()), call_site(where));
}

Tensor weighed(const Tensor& loss, const Tensor& weight) {
  if (!weight.defined()) return loss;
  const Tensor y = loss * weight;
  if (!(y.shape() == loss.shape()))
    fail(ErrorKind::shape, "[binary_cross_entropy] the weight must broadcast to the loss ", loss.shape(), "; got ",
         weight.shape());
  return y;
}

}  // namespace

Tensor mse_loss(At x, const Tensor& target, const LossOptions& options) {
  check_pair("mse_loss", x.tensor, target, x.where);
  return reduce_loss(square(sub(x, target)), options.reduction);
}

Tensor l1_loss(At x, const Tensor& target, const LossOptions& options) {
  check_pair("l1_loss", x.tensor, target, x.where);
  return reduce_loss(abs(sub(x, target)), options.reduction);
}

Tensor huber_loss(At x, const Tensor& target, const HuberOptions& options) {
  check_pair("huber_loss", x.tensor, target, x.where);
  if (!(options.delta > 0))
    fail(ErrorKind::value, "[huber_loss] delta must be positive; got ", options.delta, call_site(x.where));
  const Tensor d = sub(x, target), size = abs(d);
  const Tensor loss = select(size <= options.delta, 0.5 * square(d), options.delta * (size - 0.5 * options.delta));
  return reduce_loss(loss, options.reduction);
}

Tensor smooth_l1_loss(At x, const Tensor& target, const SmoothL1Options& options) {
  check_pair("smooth_l1_loss", x.tensor, target, x.where);
  if (!(options.beta >= 0))
    fail(ErrorKind::value, "[smooth_l1_loss] beta must not be negative; got ", options.beta, call_site(x.where));
  if (options.beta == 0) return l1_loss(x, target, {options.reduction});
  const Tensor d = sub(x, target), size = abs(d);
  const Tensor loss = select(size < options.beta, square(d) * (0.5 / options.beta), size - 0.5 * options.beta);
  return reduce_loss(loss, options.reduction);
}

Tensor binary_cross_entropy(At x, const Tensor& target, const BceOptions& options) {
  check_pair("binary_cross_entropy", x.tensor, target, x.where);
  return reduce_loss(weighed(bce_pointwise(x, target), options.weight), options.reduction);
}

Tensor binary_cross_entropy_with_logits(At at, const Tensor& target, const BceWithLogitsOptions& options) {
  check_pair("binary_cross_entropy_with_logits", at.tensor, target, at.where);
  const Tensor& x = at.tensor;
  Tensor positive = softplus(-x);  // -log sigmoid(x)
  if (options.pos_weight.defined()) positive = positive * (1 + (options.pos_weight - 1) * target);
  const Tensor loss = (1 - target) * x + positive;
  return reduce_loss(weighed(loss, options.weight), options.reduction);
}

Tensor kl_div(At x, const Tensor& target, const KlDivOptions& options) {
  check_pair("kl_div", x.tensor, target, x.where);
  const Tensor loss = options.log_target ? exp(target) * sub(target, x) : xlogy(target, target) - mul(target, x);
  if (!options.batch_mean) return reduce_loss(loss, options.reduction);
  if (x.tensor.rank() == 0) fail(ErrorKind::shape, "[kl_div] the batch mean needs a batch axis", call_site(x.where));
  return sum(loss) / static_cast<double>(x.tensor.shape()[0]);
}

}  // namespace outrace
