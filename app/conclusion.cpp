#include "app/conclusion.h"

#include <fmt/format.h>

#include "app/table.h"

namespace outrace::app {
namespace {

constexpr double kMuch = 0.5;  // a fixed part above this share of the time: size hardly matters any more

}  // namespace

std::vector<Point> of_device(const std::vector<Point>& points, Device device) {
  std::vector<Point> out;
  for (const Point& p : points)
    if (p.device == device) out.push_back(p);
  return out;
}

StepCost cost_of(const std::vector<Point>& points) {
  std::vector<TimedSize> sizes;
  for (const Point& p : points) sizes.push_back({p.sizes.flops(), p.ms});
  return fit_step_cost(sizes);
}

std::string conclusion(const std::vector<Point>& points, const std::string& what) {
  const Point &small = points.front(), &large = points.back();
  const StepCost cost = cost_of(points);
  std::string text =
      fmt::format("{}: from {} {} down to {} the arithmetic shrinks {}-fold, the time {}-fold.", small.device.str(),
                  what, large.size, small.size, significant(large.sizes.flops() / small.sizes.flops(), 2),
                  significant(large.ms / small.ms, 2));
  if (cost.fixed_ms == 0) return text + " No cost shows that is there however small the network is.";
  text += fmt::format(" A step costs {} ms however small it is, and {} ms for each GFLOP.",
                      significant(cost.fixed_ms, 2), significant(cost.ms_per_flop * 1e9, 2));
  const double smallest_share = cost.fixed_share(small.sizes.flops());
  const Point* limit = nullptr;  // the largest size whose time is mostly fixed
  for (const Point& p : points)
    if (cost.fixed_share(p.sizes.flops()) >= kMuch) limit = &p;
  if (limit == nullptr)
    return text + fmt::format(" That fixed part is {} of the time at {} {}: down to there, less arithmetic saves time.",
                              percent(smallest_share), what, small.size);
  text += fmt::format(" At {} {}", what, limit->size);
  if (limit->size != small.size) text += " and below";
  text += fmt::format(" that fixed part is most of the time ({}", percent(smallest_share));
  if (limit->size != small.size) text += fmt::format(" at {}", small.size);
  return text + "): there, less arithmetic saves little time.";
}

std::string crossing(const std::vector<Point>& cpu, const std::vector<Point>& other, const std::string& what) {
  const Point* from = nullptr;
  for (size_t i = cpu.size(); i-- > 0 && other[i].ms < cpu[i].ms;) from = &other[i];
  const std::string name = other[0].device.str();
  if (from == nullptr) return fmt::format("{} is not faster than the CPU at the largest size here.", name);
  return fmt::format("{} is faster than the CPU from {} {} on.", name, what, from->size);
}

}  // namespace outrace::app
