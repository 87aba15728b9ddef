#include "outrace/optim/sgd.h"

#include "outrace/ops/elementwise.h"

namespace outrace::optim {
namespace {
enum : size_t { kRate, kMomentum, kFresh };
}

SGD::SGD(const ParameterGroups& parameters, const SGDOptions& o)
    : Optimizer("SGD", parameters, {.lr = o.lr, .weight_decay = o.weight_decay, .momentum = o.momentum},
                {.maximize = o.maximize}),
      options_(o) {
  for (const Group& g : groups()) {
    require((g.momentum == 0) == (o.momentum == 0), "momentum must be 0 in all groups or in none", g.momentum);
    require(!o.nesterov || (g.momentum > 0 && o.dampening == 0), "nesterov needs a momentum and no dampening",
            g.momentum > 0 ? o.dampening : g.momentum);
  }
}

std::vector<std::string> SGD::state_names() const {
  return options_.momentum != 0 ? std::vector<std::string>{"momentum_buffer"} : std::vector<std::string>{};
}

std::vector<double> SGD::numbers(const Group& g, int64_t t) const {
  return {g.lr, g.momentum, t == 1 ? 1 : 1 - options_.dampening};
}

Tensor SGD::update(const Tensor& p, const Tensor& g, std::vector<Tensor>& state, const Numbers& n) const {
  if (state.empty()) return p - g * n[kRate];
  Tensor& buffer = state[0];
  const Tensor fresh = options_.dampening != 0 ? g * n[kFresh] : g;
  buffer = buffer * n[kMomentum] + fresh;
  return p - (options_.nesterov ? g + buffer * n[kMomentum] : buffer) * n[kRate];
}

}  // namespace outrace::optim
