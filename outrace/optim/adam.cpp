#include "outrace/optim/adam.h"

#include <cmath>

#include "outrace/ops/ops.h"

namespace outrace::optim {

Adam::Adam(std::vector<Tensor> parameters, const AdamOptions& options, bool decoupled)
    : Optimizer(std::move(parameters)), options_(options), decoupled_(decoupled) {
  lr_ = options.lr;
}

void Adam::set_numbers() {
  one_minus_beta1_.set(1 - options_.beta1);
  beta2_.set(options_.beta2);
  one_minus_beta2_.set(1 - options_.beta2);
  eps_.set(options_.eps);
  decay_.set(decoupled_ ? 1 - lr() * options_.weight_decay : options_.weight_decay);
  for (auto& [missed, correction] : corrections_) set(correction, steps() - missed);
}

void Adam::set(Correction& c, int64_t updates) {
  const auto t = static_cast<double>(updates);
  c.inverse_root_of_bias2.set(1 / std::sqrt(1 - std::pow(options_.beta2, t)));
  c.step_size.set(lr() / (1 - std::pow(options_.beta1, t)));
}

void Adam::update(Tensor& p, const Tensor& gradient, std::vector<Tensor>& state, int64_t missed) {
  const auto [found, fresh] = corrections_.try_emplace(missed);
  Correction& correction = found->second;
  if (fresh) set(correction, steps() - missed);
  if (state.empty()) state = {zeros_like(p), zeros_like(p)};
  Tensor &m = state[0], &v = state[1];
  const bool decays = options_.weight_decay != 0;
  const Tensor g = decays && !decoupled_ ? gradient + p * decay_.like(p) : gradient;
  const Tensor start = decays && decoupled_ ? p * decay_.like(p) : p;
  Tensor m1 = m + (g - m) * one_minus_beta1_.like(p);
  Tensor v1 = v * beta2_.like(p) + (g * g) * one_minus_beta2_.like(p);
  Tensor p1 = start - (m1 / (sqrt(v1) * correction.inverse_root_of_bias2.like(p) + eps_.like(p))) *
                          correction.step_size.like(p);
  p.assign(std::move(p1));
  m.assign(std::move(m1));
  v.assign(std::move(v1));
}

}  // namespace outrace::optim
