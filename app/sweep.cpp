// `outrace race --sweep width|batch`: the race over a range of sizes, and where small networks stop gaining.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "app/conclusion.h"
#include "app/race.h"
#include "app/signals.h"
#include "app/table.h"
#include "app/terminal.h"
#include "outrace/core/cpu_info.h"
#include "outrace/core/thread.h"
#include "outrace/core/version.h"

namespace outrace::app {
namespace {

constexpr int64_t kWidths[] = {32, 64, 128, 256, 512, 1024, 2048};
constexpr int64_t kBatchSizes[] = {1, 4, 16, 64, 256, 1024};

// Wraps at blanks, so that long sentences stay readable on any terminal.
std::string wrapped(const std::string& text, size_t columns) {
  std::string out;
  size_t line = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    if (line > 0 && line + 1 + (end - at) > columns) {
      out += '\n';
      line = 0;
    } else if (line > 0) {
      out += ' ';
      ++line;
    }
    out += text.substr(at, end - at);
    line += end - at;
    at = end + 1;
  }
  return out + "\n";
}

struct Sweep {
  std::string what;  // "width" or "batch"
  std::vector<Device> devices;
  std::vector<Point> points = {};  // by size, then by device
  std::vector<double> peaks = {};  // by device

  std::optional<double> speedup(const Point& point) const {
    for (const Point& p : points)
      if (p.device.type == DeviceType::cpu && p.size == point.size) return p.ms / point.ms;
    return std::nullopt;
  }
  double peak(const Point& point) const { return peaks[std::ranges::find(devices, point.device) - devices.begin()]; }
  static double gflops(const Point& p) { return p.sizes.flops() / p.ms * 1e-6; }
  static double samples_per_s(const Point& p) { return static_cast<double>(p.sizes.batch) / p.ms * 1e3; }

  // Only devices with all sizes have one.
  std::vector<std::string> conclusions() const {
    std::vector<std::string> out;
    const std::vector<Point> cpu = of_device(points, Device(DeviceType::cpu));
    for (const Device device : devices) {
      const std::vector<Point> own = of_device(points, device);
      if (own.size() < 2) continue;
      out.push_back(conclusion(own, what));
      if (device.type != DeviceType::cpu && cpu.size() == own.size()) out.push_back(crossing(cpu, own, what));
    }
    return out;
  }
};

std::string text_of(const Sweep& sweep, const RaceOptions& options) {
  Table table({sweep.what, "device", "ms a\nstep", "samples/s", "MFLOP\na step", "GFLOP/s", "share\nof peak",
               "speed-up\nover cpu"});
  for (const Point& p : sweep.points) {
    const std::optional<double> speedup = sweep.speedup(p);
    const double peak = sweep.peak(p);
    table.add({fmt::format("{}", p.size), p.device.str(), significant(p.ms), significant(Sweep::samples_per_s(p)),
               significant(p.sizes.flops() * 1e-6), significant(Sweep::gflops(p)),
               peak > 0 ? percent(Sweep::gflops(p) / peak) : "-", speedup ? significant(*speedup) + "x" : "-"});
  }
  const Sizes& s = options.sizes;
  const std::string fixed = sweep.what == "width" ? fmt::format("{}-width-{}, batch {}", s.inputs, s.outputs, s.batch)
                                                  : fmt::format("{}-{}-{}", s.inputs, s.hidden, s.outputs);
  std::string text = fmt::format("{}, Adam, f32, {}, {}; ms a step: best of {} samples after warm-up\n", fixed,
                                 counted(num_threads(), "thread"), name_of(active_isa()), kStepSamples);
  text += table.str(out_width());
  const int columns = out_width() > 0 ? std::min(out_width(), 120) : 100;
  for (const std::string& sentence : sweep.conclusions()) text += wrapped(sentence, static_cast<size_t>(columns));
  return text;
}

std::string json_of(const Sweep& sweep, const RaceOptions& options) {
  nlohmann::ordered_json json = {{"sweep", sweep.what},
                                 {"inputs", options.sizes.inputs},
                                 {"outputs", options.sizes.outputs},
                                 {"threads", num_threads()},
                                 {"isa", name_of(active_isa())},
                                 {"version", kVersion},
                                 {"complete", stop_signal() == 0},
                                 {"rows", nlohmann::ordered_json::array()},
                                 {"costs", nlohmann::ordered_json::array()},
                                 {"conclusions", sweep.conclusions()}};
  for (const Point& p : sweep.points) {
    nlohmann::ordered_json row = {{"device", p.device.str()},
                                  {"hidden", p.sizes.hidden},
                                  {"batch", p.sizes.batch},
                                  {"ms_per_step", p.ms},
                                  {"samples_per_s", Sweep::samples_per_s(p)},
                                  {"flops_per_step", p.sizes.flops()},
                                  {"gflops", Sweep::gflops(p)},
                                  {"peak_gflops", sweep.peak(p)},
                                  {"speedup_over_cpu", nullptr}};
    if (const auto speedup = sweep.speedup(p)) row["speedup_over_cpu"] = *speedup;
    json["rows"].push_back(std::move(row));
  }
  for (const Device device : sweep.devices)
    if (const std::vector<Point> own = of_device(sweep.points, device); own.size() >= 2) {
      const StepCost cost = cost_of(own);
      json["costs"].push_back(
          {{"device", device.str()}, {"fixed_ms", cost.fixed_ms}, {"ms_per_gflop", cost.ms_per_flop * 1e9}});
    }
  return json.dump() + "\n";
}

}  // namespace

int sweep(const Common& common, const RaceOptions& options) {
  Sweep sweep{.what = options.sweep, .devices = race_devices(options)};
  const bool width = sweep.what == "width";
  for (const int64_t size : width ? std::span<const int64_t>(kWidths) : std::span<const int64_t>(kBatchSizes))
    for (const Device device : sweep.devices) {
      if (stop_signal() != 0) break;
      progress(fmt::format("{}: {} {}", device.str(), sweep.what, size));
      Sizes sizes = options.sizes;
      (width ? sizes.hidden : sizes.batch) = size;
      if (const std::optional<double> ms = time_step(sizes, device, options))
        sweep.points.push_back({device, size, sizes, *ms});
    }
  if (stop_signal() != 0)
    remark(fmt::format("Stopped by signal {}{}", stop_signal(),
                       sweep.points.empty() ? " before the first size." : "; so far:"));
  if (sweep.points.empty()) return kFailed;
  for (const Device device : sweep.devices) sweep.peaks.push_back(peak_gflops(device));
  out(common.json ? json_of(sweep, options) : text_of(sweep, options));
  return kDone;
}

}  // namespace outrace::app
