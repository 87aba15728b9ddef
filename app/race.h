// What the parts of `race` share: its options and what one device achieved.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "app/command.h"
#include "app/network.h"
#include "app/timing.h"

namespace outrace::app {

struct RaceOptions {
  Sizes sizes;
  int64_t batches = 1000;
  double lr = 1e-3;
  uint64_t seed = 1;
  std::vector<std::string> device_names;
  bool all = false;  // also OpenCL devices that are the CPU in disguise
  bool no_digits = false;
  int64_t epochs = 60;
  double at_least = 0;  // digits accuracy that must be reached
  std::string sweep;    // "width", "batch" or empty
};

struct Result {
  Device device;
  int64_t steps = 0;  // done; fewer than asked for after a signal
  Timing timing;
  double warm_up_ms = 0;  // all of the first kWarmUp steps
  double first_loss = 0, last_loss = 0;
  double transfer_bytes = 0;  // a step, both ways between the host and a device with a memory of its own
  std::optional<double> digits_accuracy = {};  // share of the held-out digits, when that training was finished
};

constexpr int64_t kRaceWarmUp = 3;

// The devices asked for, else all found (of OpenCL's CPU devices only with --all). Throws UsageError or Error(device).
std::vector<Device> race_devices(const RaceOptions& options);
// A device's measured peak in f32; 0 when it has none.
double peak_gflops(Device device);
// Throws Error(diverged), saying `when`, unless the loss is a finite number.
void check_loss(double loss, Device device, const std::string& when, const RaceOptions& options);

// Trains the article's network, printing as it goes. Throws Error(diverged).
Result train_article(Device device, const RaceOptions& options, bool prints);
// The digits' held-out accuracy after training; nothing when a signal came.
std::optional<double> train_digits(Device device, const RaceOptions& options, bool prints);
// Milliseconds of one step of this network, the best of kStepSamples; nothing when a signal came.
constexpr int kStepSamples = 7;
std::optional<double> time_step(const Sizes& sizes, Device device, const RaceOptions& options);
// The device on which this network's step is fastest, of those found: measured once for a network, batch and set of
// devices, then remembered in a file. Says which and why.
Device fastest_device(const RaceOptions& options);
// race --sweep.
int sweep(const Common& common, const RaceOptions& options);

}  // namespace outrace::app
