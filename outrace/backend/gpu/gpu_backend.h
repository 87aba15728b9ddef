// The Backend of all devices of one vendor API.
#pragma once
#include <vector>

#include "outrace/backend/backend.h"
#include "outrace/backend/gpu/gpu_device.h"

namespace outrace::gpu {

class GpuBackend final : public Backend {
 public:
  GpuBackend(DeviceType type, std::vector<std::unique_ptr<Driver>> drivers);

  int devices() const { return static_cast<int>(devices_.size()); }
  const DeviceFacts& facts(Device device) { return devices_[device.index]->driver().facts(); }

  DeviceInfo info(Device device) override;
  void* allocate(Device device, int64_t bytes) override;
  void free(Device device, void* pointer, int64_t bytes) override;
  void copy_in(Device device, void* to, const void* host, int64_t bytes) override;
  void copy_out(Device device, void* host, const void* from, int64_t bytes) override;
  bool copy_across(Device to_device, void* to, Device from_device, const void* from, int64_t bytes) override;
  void relayout(Device device, void* to, Layout to_layout, const void* from, Layout from_layout, DType dtype,
                const Shape& shape) override;
  bool packs_weights(DType) override { return false; }
  std::unique_ptr<Program> compile(const Plan& plan) override;
  void synchronize(Device device) override;

 private:
  GpuDevice& at(Device device) { return *devices_[device.index]; }

  DeviceType type_;
  std::vector<std::unique_ptr<GpuDevice>> devices_;
};

}  // namespace outrace::gpu
