#include "outrace/optim/rmsprop.h"

#include "outrace/ops/elementwise.h"

namespace outrace::optim {
namespace {
enum : size_t { kRate, kAlpha, kOneMinusAlpha, kEps, kMomentum };
}

RMSprop::RMSprop(const ParameterGroups& parameters, const RMSpropOptions& o)
    : Optimizer("RMSprop", parameters, {.lr = o.lr, .weight_decay = o.weight_decay, .momentum = o.momentum},
                {.maximize = o.maximize}),
      options_(o) {
  require(o.alpha >= 0 && o.alpha < 1, "alpha must be in [0, 1)", o.alpha);
  require(o.eps >= 0, "eps must not be negative", o.eps);
  for (const Group& g : groups())
    require((g.momentum == 0) == (o.momentum == 0), "momentum must be 0 in all groups or in none", g.momentum);
}

std::vector<std::string> RMSprop::state_names() const {
  std::vector<std::string> names{"square_avg"};
  if (options_.centered) names.emplace_back("grad_avg");
  if (options_.momentum != 0) names.emplace_back("momentum_buffer");
  return names;
}

std::vector<double> RMSprop::numbers(const Group& g, int64_t) const {
  return {g.lr, options_.alpha, 1 - options_.alpha, options_.eps, g.momentum};
}

Tensor RMSprop::update(const Tensor& p, const Tensor& g, std::vector<Tensor>& state, const Numbers& n) const {
  Tensor& square = state[0];
  square = square * n[kAlpha] + (g * g) * n[kOneMinusAlpha];
  Tensor variance = square;
  if (options_.centered) {
    Tensor& mean = state[1];
    mean = mean + (g - mean) * n[kOneMinusAlpha];
    variance = relu(square - mean * mean);
  }
  const Tensor step = g / (sqrt(variance) + n[kEps]);
  if (options_.momentum == 0) return p - step * n[kRate];
  Tensor& buffer = state.back();
  buffer = buffer * n[kMomentum] + step;
  return p - buffer * n[kRate];
}

}  // namespace outrace::optim
