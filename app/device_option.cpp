#include "app/device_option.h"

#include <fmt/format.h>

#include "app/command.h"
#include "outrace/backend/backend.h"
#include "outrace/core/error.h"

namespace outrace::app {

Device asked_device(const std::string& name) {
  Device device;
  try {
    device = Device(name);
  } catch (const Error& e) {
    throw UsageError(e.what());
  }
  if (device.type == DeviceType::null)
    throw UsageError(fmt::format("{} computes nothing (it is there for tests), so it cannot take part", name));
  backend_for(device);  // throws when it is not there
  return device;
}

}  // namespace outrace::app
