// The race's second part: handwritten digits, so that the table also shows that the device learns.
#include <fmt/format.h>

#include "app/race.h"
#include "app/signals.h"
#include "app/table.h"
#include "app/terminal.h"
#include "outrace/data/metrics.h"

namespace outrace::app {
namespace {

constexpr double kTestShare = 0.2;
constexpr int64_t kBatch = 64, kTestBatch = 360;  // the 359 held out are one batch
constexpr int64_t kReports = 6;

double evaluate(nn::Module& network, data::DataLoader& loader) {
  NoGrad no_grad;
  network.eval();
  int64_t correct = 0;
  loader.start_epoch(0);
  while (auto batch = loader.next()) correct += data::count_correct(network(batch->inputs), batch->labels);
  network.train();
  return static_cast<double>(correct) / static_cast<double>(loader.rows());
}

}  // namespace

std::optional<double> train_digits(Device device, const RaceOptions& options, bool prints) {
  const Digits& digits = load_digits();
  const Split split = split_indices(digits.count, kTestShare, options.seed);
  data::DataLoader train_set(digits.images, {Digits::kPixels}, digits.labels, split.train,
                             {.batch_size = kBatch, .shuffle = true, .seed = options.seed, .device = device});
  data::DataLoader test_set(digits.images, {Digits::kPixels}, digits.labels, split.test,
                            {.batch_size = kTestBatch, .device = device});

  manual_seed(options.seed);
  Training training({Digits::kPixels, options.sizes.hidden, 10, kBatch}, {.device = device, .lr = options.lr});
  if (prints)
    out(fmt::format("Handwritten digits on {}, {} to learn from, {} held out\n", device.str(), train_set.rows(),
                    test_set.rows()));
  const int64_t report_every = (options.epochs + kReports - 1) / kReports;
  double accuracy = 0;
  for (int64_t epoch = 0; epoch < options.epochs; ++epoch) {
    Tensor loss;
    train_set.start_epoch(epoch);
    while (auto batch = train_set.next()) {
      loss = training.step(batch->inputs, batch->labels);
      if (stop_signal() != 0) return std::nullopt;
    }
    progress(fmt::format("{}: digits, epoch {} of {}", device.str(), epoch + 1, options.epochs));
    if ((epoch + 1) % report_every != 0 && epoch + 1 != options.epochs) continue;
    check_loss(loss.item(), device, fmt::format("after epoch {} of the digits", epoch + 1), options);
    accuracy = evaluate(training.network(), test_set);
    if (prints)
      out(fmt::format("Epoch [{}/{}], Loss: {:.4f}, Held out: {} right\n", epoch + 1, options.epochs, loss.item(),
                      percent(accuracy, 1)));
  }
  return accuracy;
}

}  // namespace outrace::app
