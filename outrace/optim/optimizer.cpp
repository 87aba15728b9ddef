#include "outrace/optim/optimizer.h"

namespace outrace::optim {

Optimizer::Optimizer(std::vector<Tensor> parameters) {
  if (parameters.empty()) fail(ErrorKind::value, "[optimizer] got no parameters");
  for (Tensor& p : parameters) {
    if (!p.requires_grad())
      fail(ErrorKind::value, "[optimizer] a parameter of shape ", p.shape(), " does not require a gradient");
    entries_.push_back({std::move(p), {}, 0});
  }
}

void Optimizer::zero_grad() {
  for (Entry& e : entries_) e.parameter.zero_grad();
}

void Optimizer::advance(const std::vector<size_t>& updated) {
  ++steps_;
  for (size_t i : updated) ++entries_[i].updates;
  set_numbers();
}

void Optimizer::step_back(const std::vector<size_t>& updated) {
  --steps_;
  for (size_t i : updated) --entries_[i].updates;
}

void Optimizer::step(const StepOptions& options, std::source_location where) {
  NoGrad off;
  Recorder& recorder = Recorder::current();
  std::vector<size_t> updated;
  for (size_t i = 0; i < entries_.size(); ++i)
    if (entries_[i].parameter.slot().grad) updated.push_back(i);
  advance(updated);
  if (recorder.capture) {
    recorder.capture->on_replay.push_back([this, updated, alive = std::weak_ptr<bool>(alive_)] {
      if (alive.expired()) fail(ErrorKind::state, "[capture] the optimizer of this captured step was destroyed");
      advance(updated);
    });
    recorder.capture->on_failure.push_back([this, updated] { step_back(updated); });
  }
  std::vector<Tensor> kept;
  for (size_t i : updated) {
    Entry& e = entries_[i];
    Slot& slot = e.parameter.slot();
    const Tensor g(slot.grad);
    update(e.parameter, g, e.state, steps_ - e.updates);
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
    step_back(updated);
    throw;
  }
}

}  // namespace outrace::optim
