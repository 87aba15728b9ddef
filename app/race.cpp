// `outrace race`: every device trains the article's network, then the digits; one table compares them.
#include "app/race.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <nlohmann/json.hpp>

#include "app/device_option.h"
#include "app/signals.h"
#include "app/table.h"
#include "app/terminal.h"
#include "outrace/core/cpu_info.h"
#include "outrace/core/thread.h"
#include "outrace/core/version.h"

namespace outrace::app {

namespace {

// PoCL and its like: an OpenCL device that is the CPU, slower than the CPU's own backend.
bool is_cpu_in_disguise(Device device) {
  if (device.type != DeviceType::opencl) return false;
  const std::vector<std::string> features = backend_for(device).info(device).features;
  return std::ranges::find(features, "cpu") != features.end();
}

}  // namespace

std::vector<Device> race_devices(const RaceOptions& options) {
  if (options.device_names.empty()) {
    std::vector<Device> found = found_devices();
    if (!options.all) std::erase_if(found, is_cpu_in_disguise);
    return found;
  }
  std::vector<Device> devices;
  for (const std::string& name : options.device_names) {
    const Device device = asked_device(name);
    if (std::ranges::find(devices, device) == devices.end()) devices.push_back(device);
  }
  return devices;
}

double peak_gflops(Device device) {
  progress(fmt::format("{}: measuring what it can do at best", device.str()));
  return backend_for(device).info(device).peak_gflops;
}

void check_loss(double loss, Device device, const std::string& when, const RaceOptions& options) {
  if (std::isfinite(loss)) return;
  fail(ErrorKind::diverged, "training on ", device, " diverged: ", when, " the loss is ",
       std::isnan(loss) ? "not a number" : "infinite", "; a learning rate below ", options.lr, " (--lr) may help");
}

namespace {

struct Row {
  Result result;
  double ms, samples_per_s, gflops, peak;
  std::optional<double> speedup;  // over the CPU, if it took part
};

std::vector<Row> compare(const std::vector<Result>& results, const Sizes& sizes) {
  std::optional<double> cpu_ms;
  for (const Result& r : results)
    if (r.device.type == DeviceType::cpu && r.timing.best() > 0) cpu_ms = r.timing.best();
  std::vector<Row> rows;
  for (const Result& r : results) {
    const double ms = r.timing.best() > 0 ? r.timing.best() : std::nan("");
    Row row{r, ms, static_cast<double>(sizes.batch) / ms * 1e3, sizes.flops() / ms * 1e-6, peak_gflops(r.device), {}};
    if (cpu_ms) row.speedup = *cpu_ms / ms;
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string table_text(const std::vector<Row>& rows, const RaceOptions& options) {
  Table table({"device", "ms a\nstep", "samples/s", "GFLOP/s", "share\nof peak", "speed-up\nover cpu", "first\nloss",
               "last\nloss", "digits\nright"});
  for (const Row& r : rows)
    table.add({r.result.device.str(), significant(r.ms), significant(r.samples_per_s), significant(r.gflops),
               r.peak > 0 ? percent(r.gflops / r.peak) : "-", r.speedup ? significant(*r.speedup) + "x" : "-",
               fmt::format("{:.4f}", r.result.first_loss), fmt::format("{:.4f}", r.result.last_loss),
               r.result.digits_accuracy ? percent(*r.result.digits_accuracy, 1) : "-"});
  const Sizes& s = options.sizes;
  std::string text = fmt::format("{}-{}-{}, batch {}, Adam, f32, {}, {}\n", s.inputs, s.hidden, s.outputs, s.batch,
                                 counted(num_threads(), "thread"), name_of(active_isa()));
  text += table.str(out_width());
  const Timing& timing = rows[0].result.timing;
  text += fmt::format("ms a step: best of {} of {}", counted(std::ssize(timing.samples), "sample"),
                      counted(timing.steps_a_sample, "step"));
  if (rows[0].result.warm_up_ms > 0)
    text += fmt::format("; the first {} steps, {} ms, are warm-up and not in it", kRaceWarmUp,
                        significant(rows[0].result.warm_up_ms));
  text += ".\n";
  text += "peak: each device's own, measured now";
  text += options.no_digits ? ".\n" : "; digits: share of those held out that it read right.\n";
  return text;
}

nlohmann::ordered_json json_of(const Row& r) {
  nlohmann::ordered_json json = {{"device", r.result.device.str()},
                                 {"name", backend_for(r.result.device).info(r.result.device).name},
                                 {"steps", r.result.steps},
                                 {"ms_per_step", r.ms},
                                 {"samples", r.result.timing.samples},
                                 {"steps_per_sample", r.result.timing.steps_a_sample},
                                 {"warm_up_ms", r.result.warm_up_ms},
                                 {"samples_per_s", r.samples_per_s},
                                 {"gflops", r.gflops},
                                 {"peak_gflops", r.peak},
                                 {"peak_share", r.peak > 0 ? r.gflops / r.peak : std::nan("")},
                                 {"speedup_over_cpu", nullptr},
                                 {"first_loss", r.result.first_loss},
                                 {"last_loss", r.result.last_loss},
                                 {"digits_accuracy", nullptr}};
  if (r.speedup) json["speedup_over_cpu"] = *r.speedup;
  if (r.result.digits_accuracy) json["digits_accuracy"] = *r.result.digits_accuracy;
  return json;
}

std::string json_text(const std::vector<Row>& rows, const RaceOptions& options) {
  const Sizes& s = options.sizes;
  nlohmann::ordered_json json = {{"network", {{"inputs", s.inputs}, {"hidden", s.hidden}, {"outputs", s.outputs}}},
                                 {"batch", s.batch},
                                 {"batches", options.batches},
                                 {"lr", options.lr},
                                 {"seed", options.seed},
                                 {"threads", num_threads()},
                                 {"isa", name_of(active_isa())},
                                 {"version", kVersion},
                                 {"complete", stop_signal() == 0},
                                 {"devices", nlohmann::ordered_json::array()},
                                 {"missing", missing_backends()}};
  for (const Row& row : rows) json["devices"].push_back(json_of(row));
  return json.dump() + "\n";
}

void remark_missing(size_t devices) {
  if (devices > 1 || missing_backends().empty()) return;
  remark("\nOnly one device took part. Others would be compared with it in this table:");
  for (const std::string& reason : missing_backends()) remark("  " + reason);
}

int race(const Common& common, const RaceOptions& options) {
  if (!(std::isfinite(options.lr) && options.lr >= 0))
    throw UsageError(fmt::format("--lr must be a number from 0 up; got {}", options.lr));
  if (!options.sweep.empty()) return sweep(common, options);
  const bool prints = !common.json && !common.quiet;
  const std::vector<Device> devices = race_devices(options);
  std::vector<Result> results;
  for (const Device device : devices) {
    Result result = train_article(device, options, prints);
    if (!options.no_digits && stop_signal() == 0) result.digits_accuracy = train_digits(device, options, prints);
    if (result.steps > 0) results.push_back(std::move(result));
    if (stop_signal() != 0) break;
  }
  if (stop_signal() != 0)
    remark(fmt::format("Stopped by signal {}{}", stop_signal(),
                       results.empty() ? " before the first step." : "; so far:"));
  if (results.empty()) return kFailed;

  const std::vector<Row> rows = compare(results, options.sizes);
  if (prints) out("\n");
  out(common.json ? json_text(rows, options) : table_text(rows, options));
  if (stop_signal() == 0) remark_missing(devices.size());
  for (const Result& r : results)
    if (r.digits_accuracy && *r.digits_accuracy < options.at_least) {
      complain(fmt::format("{} read {} of the held-out digits right, below the {} asked for", r.device.str(),
                           percent(*r.digits_accuracy, 1), percent(options.at_least, 1)));
      return kGateMissed;
    }
  return kDone;
}

}  // namespace

void add_race(CLI::App& app, Command& command) {
  static RaceOptions options;
  CLI::App* sub = app.add_subcommand("race", "Train the article's network on every device");
  const auto size = [&](const char* name, int64_t& value, const char* what) {
    sub->add_option(name, value, what)
        ->check(CLI::Range(int64_t{1}, int64_t{1} << 24).description(""))
        ->type_name("N")
        ->capture_default_str();
  };
  sub->add_option("--device", options.device_names, "Only this one (cpu, cuda, opencl:0); repeatable")
      ->allow_extra_args(false)
      ->type_name("NAME");
  sub->add_flag("--all", options.all, "Also OpenCL's CPU devices (PoCL), which are no GPUs");
  size("--inputs", options.sizes.inputs, "Numbers a sample has");
  size("--hidden", options.sizes.hidden, "Width of the hidden layer");
  size("--outputs", options.sizes.outputs, "Classes");
  size("--batch", options.sizes.batch, "Samples a step");
  size("--batches", options.batches, "Steps");
  sub->add_option("--lr", options.lr, "Learning rate of Adam")->type_name("X")->capture_default_str();
  sub->add_option("--seed", options.seed, "Of weights, data and the digits' split")
      ->type_name("N")
      ->capture_default_str();
  sub->add_flag("--no-digits", options.no_digits, "Skip the handwritten digits");
  size("--epochs", options.epochs, "Epochs of training on the digits");
  sub->add_option("--at-least", options.at_least, "Exit with 5 if fewer held-out digits are right")
      ->check(CLI::Range(0.0, 1.0).description(""))
      ->type_name("SHARE");
  sub->add_option("--sweep", options.sweep, "Over a range of sizes instead: width or batch")
      ->check(CLI::IsMember({"width", "batch"}).description(""))
      ->type_name("WHAT");
  sub->footer(
      "Each device found trains the same network (Linear, ReLU, Linear; cross-entropy;\n"
      "Adam) from the same weights on the same random data, as the article does; then\n"
      "on 1,797 handwritten digits (64 inputs, 10 classes), a fifth of them held out.\n"
      "The table has for each device:\n"
      "  ms a step          best of the samples between two loss lines, warm-up apart\n"
      "  GFLOP/s            of the matrix products: 2 operations a multiply-add\n"
      "  share of peak      of this device's own best in multiply-adds, measured now\n"
      "  speed-up over cpu  the CPU's time over this device's\n"
      "  digits right       share of the held-out digits\n"
      "A sweep times the step at sizes from small to large, and says how much of it\n"
      "does not shrink with the arithmetic: there, small networks stop gaining.\n\n"
      "Examples:\n"
      "  outrace race\n"
      "  outrace race --hidden 2048 --batch 256   more arithmetic: faster devices gain\n"
      "  outrace race --sweep width               from which size on do they?\n"
      "  outrace race --device cpu --threads 1 --no-digits --json");
  add_common(*sub, command.common);
  sub->callback([&command] { command.run = [&command] { return race(command.common, options); }; });
}

}  // namespace outrace::app
