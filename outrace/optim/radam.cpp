#include "outrace/optim/radam.h"

#include "outrace/ops/elementwise.h"

namespace outrace::optim {
namespace {
enum : size_t { kOneMinusBeta1, kBeta2, kOneMinusBeta2, kEps, kPlain, kAdaptive };
}

RAdam::RAdam(const ParameterGroups& parameters, const RAdamOptions& o)
    : Optimizer("RAdam", parameters, {.lr = o.lr, .weight_decay = o.weight_decay, .momentum = o.beta1},
                {.maximize = o.maximize, .decoupled_decay = o.decoupled_weight_decay}),
      options_(o) {
  require(o.beta1 < 1, "beta1 must be below 1", o.beta1);
  require(o.beta2 >= 0 && o.beta2 < 1, "beta2 must be in [0, 1)", o.beta2);
  require(o.eps > 0, "eps must be positive", o.eps);
}

std::vector<double> RAdam::numbers(const Group& g, int64_t updates) const {
  const auto t = static_cast<double>(updates);
  const double beta2 = options_.beta2, power = std::pow(beta2, t);
  const double step = g.lr / (1 - std::pow(g.momentum, t));
  const double last = 2 / (1 - beta2) - 1;
  const double rho = last - 2 * t * power / (1 - power);
  const bool rectified = rho > 5;
  const double root = std::sqrt((rho - 4) * (rho - 2) * last / ((last - 4) * (last - 2) * rho));
  return {1 - g.momentum,
          beta2,
          1 - beta2,
          options_.eps,
          rectified ? 0 : step,
          rectified ? step * root * std::sqrt(1 - power) : 0};
}

// Both branches are there at every step; the host's numbers switch one of them off.
Tensor RAdam::update(const Tensor& p, const Tensor& g, std::vector<Tensor>& state, const Numbers& n) const {
  Tensor &m = state[0], &v = state[1];
  m = m + (g - m) * n[kOneMinusBeta1];
  v = v * n[kBeta2] + (g * g) * n[kOneMinusBeta2];
  return p - m * (n[kAdaptive] / (sqrt(v) + n[kEps]) + n[kPlain]);
}

}  // namespace outrace::optim
