// `outrace bench WORKLOAD`: one figure, measured as the comparison with other libraries defines it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "app/bench_ops.h"
#include "app/command.h"
#include "app/device_option.h"
#include "app/network.h"
#include "app/signals.h"
#include "app/table.h"
#include "app/terminal.h"
#include "app/timing.h"
#include "outrace/backend/cpu/peak.h"
#include "outrace/core/cpu_info.h"
#include "outrace/core/profile.h"
#include "outrace/core/thread.h"
#include "outrace/core/version.h"

namespace outrace::app {
namespace {

struct Workload {
  const char* name;
  const char* what;
  Sizes sizes;
};

constexpr Workload kWorkloads[] = {
    {"seed", "the article's network, 1000-512-10 with ReLU, batch 64, Adam", {1000, 512, 10, 64}},
    {"tiny", "the same with 16-32-4 and batch 32: next to no arithmetic", {16, 32, 4, 32}},
};
constexpr int64_t kBatches = 1000;      // made beforehand, a different one each step
constexpr int64_t kStepsASample = 300;  // a sample is their mean
constexpr int kFewestSamples = 5, kMostSamples = 50;
constexpr double kMeasuredMs = 1000;  // sampling goes on till then or till kMostSamples
constexpr int64_t kWarmUpSteps = 3;   // at least; programs are made in the first two
constexpr double kWarmUpMs = 200;     // at least; processors raise their clock in that time
constexpr int64_t kProfiledSteps = 50;
constexpr size_t kLabelColumns = 30;

struct BenchOptions {
  OpsOptions ops;
  std::string workload, dtype = "f32", device = "cpu";
  std::string loop_name = "captured";
  uint64_t seed = 1;
  bool profile = false;
};

Loop find_loop(const std::string& name) {
  for (const auto& [known, loop] :
       {std::pair{"captured", Loop::captured}, {"plain", Loop::plain}, {"item", Loop::item}})
    if (name == known) return loop;
  throw UsageError(fmt::format("unknown loop '{}'; there are: captured, plain, item", name));
}

std::string workload_lines() {
  std::string lines;
  for (const Workload& w : kWorkloads) lines += fmt::format("  {:<6} {}\n", w.name, w.what);
  return lines + "  ops    single ops on large arrays, beside the memory's and the cores' speed\n";
}

const Workload& find_workload(const std::string& name) {
  for (const Workload& w : kWorkloads)
    if (name == w.name) return w;
  throw UsageError(fmt::format("{}; there are:\n{}",
                               name.empty() ? "bench needs a workload" : "unknown workload '" + name + "'",
                               workload_lines().substr(0, workload_lines().size() - 1)));
}

DType training_dtype(const std::string& name) {
  const DType dtype = parse_dtype(name);
  if (dtype != DType::f32 && dtype != DType::f64)
    throw UsageError(fmt::format("bench trains in f32 or f64; {} cannot be trained in yet", name));
  return dtype;
}

struct Figures {
  Timing timing;
  double first_loss = std::nan(""), last_loss = std::nan("");  // of the timed steps
};

class Bench {
 public:
  Bench(const Workload& workload, DType dtype, Loop loop)
      : batches_(workload.sizes, kBatches, INT64_MAX, dtype, Device()),
        training_(workload.sizes, {.dtype = dtype, .loop = loop}) {}

  // Until it is complete or a signal came.
  Figures measure() {
    Figures figures;
    figures.timing.steps_a_sample = kStepsASample;
    const Stopwatch warm_up;
    for (int64_t i = 0; (i < kWarmUpSteps || warm_up.ms() < kWarmUpMs) && stop_signal() == 0; ++i) next_step();
    Tensor last;
    bool started = false;
    const Stopwatch all;
    std::vector<double>& samples = figures.timing.samples;
    while (std::ssize(samples) < kFewestSamples || (all.ms() < kMeasuredMs && std::ssize(samples) < kMostSamples)) {
      progress(fmt::format("sample {} of at least {}", samples.size() + 1, kFewestSamples));
      const Stopwatch watch;
      for (int64_t i = 0; i < kStepsASample; ++i) {
        if (stop_signal() != 0) return figures;
        last = next_step();
        if (!std::exchange(started, true)) figures.first_loss = last.item();
      }
      figures.last_loss = last.item();
      samples.push_back(watch.ms() / kStepsASample);
    }
    return figures;
  }

  Tensor next_step() {
    const int64_t i = step_++ % kBatches;
    return training_.step(batches_.inputs[i], batches_.labels[i]);
  }

 private:
  Batches batches_;
  Training training_;
  int64_t step_ = 0;
};

struct ProfileRow {
  std::string label, kernel;
  double us = 0, flops = 0, bytes = 0, calls = 0;  // a step
  double gflops() const { return us > 0 ? flops / us * 1e-3 : 0; }
  double gb_per_s() const { return us > 0 ? bytes / us * 1e-3 : 0; }
};

// One row for each call of a step, in the order in which they ran first.
std::vector<ProfileRow> profile(Bench& bench) {
  set_profiling(true);
  take_profile();
  for (int64_t i = 0; i < kProfiledSteps; ++i) bench.next_step().item();
  set_profiling(false);
  std::vector<ProfileRow> rows;
  for (const CallProfile& call : take_profile()) {
    const auto same = [&](const ProfileRow& r) { return r.label == call.label && r.kernel == call.kernel; };
    auto row = std::ranges::find_if(rows, same);
    if (row == rows.end()) row = rows.insert(row, {.label = call.label, .kernel = call.kernel});
    row->us += call.us / kProfiledSteps;
    row->flops += call.flops / kProfiledSteps;
    row->bytes += call.bytes / kProfiledSteps;
    row->calls += 1.0 / kProfiledSteps;
  }
  return rows;
}

struct Roof {
  double gflops, gb_per_s;
  double share(const ProfileRow& r) const { return std::max(r.gflops() / gflops, r.gb_per_s() / gb_per_s); }
};

Roof roof_of(DType dtype) {
  const Peak& peak = measured_peak();
  return {dtype == DType::f64 ? peak.gflops_f64 : peak.gflops_f32, peak.gb_per_s_copy};
}

// Fused calls have long names: "matmul+sub+mul+add+mul and 9 more".
std::string shortened(const std::string& label) {
  if (label.size() <= kLabelColumns) return label;
  const size_t end = label.rfind('+', kLabelColumns - std::string_view(" and 9 more").size());
  if (end == std::string::npos) return label;
  return fmt::format("{} and {} more", label.substr(0, end), std::ranges::count(label.substr(end), '+'));
}

std::string profile_text(const std::vector<ProfileRow>& rows, const Roof& roof) {
  double total = 0;
  for (const ProfileRow& r : rows) total += r.us;
  Table table({"call", "kernel", "calls\na step", "us\na step", "share\nof time", "GFLOP/s", "GB/s", "share\nof roof"});
  for (const ProfileRow& r : rows)
    table.add({shortened(r.label), r.kernel, significant(r.calls, 1), significant(r.us), percent(r.us / total),
               significant(r.gflops()), significant(r.gb_per_s()), percent(roof.share(r))});
  return "\n" + table.str(out_width()) +
         fmt::format(
             "Calls: {} us a step. Roof: {:.0f} GFLOP/s and {:.1f} GB/s, measured now; above 100 % the data came from "
             "caches.\n",
             significant(total), roof.gflops, roof.gb_per_s);
}

nlohmann::ordered_json profile_json(const std::vector<ProfileRow>& rows, const Roof& roof) {
  auto json = nlohmann::ordered_json::array();
  for (const ProfileRow& r : rows)
    json.push_back({{"call", r.label},
                    {"kernel", r.kernel},
                    {"calls", r.calls},
                    {"us", r.us},
                    {"gflops", r.gflops()},
                    {"gb_per_s", r.gb_per_s()},
                    {"roof_share", roof.share(r)}});
  return json;
}

int bench(const Common& common, const BenchOptions& options) {
  const Workload& workload = find_workload(options.workload);
  const DType dtype = training_dtype(options.dtype);
  const Loop loop = find_loop(options.loop_name);
  progress(fmt::format("{}: making {} batches", workload.name, kBatches));
  manual_seed(options.seed);
  Bench bench(workload, dtype, loop);
  const Figures figures = bench.measure();
  const Timing& timing = figures.timing;
  if (stop_signal() != 0)
    remark(fmt::format("Stopped by signal {}{}", stop_signal(),
                       timing.samples.empty() ? " before the first sample was complete." : "; so far:"));
  if (timing.samples.empty()) return kFailed;
  std::optional<std::vector<ProfileRow>> rows;
  if (options.profile && stop_signal() == 0) rows = profile(bench);

  const double ms = timing.best();
  if (common.json) {
    nlohmann::ordered_json json = {{"workload", workload.name},
                                   {"dtype", options.dtype},
                                   {"loop", options.loop_name},
                                   {"unit", "ms"},
                                   {"value", ms},
                                   {"samples", timing.samples},
                                   {"first_loss", figures.first_loss},
                                   {"last_loss", figures.last_loss},
                                   {"items", workload.sizes.batch},
                                   {"threads", num_threads()},
                                   {"isa", name_of(active_isa())},
                                   {"version", kVersion}};
    if (rows) json["profile"] = profile_json(*rows, roof_of(dtype));
    out(json.dump() + "\n");
  } else {
    const double gflops = workload.sizes.flops() / ms * 1e-6;
    out(fmt::format("{} {} ({} loop, {}, {}): {} ms a step, best of {} of {} steps\n", bold(workload.name),
                    options.dtype, options.loop_name, name_of(active_isa()), counted(num_threads(), "thread"),
                    significant(ms, 4), counted(std::ssize(timing.samples), "sample"), kStepsASample));
    out(fmt::format("{:.0f} samples/s, {} GFLOP/s ({} of the measured peak), loss {:.4f} at first, {:.4f} at last\n",
                    static_cast<double>(workload.sizes.batch) / ms * 1e3, significant(gflops),
                    percent(gflops / roof_of(dtype).gflops), figures.first_loss, figures.last_loss));
    if (rows) out(profile_text(*rows, roof_of(dtype)));
  }
  return kDone;
}

}  // namespace

void add_bench(CLI::App& app, Command& command) {
  static BenchOptions options;
  CLI::App* sub = app.add_subcommand("bench", "The time of one workload, to compare with others");
  sub->add_option("workload", options.workload, "seed, tiny or ops")->type_name("WORKLOAD");
  sub->add_option("--dtype", options.dtype, "Element type: f32, f64")->type_name("NAME")->capture_default_str();
  sub->add_option("--loop", options.loop_name, "captured, plain or item, see below")
      ->type_name("LOOP")
      ->capture_default_str();
  sub->add_option("--seed", options.seed, "Of weights and data")->type_name("N")->capture_default_str();
  sub->add_flag("--profile", options.profile, "Also a table of the step's calls and their speed");
  sub->add_option("--device", options.device, "Of ops: cpu, opencl:0, ...")->type_name("NAME")->capture_default_str();
  sub->add_option("--size", options.ops.size, "Of ops: arrays are [N, N]")
      ->check(CLI::Range(1, 32768).description(""))
      ->type_name("N")
      ->capture_default_str();
  sub->add_option("--parameters", options.ops.parameters, "Of ops: how many adam moves")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 32).description(""))
      ->type_name("N")
      ->capture_default_str();
  sub->add_option("--filter", options.ops.filter, "Of ops: those whose name contains it")->type_name("TEXT");
  sub->footer("Workloads:\n" + workload_lines() +
              "\nLoops:\n"
              "  captured  the step recorded once by capture() and replayed\n"
              "  plain     the article's loop, as examples/article.cpp has it\n"
              "  item      the same, asking for the loss before backward()\n\n"
              "The figure is the best of at least 5 samples after a warm-up; a sample is the\n"
              "mean over 300 consecutive steps, each on another of 1000 batches made\n"
              "beforehand, taking the batch included.\n\n"
              "Examples:\n"
              "  outrace bench seed\n"
              "  outrace bench seed --loop plain --profile\n"
              "  outrace bench ops --filter softmax\n"
              "  outrace bench ops --device opencl:0 --size 2048\n"
              "  outrace bench tiny --isa avx2 --threads 1 --json");
  add_common(*sub, command.common);
  sub->callback([&command] {
    command.run = [&command] {
      const Device device = asked_device(options.device);
      if (options.workload != "ops") {
        if (device.type != DeviceType::cpu)
          throw UsageError(fmt::format("--device is for ops; bench {} trains on the cpu", options.workload));
        return bench(command.common, options);
      }
      options.ops.device = device;
      options.ops.seed = options.seed;
      return bench_ops(command.common, options.ops);
    };
  });
}

}  // namespace outrace::app
