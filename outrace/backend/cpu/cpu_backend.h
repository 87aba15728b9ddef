// The processor that runs this program, as a device.
#pragma once
#include "outrace/backend/backend.h"
#include "outrace/backend/cpu/pool.h"

namespace outrace {

class CpuBackend final : public Backend {
 public:
  static CpuBackend& get();

  // Measures the peaks on the first call (0.3 s).
  DeviceInfo info(Device device) override;
  void* allocate(Device device, int64_t bytes) override;
  void free(Device device, void* pointer, int64_t bytes) override;
  void copy_in(Device device, void* to, const void* host, int64_t bytes) override;
  void copy_out(Device device, void* host, const void* from, int64_t bytes) override;
  void relayout(Device device, void* to, Layout to_layout, const void* from, Layout from_layout, DType dtype,
                const Shape& shape) override;
  bool packs_weights(DType dtype) override;
  bool hands_out_tiles(const OpDef& op) override;
  std::unique_ptr<Program> compile(const Plan& plan) override;
  void synchronize(Device device) override;

  cpu::Pool& pool() { return pool_; }

 private:
  CpuBackend();
  cpu::Pool pool_;
};

}  // namespace outrace
