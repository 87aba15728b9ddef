// What all optimizers share: the parameters in their groups, the state, and a step that becomes part of the graph.
// Arithmetic and state of f16 and bf16 parameters are f32; only the new parameter is rounded.
#pragma once
#include <limits>
#include <map>
#include <memory>
#include <string_view>
#include <vector>

#include "outrace/optim/parameter_group.h"
#include "outrace/optim/state_dict.h"
#include "outrace/optim/step_number.h"

namespace outrace::optim {

struct StepOptions {
  bool keep_grads = false;  // store the gradients, so that grad() can be read afterwards
};

class Optimizer {
 public:
  struct Group {
    double lr = 0, weight_decay = 0;
    double momentum = std::numeric_limits<double>::quiet_NaN();  // SGD, RMSprop; beta1 of Adam's kin; NaN: has none
    std::optional<DType> state_dtype = {};
    // What schedulers start from: the rate when the first one was made. NaN before.
    double initial_lr = std::numeric_limits<double>::quiet_NaN();
  };

  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // Updates every parameter that has a gradient and runs all that this thread recorded. The gradients are used up.
  // When it throws (a label out of range, no memory), parameters, state and step count are as before.
  void step(const StepOptions& options = {}, std::source_location where = std::source_location::current());
  void zero_grad();
  // Of all groups, in order.
  std::vector<Tensor> parameters() const;

  // Learning rates and momenta are inputs of the program: changing them needs no recompilation.
  double lr(size_t group = 0) const { return groups_.at(group).lr; }
  void set_lr(double lr);  // of every group
  void set_lr(size_t group, double lr) { groups_.at(group).lr = lr; }
  // Throws Error(value) when the optimizer has no momentum, or one of 0 would start or stop.
  void set_momentum(size_t group, double momentum);
  void set_initial_lr(size_t group, double lr) { groups_.at(group).initial_lr = lr; }
  const std::vector<Group>& groups() const { return groups_; }
  int64_t steps() const { return steps_; }

  // Everything a resumed run needs, under the parameters' names: "state.fc1.weight.exp_avg", "state.fc1.weight.step",
  // "param_groups.0.lr", "steps". Later steps do not change what was returned.
  StateDict state_dict() const;
  // Matches by name and restores verbatim, dtypes included. Throws Error(value) that lists names missing, unexpected
  // and misshapen; nothing is changed then.
  void load_state_dict(const StateDict& state);

 protected:
  struct Rules {
    bool maximize = false;         // ascend
    bool decoupled_decay = false;  // weight times 1 - lr * decay first (AdamW) instead of gradient plus weight * decay
  };
  // `name` is that of the optimizer in error texts. The defaults are for groups that do not say otherwise.
  Optimizer(std::string_view name, const ParameterGroups& parameters, const Group& defaults, const Rules& rules);

  // The numbers of one update beside the tensors, as 0-dim tensors of the type of the arithmetic.
  class Numbers {
   public:
    const Tensor& operator[](size_t i) const { return (*values_)[i].like(*like_); }

   private:
    friend Optimizer;
    Numbers(std::vector<StepNumber>& values, const Tensor& like) : values_(&values), like_(&like) {}
    std::vector<StepNumber>* values_;
    const Tensor* like_;
  };

  // Names of the tensors kept for each parameter, as in PyTorch's state.
  virtual std::vector<std::string> state_names() const = 0;
  virtual double initial_state() const { return 0; }
  // What host code computes for the `t`-th update (from 1) of a parameter; called at each step and each replay.
  virtual std::vector<double> numbers(const Group& group, int64_t t) const = 0;
  // Records the update of one parameter, elementwise: returns its new value and replaces the entries of `state`. Decay
  // and the sign of maximize are already in p and g.
  virtual Tensor update(const Tensor& p, const Tensor& g, std::vector<Tensor>& state, const Numbers& n) const = 0;

  void require(bool holds, std::string_view what, double got) const;

 private:
  struct Entry {
    Tensor parameter;
    std::string name;
    size_t group = 0;
    std::vector<Tensor> state = {};
    int64_t updates = 0;
  };
  // The numbers of the parameters of a group that have had the same number of updates. The last one is the decay.
  struct NumberSet {
    std::vector<StepNumber> values;
    uint64_t set_in = 0;  // the run that filled them
  };
  using Used = std::vector<std::pair<std::shared_ptr<NumberSet>, std::vector<size_t>>>;

  void advance(const std::vector<size_t>& updated);
  void step_back(const std::vector<size_t>& updated);
  void fill(NumberSet& set, const Group& group, int64_t updates) const;
  Used number_sets(const std::vector<size_t>& updated);
  void record_update(Entry& e, const Tensor& gradient, NumberSet& set);
  void check_replay(const Used& used) const;
  void replay(const std::vector<size_t>& updated, const Used& used);

  std::string name_;
  Rules rules_;
  std::vector<Group> groups_;
  std::vector<Entry> entries_;
  std::map<std::pair<size_t, int64_t>, std::shared_ptr<NumberSet>> numbers_;  // by group and steps missed
  int64_t steps_ = 0;
  uint64_t run_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // recordings hold it weakly
};

}  // namespace outrace::optim
