// What part of a step's time does not shrink with the network: a line through measured times.
#pragma once
#include <span>

namespace outrace::app {

struct TimedSize {
  double flops;  // of a step
  double ms;
};

// ms = fixed_ms + flops * ms_per_flop.
struct StepCost {
  double fixed_ms = 0, ms_per_flop = 0;
  double fixed_share(double flops) const { return fixed_ms / (fixed_ms + flops * ms_per_flop); }
};

// Least squares of the RELATIVE errors, neither part below 0: every size counts alike, whatever its time.
StepCost fit_step_cost(std::span<const TimedSize> points);

}  // namespace outrace::app
