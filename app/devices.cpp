// `outrace devices`: what each device found has and can do, and why the others are missing.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/command.h"
#include "app/table.h"
#include "app/terminal.h"
#include "outrace/backend/backend.h"
#include "outrace/backend/cpu/peak.h"
#include "outrace/core/cpu_info.h"
#include "outrace/core/thread.h"

namespace outrace::app {
namespace {

constexpr size_t kFeatureColumns = 66;  // beside the names, within 80

std::string wrapped(const std::vector<std::string>& words) {
  std::string text;
  size_t line = 0;
  for (const std::string& word : words) {
    if (line > 0 && line + 1 + word.size() > kFeatureColumns) {
      text += fmt::format("\n{:14}", "");
      line = 0;
    } else if (line > 0) {
      text += " ";
      ++line;
    }
    text += word;
    line += word.size();
  }
  return text;
}

std::string cache(int64_t bytes) { return bytes > 0 ? binary_bytes(static_cast<double>(bytes)) : "none seen"; }

std::string cpu_text(const DeviceInfo& info) {
  const CpuInfo& cpu = cpu_info();
  const Peak& peak = measured_peak();
  const auto line = [](const char* name, const std::string& value) {
    return fmt::format("  {:<10}  {}\n", name, value);
  };
  return bold("cpu") + "  " + info.name + "\n" +
         line("cores",
              fmt::format("{} usable of {} in the machine; {} threads", cpu.cores, cpu.logical_cpus, num_threads())) +
         line("memory", binary_bytes(static_cast<double>(info.memory_bytes))) +
         line("caches",
              fmt::format("L1d {}, L2 {}, L3 {}", cache(cpu.l1d_bytes), cache(cpu.l2_bytes), cache(cpu.l3_bytes))) +
         line("features", wrapped(info.features)) + line("kernels", fmt::format("for {}", name_of(active_isa()))) +
         line("measured", fmt::format("{:.0f} GFLOP/s f32, {:.0f} GFLOP/s f64, {:.1f} GB/s copied", peak.gflops_f32,
                                      peak.gflops_f64, peak.gb_per_s_copy));
}

std::string other_text(const DeviceInfo& info) {
  std::string text =
      fmt::format("{}  {}\n  units       {}\n  memory      {}\n  features    {}\n", bold(info.device.str()), info.name,
                  info.units, binary_bytes(static_cast<double>(info.memory_bytes)), wrapped(info.features));
  if (info.peak_gflops > 0)
    text += fmt::format("  measured    {:.0f} GFLOP/s, {:.1f} GB/s\n", info.peak_gflops, info.peak_gb_per_s);
  return text;
}

nlohmann::ordered_json json_of(const DeviceInfo& info) {
  nlohmann::ordered_json json = {
      {"device", info.device.str()},        {"name", info.name},         {"units", info.units},
      {"memory_bytes", info.memory_bytes},  {"features", info.features}, {"peak_gflops", info.peak_gflops},
      {"peak_gb_per_s", info.peak_gb_per_s}};
  if (info.device.type == DeviceType::cpu) {
    const CpuInfo& cpu = cpu_info();
    json["peak_gflops_f64"] = measured_peak().gflops_f64;
    json["l1d_bytes"] = cpu.l1d_bytes;
    json["l2_bytes"] = cpu.l2_bytes;
    json["l3_bytes"] = cpu.l3_bytes;
    json["logical_cpus"] = cpu.logical_cpus;
    json["threads"] = num_threads();
    json["isa"] = name_of(active_isa());
  }
  return json;
}

int devices(const Common& common) {
  nlohmann::ordered_json json = {{"devices", nlohmann::ordered_json::array()}, {"missing", missing_backends()}};
  for (const Device device : found_devices()) {
    progress("measuring " + device.str());
    const DeviceInfo info = backend_for(device).info(device);
    if (common.json)
      json["devices"].push_back(json_of(info));
    else
      out(device.type == DeviceType::cpu ? cpu_text(info) : other_text(info));
  }
  if (common.json) {
    out(json.dump() + "\n");
  } else if (!missing_backends().empty()) {
    out("\nmissing\n");
    for (const std::string& reason : missing_backends()) out("  " + reason + "\n");
  }
  return kDone;
}

}  // namespace

void add_devices(CLI::App& app, Command& command) {
  CLI::App* sub = app.add_subcommand("devices", "What each processor can do, and what is missing");
  sub->footer(
      "GFLOP/s are fused multiply-adds (2 operations each) on all threads; GB/s a copy\n"
      "beyond the caches, bytes read and written. Both are measured now, in under a\n"
      "second; `outrace race` shows how much of them a training step uses.\n\n"
      "Examples:\n"
      "  outrace devices\n"
      "  outrace devices --threads 1   what one core can do\n"
      "  outrace devices --isa avx2    what it can do without AVX-512\n"
      "  outrace devices --json");
  add_common(*sub, command.common);
  sub->callback([&command] { command.run = [&command] { return devices(command.common); }; });
}

}  // namespace outrace::app
