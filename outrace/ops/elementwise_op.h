// The enum of elementwise ops and facts about them, generated from ops.def.
#pragma once
#include <cstdint>
#include <string_view>

namespace outrace {

enum class Ew : uint8_t {
#define UNARY(name, ...) name,
#define BINARY(name, ...) name,
#define COMPARE(name, ...) name,
#define SELECT(name, ...) name,
#include "outrace/ops/ops.def"
#undef UNARY
#undef BINARY
#undef COMPARE
#undef SELECT
};

struct EwInfo {
  std::string_view name;
  std::string_view value;  // the text of ops.def
  int arity;
  bool compares;     // result is bool
  bool real_only;    // no integer form
  double low, high;  // range of the derivative's test
};

namespace detail {
constexpr bool real = true, any = false;
}

constexpr EwInfo kEwInfo[] = {
#define UNARY(name, value, gx, types, autocast, low, high) {#name, #value, 1, false, detail::types, low, high},
#define BINARY(name, value, gx, gz, types, autocast, low, high) {#name, #value, 2, false, detail::types, low, high},
#define COMPARE(name, value) {#name, #value, 2, true, false, -3, 3},
#define SELECT(name, value, gz, gw, low, high) {#name, #value, 3, false, false, low, high},
#include "outrace/ops/ops.def"
#undef UNARY
#undef BINARY
#undef COMPARE
#undef SELECT
};
constexpr int kEwCount = sizeof(kEwInfo) / sizeof(kEwInfo[0]);

constexpr const EwInfo& info_of(Ew op) { return kEwInfo[static_cast<int>(op)]; }

}  // namespace outrace
