#include "outrace/core/cgroup.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string_view>

namespace outrace {
namespace {

// Version 1 writes "unlimited" as 2^63 rounded down to a page.
constexpr int64_t kUnlimited = int64_t{1} << 60;

template <class T>
void lower(T& limit, T value) {
  if (value > 0 && (limit == 0 || value < limit)) limit = value;
}

void lower_cpus(CgroupLimits& limits, int64_t quota, int64_t period) {
  if (quota > 0 && period > 0)
    lower(limits.cpus, static_cast<int>(std::min<int64_t>((quota + period - 1) / period, 1 << 20)));
}

// The number at the start of a file; 0 if there is none ("max", no such file).
int64_t read_number(const std::string& path) {
  int64_t value = 0;
  std::ifstream(path) >> value;
  return value;
}

void read_v2(const std::string& folder, CgroupLimits& limits) {
  int64_t quota = 0, period = 0;
  std::ifstream(folder + "/cpu.max") >> quota >> period;  // "150000 100000" or "max 100000", which leaves both 0
  lower_cpus(limits, quota, period);
  lower(limits.memory_bytes, read_number(folder + "/memory.max"));
}

void read_v1_cpu(const std::string& folder, CgroupLimits& limits) {
  lower_cpus(limits, read_number(folder + "/cpu.cfs_quota_us"), read_number(folder + "/cpu.cfs_period_us"));
}

void read_v1_memory(const std::string& folder, CgroupLimits& limits) {
  const int64_t bytes = read_number(folder + "/memory.limit_in_bytes");
  if (bytes < kUnlimited) lower(limits.memory_bytes, bytes);
}

// Visits a group and all above it: each may be the tightest. Within a container the group's own path may not exist
// below the mount.
template <class Read>
void walk_up(const std::string& mount, std::string group, const Read& read, CgroupLimits& limits) {
  if (group == "/") group.clear();
  for (;;) {
    read(mount + group, limits);
    const size_t slash = group.rfind('/');
    if (slash == std::string::npos) return;
    group.resize(slash);
  }
}

}  // namespace

CgroupLimits read_cgroup_limits(const std::string& membership, const std::string& root) {
  CgroupLimits limits;
  std::istringstream lines(membership);
  for (std::string line; std::getline(lines, line);) {  // "4:cpu,cpuacct:/group", version 2: "0::/group"
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (controllers.empty()) {
      walk_up(root, group, read_v2, limits);
      continue;
    }
    std::istringstream names(controllers);
    for (std::string name; std::getline(names, name, ',');) {
      if (name == "cpu") walk_up(root + "/cpu", group, read_v1_cpu, limits);
      if (name == "memory") walk_up(root + "/memory", group, read_v1_memory, limits);
    }
  }
  return limits;
}

}  // namespace outrace
