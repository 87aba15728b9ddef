// The race's first part: the article's program, timed.
#include <fmt/format.h>

#include "app/race.h"
#include "app/signals.h"
#include "app/terminal.h"
#include "outrace/core/profile.h"

namespace outrace::app {
namespace {

constexpr int64_t kMostBytes = int64_t{1} << 28;  // the article's data, 1000 batches of 64 x 1000, are 0.95 of it
constexpr int64_t kReports = 10;
constexpr double kProgressMs = 100;

}  // namespace

Result train_article(Device device, const RaceOptions& options, bool prints) {
  progress(fmt::format("{}: making random data", device.str()));
  manual_seed(options.seed);
  const Batches batches(options.sizes, options.batches, kMostBytes, DType::f32, device);
  Training training(options.sizes, {.device = device, .lr = options.lr});
  const int64_t report_every = (options.batches + kReports - 1) / kReports;

  const auto checked = [&](const Tensor& loss, int64_t step) {
    check_loss(loss.item(), device, fmt::format("at batch {} of {}", step, options.batches), options);
    return loss.item();
  };
  Result result{.device = device, .timing = {.steps_a_sample = report_every}};
  if (prints) out(fmt::format("Training on {}\n", device.str()));
  Stopwatch since_start, since_report, since_progress;
  Transfers before = transfers();
  int64_t counted_from = 0;
  int64_t counted = 0;  // steps since `since_report` began
  Tensor loss;
  for (int64_t i = 0; i < options.batches && stop_signal() == 0; ++i) {
    loss = training.step(batches.inputs[i % batches.count], batches.labels[i % batches.count]);
    result.steps = i + 1;
    ++counted;
    if (i == 0) result.first_loss = checked(loss, 1);
    if ((i + 1) % report_every == 0 || i + 1 == options.batches) {
      result.last_loss = checked(loss, i + 1);
      // A shorter rest at the end is no sample of its own.
      if (counted * 2 >= report_every)
        result.timing.samples.push_back(since_report.ms() / static_cast<double>(counted));
      if (prints) out(fmt::format("Batch [{}/{}], Loss: {:.4f}\n", i + 1, options.batches, result.last_loss));
      since_report = Stopwatch();
      counted = 0;
    }
    if (since_progress.ms() > kProgressMs) {
      progress(fmt::format("{}: batch {} of {}", device.str(), i + 1, options.batches));
      since_progress = Stopwatch();
    }
    if (i + 1 == kRaceWarmUp && options.batches > kRaceWarmUp) {
      loss.item();
      result.warm_up_ms = since_start.ms();
      result.timing.samples.clear();
      before = transfers();
      counted_from = result.steps;
      since_report = Stopwatch();
      counted = 0;
    }
  }
  if (stop_signal() != 0 && loss.defined()) {
    result.last_loss = checked(loss, result.steps);
    if (result.timing.samples.empty() && counted > 0)
      result.timing.samples.push_back(since_report.ms() / static_cast<double>(counted));
  }
  const Transfers now = transfers();
  if (result.steps > counted_from)
    result.transfer_bytes =
        static_cast<double>(now.to_devices - before.to_devices + now.from_devices - before.from_devices) /
        static_cast<double>(result.steps - counted_from);
  return result;
}

}  // namespace outrace::app
