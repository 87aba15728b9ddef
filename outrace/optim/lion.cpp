#include "outrace/optim/lion.h"

#include "outrace/ops/elementwise.h"

namespace outrace::optim {
namespace {
enum : size_t { kRate, kBeta1, kOneMinusBeta1, kBeta2, kOneMinusBeta2 };
}

Lion::Lion(const ParameterGroups& parameters, const LionOptions& o)
    : Optimizer("Lion", parameters, {.lr = o.lr, .weight_decay = o.weight_decay, .momentum = o.beta1},
                {.maximize = o.maximize, .decoupled_decay = true}),
      options_(o) {
  require(o.beta1 < 1, "beta1 must be below 1", o.beta1);
  require(o.beta2 >= 0 && o.beta2 < 1, "beta2 must be in [0, 1)", o.beta2);
}

std::vector<double> Lion::numbers(const Group& g, int64_t) const {
  return {g.lr, g.momentum, 1 - g.momentum, options_.beta2, 1 - options_.beta2};
}

Tensor Lion::update(const Tensor& p, const Tensor& g, std::vector<Tensor>& state, const Numbers& n) const {
  Tensor& m = state[0];
  const Tensor direction = m * n[kBeta1] + g * n[kOneMinusBeta1];
  m = m * n[kBeta2] + g * n[kOneMinusBeta2];
  return p - sign(direction) * n[kRate];
}

}  // namespace outrace::optim
