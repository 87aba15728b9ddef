// Exponential moving average of a module's weights (Polyak and Juditsky 1992; as torch_ema and timm keep it): average =
// decay * average + (1 - decay) * weight after each step. The average starts as a copy of the weights; PyTorch's
// AveragedModel copies at its first update instead. Kept in f32 (f64 for f64 weights).
#pragma once
#include <source_location>
#include <string>
#include <utility>
#include <vector>

#include "outrace/optim/state_dict.h"
#include "outrace/optim/step_number.h"

namespace outrace::nn {
class Module;
}

namespace outrace::optim {

enum class EmaBuffers : uint8_t { keep, copy, average };  // buffers: the module's own, the newest, an average too

struct EmaOptions {
  double decay = 0.999;
  bool warm_up = false;  // decay of update t (from 1): min(decay, (1 + t) / (10 + t)), so that the start fades sooner
  EmaBuffers buffers = EmaBuffers::copy;  // floating point buffers; others are copied by copy and average
};

class Ema {
 public:
  explicit Ema(const nn::Module& module, const EmaOptions& options = {});
  Ema(const Ema&) = delete;
  Ema& operator=(const Ema&) = delete;

  // Takes the weights in; call it after optimizer.step(). Within a captured step it is part of that step.
  // Throws Error(state) between apply() and restore().
  void update(std::source_location where = std::source_location::current());
  // Puts the averages in the module's place, for evaluation, until restore() brings the weights back.
  void apply();
  void restore();
  bool applied() const { return applied_; }
  // Copies the averages into another module of the same names and shapes. Throws Error(value) naming what differs.
  void copy_to(nn::Module& module) const;

  int64_t updates() const { return updates_; }
  // "average.<name>" and "updates".
  StateDict state_dict() const;
  // By name; throws Error(value) that lists what does not fit and changes nothing then.
  void load_state_dict(const StateDict& state);

 private:
  struct Entry {
    std::string name;
    Tensor source, average;
    bool copies;            // the newest value instead of a mean
    Tensor set_aside = {};  // the source's value between apply() and restore()
  };
  void advance();
  void record_averages();

  EmaOptions options_;
  std::vector<Entry> entries_;
  StepNumber rate_;  // 1 - decay
  int64_t updates_ = 0;
  bool applied_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // recordings hold it weakly
};

}  // namespace outrace::optim
