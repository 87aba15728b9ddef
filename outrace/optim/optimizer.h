// What all optimizers share: the parameters, their state, and a step that becomes part of the graph.
#pragma once
#include <memory>
#include <vector>

#include "outrace/graph/recorder.h"
#include "outrace/graph/tensor.h"

namespace outrace::optim {

struct StepOptions {
  bool keep_grads = false;  // store the gradients, so that grad() can be read afterwards
};

class Optimizer {
 public:
  explicit Optimizer(std::vector<Tensor> parameters);
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // Updates every parameter that has a gradient and runs all that this thread recorded. The gradients are used up.
  // When it throws (a label out of range, no memory), parameters, state and step count are as before.
  void step(const StepOptions& options = {}, std::source_location where = std::source_location::current());
  void zero_grad();

  double lr() const { return lr_; }
  void set_lr(double lr) { lr_ = lr; }  // an input of the program: no recompilation
  int64_t steps() const { return steps_; }

 protected:
  // A number of the update that host code computes anew at each step: learning rate, bias correction.
  class StepNumber {
   public:
    void set(double v) {
      value_->real = v;
      last_ = Tensor();
    }
    // The number beside `t`; parameters of one dtype and device share it.
    const Tensor& like(const Tensor& t) {
      if (!last_.defined() || last_.dtype() != t.dtype() || last_.device() != t.device())
        last_ = scalar(*value_, t.dtype(), t.device(), value_);
      return last_;
    }

   private:
    ScalarSource value_ = std::make_shared<ScalarValue>();
    Tensor last_;
  };

  // Called at each step and at each replay of a captured one; steps() is already the new count.
  virtual void set_numbers() = 0;
  // Records the update of one parameter from its gradient. `state` holds what earlier calls put there; `missed` counts
  // the steps in which the parameter had no gradient: it has been updated steps() - missed times, this one included.
  virtual void update(Tensor& p, const Tensor& g, std::vector<Tensor>& state, int64_t missed) = 0;

  double lr_ = 0;

 private:
  struct Entry {
    Tensor parameter;
    std::vector<Tensor> state;
    int64_t updates = 0;
  };
  void advance(const std::vector<size_t>& updated);
  void step_back(const std::vector<size_t>& updated);
  std::vector<Entry> entries_;
  int64_t steps_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // recordings hold it weakly
};

}  // namespace outrace::optim
