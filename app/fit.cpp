#include "app/fit.h"

namespace outrace::app {

StepCost fit_step_cost(std::span<const TimedSize> points) {
  // Minimizes the sum of (1 - fixed * p - slope * q)^2 with p = 1 / ms and q = flops / ms.
  double pp = 0, pq = 0, qq = 0, p = 0, q = 0;
  for (const TimedSize& point : points) {
    const double pi = 1 / point.ms, qi = point.flops / point.ms;
    pp += pi * pi;
    pq += pi * qi;
    qq += qi * qi;
    p += pi;
    q += qi;
  }
  const double determinant = pp * qq - pq * pq;
  if (determinant > 0) {
    const StepCost cost{(p * qq - q * pq) / determinant, (q * pp - p * pq) / determinant};
    if (cost.fixed_ms >= 0 && cost.ms_per_flop >= 0) return cost;
    if (cost.ms_per_flop < 0) return {p / pp, 0};
  }
  return qq > 0 ? StepCost{0, q / qq} : StepCost{};
}

}  // namespace outrace::app
