#include "outrace/core/env.h"

#include <atomic>
#include <charconv>
#include <cstdlib>

#include "outrace/core/error.h"

namespace outrace {
namespace {
constexpr int kUnread = -1;
constexpr int kHighestLevel = 3;
std::atomic<int> level_in_force{kUnread};
}  // namespace

std::string env_string(const char* name, std::string_view fallback) {
  const char* value = std::getenv(name);
  return std::string(value != nullptr && *value != '\0' ? std::string_view(value) : fallback);
}

int64_t env_int(const char* name, int64_t fallback, int64_t low, int64_t high) {
  const std::string text = env_string(name);
  if (text.empty()) return fallback;
  int64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || end != text.data() + text.size() || value < low || value > high)
    fail(ErrorKind::option, "[env] ", name, " must be a whole number from ", low, " to ", high, "; it is '", text, "'");
  return value;
}

int debug_level() {
  int level = level_in_force.load(std::memory_order_relaxed);
  if (level == kUnread) [[unlikely]] {
    level = static_cast<int>(env_int("OUTRACE_DEBUG", 0, 0, kHighestLevel));
    level_in_force.store(level, std::memory_order_relaxed);
  }
  return level;
}

void set_debug_level(int level) {
  if (level < 0 || level > kHighestLevel)
    fail(ErrorKind::option, "[debug] the level must be from 0 to ", kHighestLevel, "; got ", level);
  level_in_force.store(level, std::memory_order_relaxed);
}

}  // namespace outrace
