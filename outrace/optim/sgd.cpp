#include "outrace/optim/sgd.h"

#include "outrace/ops/ops.h"

namespace outrace::optim {

SGD::SGD(std::vector<Tensor> parameters, const SGDOptions& options)
    : Optimizer(std::move(parameters)), options_(options) {
  lr_ = options.lr;
}

void SGD::set_numbers() {
  rate_.set(lr());
  momentum_.set(options_.momentum);
  decay_.set(options_.weight_decay);
}

void SGD::update(Tensor& p, const Tensor& gradient, std::vector<Tensor>& state, int64_t) {
  const Tensor g = options_.weight_decay != 0 ? gradient + p * decay_.like(p) : gradient;
  if (options_.momentum == 0) {
    p.assign(p - g * rate_.like(p));
    return;
  }
  if (state.empty()) state = {zeros_like(p)};
  Tensor b1 = state[0] * momentum_.like(p) + g;
  Tensor p1 = p - b1 * rate_.like(p);
  p.assign(std::move(p1));
  state[0].assign(std::move(b1));
}

}  // namespace outrace::optim
