// Typed reads of the OUTRACE_* environment variables. An empty variable counts as unset.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace outrace {

std::string env_string(const char* name, std::string_view fallback = "");
// Throws Error(option) that names the variable and its value if that is no whole number in [low, high].
int64_t env_int(const char* name, int64_t fallback, int64_t low, int64_t high);

// OUTRACE_DEBUG, read once: 0 silent, 1 each new plan, 2 also why faster kernel rows were passed over, 3 everything.
int debug_level();
void set_debug_level(int level);  // for --debug and for tests

}  // namespace outrace
