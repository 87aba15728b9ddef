// Which backends this program has. The only file that knows all of them.
#include <array>
#include <atomic>

#include "outrace/backend/backend.h"
#include "outrace/backend/cpu/cpu_backend.h"
#include "outrace/backend/null/null_backend.h"
#include "outrace/core/error.h"

namespace outrace {
namespace {

constexpr int kTypes = 4;
// Null pointers until the first use of a kind of device, which is then never destroyed: buffers may die after main().
constinit std::array<std::atomic<Backend*>, kTypes> opened{};

struct Kind {
  Backend* (*open)();   // null: not in this build
  int devices;          // indices below it exist
  const char* missing;  // why there is none and what would help, for people
};

constexpr Kind kKinds[kTypes] = {
    {[]() -> Backend* { return &CpuBackend::get(); }, 1, nullptr},
    {[]() -> Backend* { return &NullBackend::get(); }, kNullDevices, nullptr},
    {nullptr, 0,
     "this version has no CUDA backend yet; it will need an NVIDIA driver and CUDA's run-time libraries, nothing at "
     "build time"},
    {nullptr, 0,
     "this version has no OpenCL backend yet; it will need a driver of the card (Debian: intel-opencl-icd, "
     "mesa-opencl-icd)"},
};

Backend& open_backend(Device device) {
  const int type = static_cast<int>(device.type);
  const Kind& kind = kKinds[type];
  if (kind.open == nullptr)
    fail(ErrorKind::device, "[device] ", device, " is not here: ", kind.missing, "; devices found: cpu");
  if (device.index >= kind.devices)
    fail(ErrorKind::device, "[device] ", device, " does not exist; there are ", kind.devices, " devices of this kind");
  Backend* backend = kind.open();
  opened[type].store(backend, std::memory_order_release);
  return *backend;
}

}  // namespace

Backend& backend_for(Device device) {
  const int type = static_cast<int>(device.type);
  Backend* backend = opened[type].load(std::memory_order_acquire);
  if (backend == nullptr || device.index >= kKinds[type].devices) [[unlikely]]
    return open_backend(device);
  return *backend;
}

std::vector<Device> found_devices() { return {Device(DeviceType::cpu)}; }

std::vector<std::string> missing_backends() {
  std::vector<std::string> out;
  for (DeviceType type : {DeviceType::cuda, DeviceType::opencl}) {
    const char* why = kKinds[static_cast<int>(type)].missing;
    const std::string name = Device(type).str();
    if (why != nullptr) out.push_back(name.substr(0, name.find(':')) + ": " + why);
  }
  return out;
}

}  // namespace outrace
