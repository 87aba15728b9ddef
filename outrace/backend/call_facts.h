// What kernel rows of every backend ask of a call.
#pragma once
#include "outrace/graph/plan.h"

namespace outrace {

inline DType stored(const View& view, const Plan& plan) { return plan.values[view.value].dtype; }

// Why a kernel that reads `operands` whole arrays and writes one cannot take the call; null if it can.
inline const char* whole_why_not(const Call& call, size_t operands) {
  if (call.operands.size() != operands) return "an operand is missing, or a scalar without memory";
  for (const View& v : call.operands)
    if (v.value < 0) return "an operand is a scalar without memory";
  if (call.result < 0 || !call.epilogue.empty()) return "stores its result, and nothing follows";
  return nullptr;
}

}  // namespace outrace
