#include "outrace/optim/adam.h"

#include "outrace/ops/elementwise.h"

namespace outrace::optim {
namespace {
enum : size_t { kOneMinusBeta1, kBeta2, kOneMinusBeta2, kEps, kInverseRootOfBias2, kStepSize };
}

Adam::Adam(std::string_view name, const ParameterGroups& parameters, const AdamOptions& o, bool decoupled)
    : Optimizer(name, parameters, {.lr = o.lr, .weight_decay = o.weight_decay, .momentum = o.beta1},
                {.maximize = o.maximize, .decoupled_decay = decoupled}),
      options_(o) {
  require(o.beta1 < 1, "beta1 must be below 1", o.beta1);
  require(o.beta2 >= 0 && o.beta2 < 1, "beta2 must be in [0, 1)", o.beta2);
  require(o.eps >= 0, "eps must not be negative", o.eps);
}

std::vector<std::string> Adam::state_names() const {
  if (options_.amsgrad) return {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"};
  return {"exp_avg", "exp_avg_sq"};
}

std::vector<double> Adam::numbers(const Group& g, int64_t updates) const {
  const auto t = static_cast<double>(updates);
  const double beta1 = g.momentum, beta2 = options_.beta2;
  return {1 - beta1,
          beta2,
          1 - beta2,
          options_.eps,
          1 / std::sqrt(1 - std::pow(beta2, t)),
          g.lr / (1 - std::pow(beta1, t))};
}

Tensor Adam::update(const Tensor& p, const Tensor& g, std::vector<Tensor>& state, const Numbers& n) const {
  Tensor &m = state[0], &v = state[1];
  m = m + (g - m) * n[kOneMinusBeta1];
  v = v * n[kBeta2] + (g * g) * n[kOneMinusBeta2];
  if (options_.amsgrad) state[2] = maximum(state[2], v);
  const Tensor& second = state.back();
  return p - (m / (sqrt(second) * n[kInverseRootOfBias2] + n[kEps])) * n[kStepSize];
}

}  // namespace outrace::optim
