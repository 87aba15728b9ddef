#include "outrace/optim/adamax.h"

#include "outrace/ops/elementwise.h"

namespace outrace::optim {
namespace {
enum : size_t { kOneMinusBeta1, kBeta2, kEps, kStepSize };
}

Adamax::Adamax(const ParameterGroups& parameters, const AdamaxOptions& o)
    : Optimizer("Adamax", parameters, {.lr = o.lr, .weight_decay = o.weight_decay, .momentum = o.beta1},
                {.maximize = o.maximize}),
      options_(o) {
  require(o.beta1 < 1, "beta1 must be below 1", o.beta1);
  require(o.beta2 >= 0 && o.beta2 < 1, "beta2 must be in [0, 1)", o.beta2);
  require(o.eps >= 0, "eps must not be negative", o.eps);
}

std::vector<double> Adamax::numbers(const Group& g, int64_t t) const {
  return {1 - g.momentum, options_.beta2, options_.eps, g.lr / (1 - std::pow(g.momentum, static_cast<double>(t)))};
}

Tensor Adamax::update(const Tensor& p, const Tensor& g, std::vector<Tensor>& state, const Numbers& n) const {
  Tensor &m = state[0], &largest = state[1];
  m = m + (g - m) * n[kOneMinusBeta1];
  largest = maximum(largest * n[kBeta2], abs(g) + n[kEps]);
  return p - (m / largest) * n[kStepSize];
}

}  // namespace outrace::optim
