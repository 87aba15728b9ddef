// Learning rate schedulers under PyTorch's names and options. All but ReduceLROnPlateau are closed forms of the epoch:
// a resumed schedule continues bit for bit, and nothing accumulates. Construct one, then call step() after each epoch
// (or batch); the rate of epoch 0 is set at once.
//
// A scheduler is its optimizer, a rule and a position; the classes below only make rules. Those given to SequentialLR,
// ChainedScheduler or WarmupLR serve as rules of the rate alone.
#pragma once
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "outrace/optim/optimizer.h"

namespace outrace::optim {

class LRScheduler {
 public:
  // Moves on by one epoch. Throws Error(value) past the end of a schedule that has one (OneCycleLR); the rates stay
  // then.
  void step();
  int64_t epoch() const { return epoch_; }
  // The rate of a group at any epoch.
  double lr_at(int64_t epoch, size_t group = 0) const { return rule_.lr(base_.at(group), epoch, group); }

  // "epoch" and "base_lrs.<group>".
  StateDict state_dict() const;
  // Sets the optimizer's rates too. Throws Error(value) that lists what does not fit; nothing is changed then.
  void load_state_dict(const StateDict& state);

 protected:
  struct Rule {
    std::function<double(double base, int64_t epoch, size_t group)> lr;
    std::function<double(int64_t epoch)> momentum = nullptr;  // where the schedule moves it too
    int64_t steps = std::numeric_limits<int64_t>::max();      // how often step() may be called
  };
  LRScheduler(Optimizer& optimizer, Rule rule, const char* name);
  static const Rule& rule_of(const LRScheduler& s) { return s.rule_; }

 private:
  void set_rates(int64_t epoch) const;
  Optimizer* optimizer_;
  Rule rule_;
  const char* name_;
  std::vector<double> base_;  // the rates when the optimizer got its first scheduler
  int64_t epoch_ = 0;
};

struct StepLROptions {
  int64_t step_size;
  double gamma = 0.1;
};
// base * gamma^floor(epoch / step_size).
struct StepLR : LRScheduler {
  StepLR(Optimizer& optimizer, const StepLROptions& options);
};

struct MultiStepLROptions {
  std::vector<int64_t> milestones;  // ascending
  double gamma = 0.1;
};
// base * gamma^(milestones reached).
struct MultiStepLR : LRScheduler {
  MultiStepLR(Optimizer& optimizer, const MultiStepLROptions& options);
};

// base * gamma^epoch.
struct ExponentialLR : LRScheduler {
  ExponentialLR(Optimizer& optimizer, double gamma);
};

struct ConstantLROptions {
  double factor = 1.0 / 3;
  int64_t total_iters = 5;
};
// base * factor, from epoch total_iters on base.
struct ConstantLR : LRScheduler {
  ConstantLR(Optimizer& optimizer, const ConstantLROptions& options = {});
};

struct LinearLROptions {
  double start_factor = 1.0 / 3, end_factor = 1;
  int64_t total_iters = 5;
};
// base * factor, which goes in a straight line from start_factor at epoch 0 to end_factor at total_iters.
struct LinearLR : LRScheduler {
  LinearLR(Optimizer& optimizer, const LinearLROptions& options = {});
};

struct PolynomialLROptions {
  int64_t total_iters = 5;
  double power = 1;
};
// base * (1 - epoch / total_iters)^power, then 0.
struct PolynomialLR : LRScheduler {
  PolynomialLR(Optimizer& optimizer, const PolynomialLROptions& options = {});
};

struct CosineAnnealingLROptions {
  int64_t t_max;
  double eta_min = 0;
};
// eta_min + (base - eta_min) * (1 + cos(pi * epoch / t_max)) / 2 (Loshchilov and Hutter, ICLR 2017, without restarts);
// past t_max it rises again, as PyTorch's.
struct CosineAnnealingLR : LRScheduler {
  CosineAnnealingLR(Optimizer& optimizer, const CosineAnnealingLROptions& options);
};

struct CosineAnnealingWarmRestartsOptions {
  int64_t t_0, t_mult = 1;
  double eta_min = 0;
};
// The same with restarts: cycles of t_0, t_0 * t_mult, t_0 * t_mult^2, ... epochs, each from base down.
struct CosineAnnealingWarmRestarts : LRScheduler {
  CosineAnnealingWarmRestarts(Optimizer& optimizer, const CosineAnnealingWarmRestartsOptions& options);
};

struct OneCycleLROptions {
  std::vector<double> max_lr;  // one for all groups, or one for each
  int64_t total_steps;
  double pct_start = 0.3;      // the share of steps in which the rate rises
  bool linear = false;         // anneal_strategy: cosine or linear
  bool cycle_momentum = true;  // the momentum falls while the rate rises; refused by optimizers without one
  double base_momentum = 0.85, max_momentum = 0.95;
  double div_factor = 25;         // start: max_lr / div_factor
  double final_div_factor = 1e4;  // end: start / final_div_factor
  bool three_phase = false;       // back to the start symmetrically before the end
};
// Super-convergence's one cycle (Smith and Topin 2019). Rates of steps 0 ... total_steps - 1; step() may be called
// total_steps times (the last call, after the last batch, keeps the final rate), once more is an Error(value).
struct OneCycleLR : LRScheduler {
  OneCycleLR(Optimizer& optimizer, const OneCycleLROptions& options);
};

// base * factor(epoch); one function for all groups, or one for each.
struct LambdaLR : LRScheduler {
  using Factor = std::function<double(int64_t)>;
  LambdaLR(Optimizer& optimizer, Factor factor) : LambdaLR(optimizer, std::vector<Factor>{std::move(factor)}) {}
  LambdaLR(Optimizer& optimizer, std::vector<Factor> factors);
};

// One after another: schedulers[i] from its epoch 0 at milestones[i - 1] on.
struct SequentialLR : LRScheduler {
  SequentialLR(Optimizer& optimizer, const std::vector<LRScheduler>& schedulers, std::vector<int64_t> milestones);
};

// All at once: the rate of each is the base of the next. PyTorch's result where factors are multiplied.
struct ChainedScheduler : LRScheduler {
  ChainedScheduler(Optimizer& optimizer, const std::vector<LRScheduler>& schedulers);
};

// base * (s + 1) / steps in steps s = 0 ... steps - 1, so that no step has the rate 0 and the last is the peak; there
// `then` begins with its own epoch 0. Four steps, then CosineAnnealingLR with t_max 4, of base 1:
//   0.25 0.5 0.75 1 0.854 0.5 0.146 0
struct WarmupLR : LRScheduler {
  WarmupLR(Optimizer& optimizer, int64_t steps);  // then base
  WarmupLR(Optimizer& optimizer, int64_t steps, const LRScheduler& then);
};

struct ReduceLROnPlateauOptions {
  bool max = false;  // mode: the metric should fall, or rise
  double factor = 0.1;
  int64_t patience = 10;  // bad epochs in a row that are borne
  double threshold = 1e-4;
  bool absolute_threshold = false;   // better by threshold, or by the share threshold of the best
  int64_t cooldown = 0;              // epochs after a reduction in which none is bad
  std::vector<double> min_lr = {0};  // one for all groups, or one for each
  double eps = 1e-8;                 // smaller changes of the rate are not made
};
// Reduces the rates when a metric has stopped getting better; PyTorch's rules.
class ReduceLROnPlateau {
 public:
  ReduceLROnPlateau(Optimizer& optimizer, const ReduceLROnPlateauOptions& options = {});
  void step(double metric);

  StateDict state_dict() const;  // with the rates, which it sets when it is loaded
  void load_state_dict(const StateDict& state);

 private:
  bool better(double metric) const;
  Optimizer* optimizer_;
  ReduceLROnPlateauOptions options_;
  double best_;
  int64_t bad_epochs_ = 0, cooldown_left_ = 0, epoch_ = 0;
};

}  // namespace outrace::optim
