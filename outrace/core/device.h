// Names of processors: "cpu", "null", "null:1", "cuda:0", "opencl:0".
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace outrace {

enum class DeviceType : uint8_t { cpu, null, cuda, opencl };

struct Device {
  DeviceType type = DeviceType::cpu;
  uint8_t index = 0;

  constexpr Device() = default;
  constexpr Device(DeviceType t, int i = 0) : type(t), index(static_cast<uint8_t>(i)) {}
  // Parses a name; throws Error(device) that lists what exists. Whether the device is present is checked at first use.
  Device(std::string_view name);
  Device(const char* name) : Device(std::string_view(name)) {}
  Device(const std::string& name) : Device(std::string_view(name)) {}

  friend constexpr bool operator==(Device, Device) = default;
  std::string str() const;
};

}  // namespace outrace
