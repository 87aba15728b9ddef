// What the machine's processor is and has, and which of its instruction sets the kernels use.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace outrace {

enum class Isa : uint8_t { avx2, avx512, neon, generic };

std::string_view name_of(Isa isa);
// Parses "avx2", "avx512", ...; throws Error(option) that lists what this CPU has.
Isa parse_isa(std::string_view text);

struct CpuInfo {
  std::string model;                  // "AMD EPYC 7763 ..."
  std::vector<std::string> features;  // vector extensions as Linux spells them: "avx2", "fma", "avx512_bf16" ...
  Isa best_isa = Isa::generic;
  int64_t l1d_bytes = 0;     // of one core
  int64_t l2_bytes = 0;      // of one core (or of the cores that share it)
  int64_t l3_bytes = 0;      // of one socket's part; 0: none
  int cores = 1;             // usable: the smaller of the affinity mask and the cgroup's CPU quota, rounded up
  int logical_cpus = 1;      // online in the machine
  int64_t memory_bytes = 0;  // the smaller of the machine's and the cgroup's limit

  bool has(std::string_view feature) const;
  bool supports(Isa isa) const;
};

const CpuInfo& cpu_info();

// The instruction set of all CPU kernels: the best one, or OUTRACE_ISA, or what set_active_isa chose.
Isa active_isa();
// For --isa and for tests. Throws Error(option) if the CPU lacks it. Call it before any tensor exists: packed layouts
// depend on it.
void set_active_isa(Isa isa);

// True: use AVX-512 kernels; false: AVX2. Throws Error(device) if the active set is neither (an x86 CPU older than
// Haswell).
bool wants_avx512();

}  // namespace outrace
