#include "outrace/core/cpu_info.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <iterator>

#include "outrace/core/cgroup.h"
#include "outrace/core/env.h"
#include "outrace/core/error.h"

namespace outrace {
namespace {

constexpr std::string_view kIsaNames[] = {"avx2", "avx512", "neon", "generic"};
constexpr int kIsaCount = 4;

std::string read_file(const char* path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::string read_model() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    const size_t colon = line.find(": ");
    if (colon != std::string::npos && (line.starts_with("model name") || line.starts_with("Model")))
      return line.substr(colon + 2);
  }
  return "unknown";
}

std::vector<std::string> read_features() {
  std::vector<std::string> out;
#if defined(__x86_64__)
  // The compiler's own query also asks whether the operating system saves the registers.
  const auto add = [&](bool has, const char* name) {
    if (has) out.push_back(name);
  };
  __builtin_cpu_init();
  add(__builtin_cpu_supports("avx"), "avx");
  add(__builtin_cpu_supports("avx2"), "avx2");
  add(__builtin_cpu_supports("fma"), "fma");
  add(__builtin_cpu_supports("f16c"), "f16c");
  add(__builtin_cpu_supports("bmi"), "bmi1");
  add(__builtin_cpu_supports("bmi2"), "bmi2");
  add(__builtin_cpu_supports("avx512f"), "avx512f");
  add(__builtin_cpu_supports("avx512bw"), "avx512bw");
  add(__builtin_cpu_supports("avx512dq"), "avx512dq");
  add(__builtin_cpu_supports("avx512vl"), "avx512vl");
  add(__builtin_cpu_supports("avx512vnni"), "avx512_vnni");
  add(__builtin_cpu_supports("avx512bf16"), "avx512_bf16");
  add(__builtin_cpu_supports("avx512fp16"), "avx512_fp16");
  add(__builtin_cpu_supports("avxvnni"), "avx_vnni");
  add(__builtin_cpu_supports("amx-tile"), "amx_tile");
  add(__builtin_cpu_supports("amx-bf16"), "amx_bf16");
  add(__builtin_cpu_supports("amx-int8"), "amx_int8");
#elif defined(__aarch64__)
  out.push_back("neon");
#endif
  return out;
}

// "32K" -> 32768, as in /sys/devices/system/cpu/cpu0/cache/index0/size.
int64_t parse_size(const std::string& text) {
  int64_t value = 0;
  size_t i = 0;
  for (; i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i) value = value * 10 + (text[i] - '0');
  if (i < text.size() && text[i] == 'K') value <<= 10;
  if (i < text.size() && text[i] == 'M') value <<= 20;
  return value;
}

void read_caches(CpuInfo& info) {
  for (int i = 0; i < 8; ++i) {
    const std::string folder = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(i) + "/";
    const int level = static_cast<int>(parse_size(read_file((folder + "level").c_str())));
    const bool instructions = read_file((folder + "type").c_str()).starts_with("Instruction");
    const int64_t bytes = parse_size(read_file((folder + "size").c_str()));
    if (instructions || bytes == 0) continue;
    if (level == 1) info.l1d_bytes = bytes;
    if (level == 2) info.l2_bytes = bytes;
    if (level == 3) info.l3_bytes = bytes;
  }
  // Some containers hide /sys; the C library asks the CPU itself. The last resort is what every x86-64 and ARM core
  // since 2013 has.
  const auto fill = [](int64_t& bytes, int name, int64_t least) {
    if (bytes == 0) bytes = std::max<int64_t>(sysconf(name), 0);
    if (bytes == 0) bytes = least;
  };
  fill(info.l1d_bytes, _SC_LEVEL1_DCACHE_SIZE, 32 << 10);
  fill(info.l2_bytes, _SC_LEVEL2_CACHE_SIZE, 256 << 10);
  fill(info.l3_bytes, _SC_LEVEL3_CACHE_SIZE, 0);
}

int affinity_count(int logical_cpus) {
  // The kernel refuses a mask smaller than its own, so grow it until it fits.
  for (int bits = 1024; bits <= 1 << 18; bits *= 2) {
    cpu_set_t* set = CPU_ALLOC(bits);
    if (set == nullptr) break;
    const size_t bytes = CPU_ALLOC_SIZE(bits);
    const int count = sched_getaffinity(0, bytes, set) == 0 ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (count > 0) return count;
  }
  return logical_cpus;
}

CpuInfo read_cpu_info() {
  CpuInfo info;
  info.model = read_model();
  info.features = read_features();
  for (const Isa isa : {Isa::avx512, Isa::avx2, Isa::neon}) {
    if (!info.supports(isa)) continue;
    info.best_isa = isa;
    break;
  }
  read_caches(info);
  const CgroupLimits limits = read_cgroup_limits(read_file("/proc/self/cgroup"));
  info.logical_cpus = std::max(1, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)));
  info.cores = affinity_count(info.logical_cpus);
  if (limits.cpus > 0) info.cores = std::min(info.cores, limits.cpus);
  info.memory_bytes = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  if (limits.memory_bytes > 0) info.memory_bytes = std::min(info.memory_bytes, limits.memory_bytes);
  return info;
}

std::string available_isas() {
  std::string out;
  for (int i = 0; i < kIsaCount; ++i)
    if (cpu_info().supports(static_cast<Isa>(i))) out += (out.empty() ? "" : ", ") + std::string(kIsaNames[i]);
  return out;
}

void require(Isa isa, std::string_view asked_by) {
  if (!cpu_info().supports(isa))
    fail(ErrorKind::option, "[isa] ", asked_by, "this CPU lacks ", name_of(isa), "; it has: ", available_isas());
}

Isa first_isa() {
  const std::string text = env_string("OUTRACE_ISA");
  if (text.empty()) return cpu_info().best_isa;
  const Isa isa = parse_isa(text);
  require(isa, "OUTRACE_ISA=" + text + ": ");
  return isa;
}

constexpr int kUnread = -1;
std::atomic<int> isa_in_force{kUnread};

}  // namespace

std::string_view name_of(Isa isa) { return kIsaNames[static_cast<int>(isa)]; }

Isa parse_isa(std::string_view text) {
  for (int i = 0; i < kIsaCount; ++i)
    if (text == kIsaNames[i]) return static_cast<Isa>(i);
  fail(ErrorKind::option, "[isa] unknown instruction set '", text, "'; this CPU has: ", available_isas());
}

bool CpuInfo::has(std::string_view feature) const {
  return std::find(features.begin(), features.end(), feature) != features.end();
}

bool CpuInfo::supports(Isa isa) const {
  const bool avx2 = has("avx2") && has("fma") && has("f16c") && has("bmi2");
  const bool avx512 = avx2 && has("avx512f") && has("avx512bw") && has("avx512dq") && has("avx512vl");
  switch (isa) {
    case Isa::avx2: return avx2;
    case Isa::avx512: return avx512;
    case Isa::neon: return has("neon");
    case Isa::generic: break;
  }
  return !avx2 && !has("neon");  // a name for having none of the others
}

const CpuInfo& cpu_info() {
  static const CpuInfo info = read_cpu_info();
  return info;
}

Isa active_isa() {
  int isa = isa_in_force.load(std::memory_order_relaxed);
  if (isa == kUnread) [[unlikely]] {
    isa = static_cast<int>(first_isa());
    isa_in_force.store(isa, std::memory_order_relaxed);
  }
  return static_cast<Isa>(isa);
}

void set_active_isa(Isa isa) {
  require(isa, "");
  isa_in_force.store(static_cast<int>(isa), std::memory_order_relaxed);
}

bool wants_avx512() {
  const Isa isa = active_isa();
  if (isa == Isa::avx512) return true;
  if (isa != Isa::avx2)
    fail(ErrorKind::device, "[cpu] this CPU lacks AVX2 with FMA, which the kernels need; it is '", cpu_info().model,
         "'");
  return false;
}

}  // namespace outrace
