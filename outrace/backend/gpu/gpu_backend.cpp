#include "outrace/backend/gpu/gpu_backend.h"

#include <algorithm>

#include "outrace/backend/gpu/gpu_program.h"
#include "outrace/core/error.h"
#include "outrace/core/profile.h"

namespace outrace::gpu {

GpuBackend::GpuBackend(DeviceType type, std::vector<std::unique_ptr<Driver>> drivers) : type_(type) {
  for (auto& d : drivers) devices_.push_back(std::make_unique<GpuDevice>(std::move(d)));
}

DeviceInfo GpuBackend::info(Device device) {
  const DeviceFacts& f = facts(device);
  DeviceInfo info;
  info.device = device;
  info.name = cat(f.name, f.is_cpu ? " (a CPU, not a GPU)" : "", ", ", f.driver);
  info.units = f.units;
  info.memory_bytes = f.memory_bytes;
  info.features = f.features;
  return info;
}

void* GpuBackend::allocate(Device device, int64_t bytes) {
  std::lock_guard hold(at(device).lock());
  at(device).check_array(device, bytes);
  return at(device).driver().allocate(std::max<int64_t>(bytes, 1));
}

void GpuBackend::free(Device device, void* pointer, int64_t bytes) {
  std::lock_guard hold(at(device).lock());
  if (pointer != nullptr) at(device).driver().free(pointer, std::max<int64_t>(bytes, 1));
}

void GpuBackend::copy_in(Device device, void* to, const void* host, int64_t bytes) {
  std::lock_guard hold(at(device).lock());
  if (bytes > 0) at(device).driver().copy_in(to, host, bytes);
  count_transfer({.to_devices = bytes});
}

void GpuBackend::copy_out(Device device, void* host, const void* from, int64_t bytes) {
  std::lock_guard hold(at(device).lock());
  if (bytes > 0) at(device).driver().copy_out(host, from, bytes);
  count_transfer({.from_devices = bytes});
  at(device).check_reports();
}

bool GpuBackend::copy_across(Device to_device, void* to, Device from_device, const void* from, int64_t bytes) {
  if (to_device == from_device || bytes == 0) return bytes == 0;
  std::scoped_lock hold(at(to_device).lock(), at(from_device).lock());
  return at(to_device).driver().copy_from(at(from_device).driver(), to, from, bytes);
}

void GpuBackend::relayout(Device device, void* to, Layout to_layout, const void* from, Layout from_layout, DType dtype,
                          const Shape& shape) {
  OUTRACE_ASSERT(to_layout == Layout::plain && from_layout == Layout::plain, "packed weights are the CPU's");
  std::lock_guard hold(at(device).lock());
  if (shape.numel() > 0) at(device).driver().copy(to, from, shape.numel() * size_of(dtype));
}

std::unique_ptr<Program> GpuBackend::compile(const Plan& plan) {
  return std::make_unique<GpuProgram>(plan, at(plan.calls.empty() ? Device(type_) : plan.calls[0].device));
}

void GpuBackend::synchronize(Device device) {
  std::lock_guard hold(at(device).lock());
  at(device).driver().synchronize();
  at(device).check_reports();
}

}  // namespace outrace::gpu
