// `--device fastest`: one short measurement of each device found, remembered for the next time.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "app/race.h"
#include "app/table.h"
#include "app/terminal.h"
#include "outrace/core/cache_file.h"
#include "outrace/core/thread.h"
#include "outrace/core/version.h"

namespace outrace::app {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// What the answer depends on.
std::string key_of(const std::vector<Device>& devices, const Sizes& s) {
  std::string key = fmt::format("{}-{}-{}, batch {}, f32, {} threads, outrace {}", s.inputs, s.hidden, s.outputs,
                                s.batch, num_threads(), kVersion);
  for (const Device d : devices) key += fmt::format(", {}: {}", d.str(), backend_for(d).info(d).name);
  return key;
}

fs::path memory_file() {
  const fs::path folder = cache_folder();
  return folder.empty() ? fs::path() : folder / "fastest.json";
}

// What was remembered; an empty object if nothing was, or if the file is damaged.
Json remembered() {
  std::ifstream in(memory_file());
  Json all = Json::parse(in, nullptr, false);
  return all.is_object() ? all : Json::object();
}

void remember(const std::string& key, const Json& entry) {
  const fs::path file = memory_file();
  if (file.empty()) return;
  Json all = remembered();
  all[key] = entry;
  write_cache_file(file, all.dump(2) + "\n");
}

// "cpu 1.1 ms a step, opencl:0 16 ms"
std::string times_text(const Json& entry) {
  std::string text;
  for (const auto& [name, ms] : entry["ms"].items())
    text += fmt::format("{}{} {}{}", text.empty() ? "" : ", ", name, significant(ms.get<double>()),
                        text.empty() ? " ms a step" : " ms");
  return text;
}

bool is_entry(const Json& entry, const std::vector<Device>& devices) {
  if (!entry.is_object() || !entry.contains("ms") || !entry["ms"].is_object() || !entry.contains("date") ||
      !entry["date"].is_string())
    return false;
  return std::ranges::all_of(
      devices, [&](Device d) { return entry["ms"].contains(d.str()) && entry["ms"][d.str()].is_number(); });
}

Device best_of(const Json& entry, const std::vector<Device>& devices) {
  return *std::ranges::min_element(devices, {}, [&](Device d) { return entry["ms"][d.str()].get<double>(); });
}

}  // namespace

Device fastest_device(const RaceOptions& options) {
  RaceOptions all = options;
  all.device_names.clear();
  const std::vector<Device> devices = race_devices(all);
  if (devices.size() == 1) {
    remark(fmt::format("fastest: {}, the only device found", devices[0].str()));
    return devices[0];
  }
  const std::string key = key_of(devices, options.sizes);
  Json entry = remembered().value(key, Json());
  if (is_entry(entry, devices)) {
    const Device best = best_of(entry, devices);
    remark(fmt::format("fastest: {} ({}; measured {}, remembered in {})", best.str(), times_text(entry),
                       entry["date"].get<std::string>(), memory_file().string()));
    return best;
  }
  entry = {{"date", fmt::format("{:%Y-%m-%d}", fmt::localtime(std::time(nullptr)))}, {"ms", Json::object()}};
  for (const Device d : devices) {
    progress(fmt::format("{}: timing a step", d.str()));
    const std::optional<double> ms = time_step(options.sizes, d, options);
    if (!ms) return devices[0];  // a signal came; the caller sees it
    entry["ms"][d.str()] = *ms;
  }
  end_progress();
  remember(key, entry);
  const Device best = best_of(entry, devices);
  remark(fmt::format("fastest: {} ({}; measured now)", best.str(), times_text(entry)));
  return best;
}

}  // namespace outrace::app
