#include "outrace/core/device.h"

#include <charconv>

#include "outrace/core/error.h"

namespace outrace {
namespace {
constexpr std::string_view kNames[] = {"cpu", "null", "cuda", "opencl"};
}

Device::Device(std::string_view name) {
  const size_t colon = name.find(':');
  const std::string_view kind = name.substr(0, colon);
  for (int i = 0; i < 4; ++i) {
    if (kind != kNames[i]) continue;
    type = static_cast<DeviceType>(i);
    if (colon == std::string_view::npos) return;
    const std::string_view number = name.substr(colon + 1);
    const auto [end, code] = std::from_chars(number.begin(), number.end(), index);
    if (code == std::errc{} && end == number.end() && (type != DeviceType::cpu || index == 0)) return;
  }
  fail(ErrorKind::device, "[device] unknown device '", name,
       "'; known names: cpu, cuda, cuda:N, opencl:N, null, null:N");
}

std::string Device::str() const {
  std::string out(kNames[static_cast<int>(type)]);
  return type == DeviceType::cpu ? out : cat(out, ':', index);
}

}  // namespace outrace
