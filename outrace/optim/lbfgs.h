// L-BFGS (Nocedal, Math. Comp. 1980; strong Wolfe line search: Nocedal and Wright, 2nd edition, algorithms 3.5
// and 3.6), PyTorch's loop and options. The host drives it: directions and inner products are flat vectors of doubles
// there, whatever the parameters' dtype; loss and gradient are programs.
#pragma once
#include <deque>
#include <functional>

#include "outrace/optim/parameter_group.h"
#include "outrace/optim/state_dict.h"

namespace outrace::optim {

enum class LineSearch : uint8_t { none, strong_wolfe };

struct LBFGSOptions {
  double lr = 1;
  int64_t max_iter = 20;         // iterations of one step()
  int64_t max_eval = 0;          // evaluations of one step(); 0: max_iter * 5 / 4
  double tolerance_grad = 1e-7;  // stops at this largest gradient
  double tolerance_change = 1e-9;
  int64_t history_size = 100;
  LineSearch line_search = LineSearch::none;
};

class LBFGS {
 public:
  // Clears the gradients, computes the loss, calls backward() and returns the loss; called several times a step.
  using Closure = std::function<Tensor()>;

  explicit LBFGS(const ParameterGroups& parameters, const LBFGSOptions& options = {});
  LBFGS(const LBFGS&) = delete;
  LBFGS& operator=(const LBFGS&) = delete;

  // Up to max_iter iterations; returns the loss before them. When the closure throws, parameters and state are as
  // before.
  double step(const Closure& closure);
  void zero_grad();

  double lr() const { return options_.lr; }
  void set_lr(double lr) { options_.lr = lr; }
  int64_t iterations() const { return state_.iterations; }
  int64_t evaluations() const { return state_.evaluations; }

  // Under the parameters' names, in f64: "state.w.d", "state.w.old_dirs" [pairs, ...w's shape], ...
  StateDict state_dict() const;
  // By name; throws Error(value) that lists what does not fit and changes nothing then.
  void load_state_dict(const StateDict& state);

 private:
  using Vector = std::vector<double>;
  struct State {
    int64_t iterations = 0, evaluations = 0;
    double step = 0, scale = 1;                  // PyTorch's t and H_diag
    Vector direction, gradient;                  // of the last iteration; empty before the first
    std::deque<Vector> gradient_changes, moves;  // PyTorch's old_dirs and old_stps, oldest first
  };
  struct Point {  // on the line: step, loss, gradient, slope along the direction
    double t, loss;
    Vector gradient;
    double slope;
  };
  double evaluate(const Closure& closure, Vector& gradient, State& s) const;
  Vector values() const;
  void set_values(const Vector& x) const;
  void find_direction(State& s, const Vector& gradient) const;
  double iterate(const Closure& closure, State& s) const;
  Point line_search(const Closure& closure, State& s, const Vector& x, const Point& start, double t) const;

  LBFGSOptions options_;
  std::vector<std::pair<std::string, Tensor>> parameters_;
  State state_;
};

}  // namespace outrace::optim
