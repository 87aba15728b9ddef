// The time of one step of a network: what a sweep and the choice of the fastest device measure.
#include <fmt/format.h>

#include <cmath>

#include "app/race.h"
#include "app/signals.h"

namespace outrace::app {
namespace {

constexpr int64_t kMostBytes = int64_t{1} << 25;  // of data for one size: beyond most caches, quickly made
constexpr double kWarmUpMs = 50;
constexpr double kSampleMs = 20;

}  // namespace

std::optional<double> time_step(const Sizes& sizes, Device device, const RaceOptions& options) {
  manual_seed(options.seed);
  const Batches batches(sizes, options.batches, kMostBytes, DType::f32, device);
  Training training(sizes, {.device = device, .lr = options.lr});
  int64_t next = 0;
  Tensor loss;
  const auto run = [&](int64_t steps) {
    for (int64_t i = 0; i < steps && stop_signal() == 0; ++i, ++next)
      loss = training.step(batches.inputs[next % batches.count], batches.labels[next % batches.count]);
    if (loss.defined()) loss.item();
  };
  const Stopwatch warm_up;
  run(kRaceWarmUp);
  double step_ms = warm_up.ms();
  while (warm_up.ms() < kWarmUpMs && stop_signal() == 0) {
    const Stopwatch watch;
    run(1);
    step_ms = watch.ms();
  }
  Timing timing{.steps_a_sample = std::max<int64_t>(1, std::llround(kSampleMs / step_ms))};
  for (int i = 0; i < kStepSamples && stop_signal() == 0; ++i) {
    const Stopwatch watch;
    run(timing.steps_a_sample);
    timing.samples.push_back(watch.ms() / static_cast<double>(timing.steps_a_sample));
  }
  if (stop_signal() != 0) return std::nullopt;
  check_loss(loss.item(), device, fmt::format("after {} steps", next), options);
  return timing.best();
}

}  // namespace outrace::app
