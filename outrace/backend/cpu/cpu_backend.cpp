#include "outrace/backend/cpu/cpu_backend.h"

#include <cstring>

#include "outrace/backend/cpu/cpu_program.h"
#include "outrace/ops/op_def.h"
#include "outrace/backend/cpu/peak.h"
#include "outrace/backend/cpu/relayout.h"
#include "outrace/core/cpu_info.h"
#include "outrace/core/error.h"

namespace outrace {
namespace {

// Of the memory, freed blocks keep at most a quarter: enough for the temporaries of the largest step that fits beside
// them.
constexpr int64_t kCachedShare = 4;

// One thread: two copy no faster from main memory (measured, 2 cores), and loader threads must not start a team of
// their own.
void copy(void* to, const void* from, int64_t bytes) {
  if (bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
}

}  // namespace

CpuBackend::CpuBackend() : pool_(cpu_info().memory_bytes, cpu_info().memory_bytes / kCachedShare) {}

CpuBackend& CpuBackend::get() {
  static auto* instance = new CpuBackend;
  return *instance;
}

DeviceInfo CpuBackend::info(Device device) {
  const CpuInfo& cpu = cpu_info();
  const Peak& peak = measured_peak();
  return {.device = device,
          .name = cat(cpu.model, ", ", cpu.cores, cpu.cores == 1 ? " core, " : " cores, ", name_of(active_isa())),
          .units = cpu.cores,
          .memory_bytes = cpu.memory_bytes,
          .features = cpu.features,
          .peak_gflops = peak.gflops_f32,
          .peak_gb_per_s = peak.gb_per_s_copy};
}

void* CpuBackend::allocate(Device, int64_t bytes) { return pool_.allocate(bytes); }
void CpuBackend::free(Device, void* pointer, int64_t bytes) { pool_.free(pointer, bytes); }
void CpuBackend::copy_in(Device, void* to, const void* host, int64_t bytes) { copy(to, host, bytes); }
void CpuBackend::copy_out(Device, void* host, const void* from, int64_t bytes) { copy(host, from, bytes); }

void CpuBackend::relayout(Device, void* to, Layout to_layout, const void* from, Layout from_layout, DType dtype,
                          const Shape& shape) {
  cpu::relayout(to, to_layout, from, from_layout, dtype, shape);
}

bool CpuBackend::packs_weights(DType dtype) { return dtype == DType::f32 || dtype == DType::f64; }

bool CpuBackend::hands_out_tiles(const OpDef& op) {
  return &op == &kConv || &op == &kConvInputGrad || &op == &kConvWeightGrad;
}

std::unique_ptr<Program> CpuBackend::compile(const Plan& plan) {
  return std::make_unique<cpu::CpuProgram>(plan, pool_);
}

void CpuBackend::synchronize(Device) {}

}  // namespace outrace
