#include "outrace/optim/nadam.h"

#include "outrace/ops/elementwise.h"

namespace outrace::optim {
namespace {
enum : size_t { kOneMinusBeta1, kBeta2, kOneMinusBeta2, kEps, kInverseRootOfBias2, kOfGradient, kOfMean };

double momentum_at(const NAdamOptions& o, int64_t t) {
  return o.beta1 * (1 - 0.5 * std::pow(0.96, static_cast<double>(t) * o.momentum_decay));
}

}  // namespace

// beta1 is no momentum that schedulers may move: the product over all updates so far would no longer be a function of
// their number.
NAdam::NAdam(const ParameterGroups& parameters, const NAdamOptions& o)
    : Optimizer("NAdam", parameters, {.lr = o.lr, .weight_decay = o.weight_decay},
                {.maximize = o.maximize, .decoupled_decay = o.decoupled_weight_decay}),
      options_(o) {
  require(o.beta1 >= 0 && o.beta1 < 1, "beta1 must be in [0, 1)", o.beta1);
  require(o.beta2 >= 0 && o.beta2 < 1, "beta2 must be in [0, 1)", o.beta2);
  require(o.eps >= 0, "eps must not be negative", o.eps);
  require(o.momentum_decay >= 0, "momentum_decay must not be negative", o.momentum_decay);
}

double NAdam::product_of_momenta(int64_t t) const {
  double product = products_.empty() ? 1 : products_.back();
  while (product != 0 && static_cast<int64_t>(products_.size()) < t) {
    product *= momentum_at(options_, static_cast<int64_t>(products_.size()) + 1);
    products_.push_back(product);
  }
  return t <= static_cast<int64_t>(products_.size()) ? products_[static_cast<size_t>(t - 1)] : 0;
}

std::vector<double> NAdam::numbers(const Group& g, int64_t t) const {
  const double mu = momentum_at(options_, t), next = momentum_at(options_, t + 1);
  const double product = product_of_momenta(t);
  return {1 - options_.beta1,
          options_.beta2,
          1 - options_.beta2,
          options_.eps,
          1 / std::sqrt(1 - std::pow(options_.beta2, static_cast<double>(t))),
          g.lr * (1 - mu) / (1 - product),
          g.lr * next / (1 - product * next)};
}

Tensor NAdam::update(const Tensor& p, const Tensor& g, std::vector<Tensor>& state, const Numbers& n) const {
  Tensor &m = state[0], &v = state[1];
  m = m + (g - m) * n[kOneMinusBeta1];
  v = v * n[kBeta2] + (g * g) * n[kOneMinusBeta2];
  const Tensor root = sqrt(v) * n[kInverseRootOfBias2] + n[kEps];
  return p - (g * n[kOfGradient] + m * n[kOfMean]) / root;
}

}  // namespace outrace::optim
