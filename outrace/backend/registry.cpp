// Which backends this program has. The only file that knows all of them.
#include <array>
#include <atomic>

#include "outrace/backend/backend.h"
#include "outrace/backend/cpu/cpu_backend.h"
#include "outrace/backend/cuda/cuda_driver.h"
#include "outrace/backend/gpu/gpu_backend.h"
#include "outrace/backend/null/null_backend.h"
#include "outrace/backend/opencl/opencl_driver.h"
#include "outrace/core/error.h"

namespace outrace {
namespace {

constexpr int kTypes = 4;

// A kind of device as it was found; never destroyed, as buffers may die after main().
struct Kind {
  Backend* backend = nullptr;  // null: none
  int devices = 0;             // indices below it exist
  std::string missing;         // why there is none and what would help, for people
};

Kind open_cpu() { return {&CpuBackend::get(), 1, ""}; }
Kind open_null() { return {&NullBackend::get(), kNullDevices, ""}; }
Kind open_cuda() {
  Kind kind;
  auto drivers = cuda::open_drivers(&kind.missing);
  if (drivers.empty()) return kind;
  kind.devices = static_cast<int>(drivers.size());
  kind.backend = new gpu::GpuBackend(DeviceType::cuda, std::move(drivers));
  return kind;
}
Kind open_opencl() {
  Kind kind;
  auto drivers = opencl::open_drivers(&kind.missing);
  if (drivers.empty()) return kind;
  kind.devices = static_cast<int>(drivers.size());
  kind.backend = new gpu::GpuBackend(DeviceType::opencl, std::move(drivers));
  return kind;
}

// Opened at the first question about it: a program that stays on the CPU loads no vendor's library.
const Kind& kind_of(DeviceType type) {
  switch (type) {
    case DeviceType::cuda: {
      static const Kind* kind = new Kind(open_cuda());
      return *kind;
    }
    case DeviceType::opencl: {
      static const Kind* kind = new Kind(open_opencl());
      return *kind;
    }
    case DeviceType::null: {
      static const Kind* kind = new Kind(open_null());
      return *kind;
    }
    case DeviceType::cpu: break;
  }
  static const Kind* kind = new Kind(open_cpu());
  return *kind;
}

std::string family(DeviceType type) {
  const std::string name = Device(type).str();
  return name.substr(0, name.find(':'));
}

struct Opened {
  std::atomic<Backend*> backend{nullptr};
  std::atomic<int> devices{0};
};
constinit std::array<Opened, kTypes> opened{};

Backend& open_backend(Device device) {
  const Kind& kind = kind_of(device.type);
  if (kind.backend == nullptr) {
    std::string found;
    for (const Device d : found_devices()) found += (found.empty() ? "" : ", ") + d.str();
    fail(ErrorKind::device, "[device] ", device, " is not here: ", kind.missing, "; devices found: ", found);
  }
  if (device.index >= kind.devices)
    fail(ErrorKind::device, "[device] ", device, " does not exist; there ", kind.devices == 1 ? "is " : "are ",
         kind.devices, kind.devices == 1 ? " device" : " devices", " of this kind");
  Opened& entry = opened[static_cast<size_t>(device.type)];
  entry.devices.store(kind.devices, std::memory_order_relaxed);
  entry.backend.store(kind.backend, std::memory_order_release);
  return *kind.backend;
}

}  // namespace

Backend& backend_for(Device device) {
  const Opened& entry = opened[static_cast<size_t>(device.type)];
  Backend* backend = entry.backend.load(std::memory_order_acquire);
  if (backend == nullptr || device.index >= entry.devices.load(std::memory_order_relaxed)) [[unlikely]]
    return open_backend(device);
  return *backend;
}

std::vector<Device> found_devices() {
  std::vector<Device> out{Device(DeviceType::cpu)};
  for (const DeviceType type : {DeviceType::cuda, DeviceType::opencl})
    for (int i = 0; i < kind_of(type).devices; ++i) out.emplace_back(type, i);
  return out;
}

std::vector<std::string> missing_backends() {
  std::vector<std::string> out;
  for (const DeviceType type : {DeviceType::cuda, DeviceType::opencl})
    if (const Kind& kind = kind_of(type); kind.backend == nullptr) out.push_back(family(type) + ": " + kind.missing);
  return out;
}

}  // namespace outrace
