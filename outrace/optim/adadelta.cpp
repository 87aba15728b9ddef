#include "outrace/optim/adadelta.h"

#include "outrace/ops/elementwise.h"

namespace outrace::optim {
namespace {
enum : size_t { kRate, kRho, kOneMinusRho, kEps };
}

Adadelta::Adadelta(const ParameterGroups& parameters, const AdadeltaOptions& o)
    : Optimizer("Adadelta", parameters, {.lr = o.lr, .weight_decay = o.weight_decay}, {.maximize = o.maximize}),
      options_(o) {
  require(o.rho >= 0 && o.rho <= 1, "rho must be in [0, 1]", o.rho);
  require(o.eps >= 0, "eps must not be negative", o.eps);
}

std::vector<double> Adadelta::numbers(const Group& g, int64_t) const {
  return {g.lr, options_.rho, 1 - options_.rho, options_.eps};
}

Tensor Adadelta::update(const Tensor& p, const Tensor& g, std::vector<Tensor>& state, const Numbers& n) const {
  Tensor &square = state[0], &moved = state[1];
  square = square * n[kRho] + (g * g) * n[kOneMinusRho];
  const Tensor delta = sqrt(moved + n[kEps]) / sqrt(square + n[kEps]) * g;
  moved = moved * n[kRho] + (delta * delta) * n[kOneMinusRho];
  return p - delta * n[kRate];
}

}  // namespace outrace::optim
