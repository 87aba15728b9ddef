#include "outrace/optim/optimizer.h"

namespace outrace::optim {

Optimizer::Optimizer(std::vector<Tensor> parameters) : parameters_(std::move(parameters)), state_(parameters_.size()) {
  if (parameters_.empty()) fail(ErrorKind::value, "[optimizer] got no parameters");
  for (const Tensor& p : parameters_)
    if (!p.requires_grad())
      fail(ErrorKind::value, "[optimizer] a parameter of shape ", p.shape(), " does not require a gradient");
}

void Optimizer::zero_grad() {
  for (Tensor& p : parameters_) p.zero_grad();
}

void Optimizer::advance() {
  ++steps_;
  set_numbers();
}

void Optimizer::step(const StepOptions& options, std::source_location where) {
  NoGrad off;
  Recorder& recorder = Recorder::current();
  advance();
  if (recorder.capture) {
    recorder.capture->on_replay.push_back([this, alive = std::weak_ptr<bool>(alive_)] {
      if (alive.expired()) fail(ErrorKind::state, "[capture] the optimizer of this captured step was destroyed");
      advance();
    });
    recorder.capture->on_failure.push_back([this] { --steps_; });
  }
  std::vector<Tensor> kept;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    Tensor& p = parameters_[i];
    Slot& slot = p.slot();
    if (!slot.grad) continue;
    const Tensor g(slot.grad);
    update(p, g, state_[i]);
    if (options.keep_grads) {
      kept.push_back(g);
      continue;
    }
    slot.grad.reset();
    slot.grad_state = GradState::consumed;
  }
  if (recorder.capture) return;
  try {
    recorder.flush(where);
  } catch (...) {
    --steps_;
    throw;
  }
}

}  // namespace outrace::optim
