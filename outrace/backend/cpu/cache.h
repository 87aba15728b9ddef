// When results are better written past the caches.
#pragma once
#include <cstdint>

#include "outrace/core/cpu_info.h"

namespace outrace::cpu {

// Larger results would push much else out of the last cache, half of which they may take.
inline int64_t most_in_caches() {
  constexpr int64_t kUnknown = int64_t{8} << 20;
  return cpu_info().l3_bytes > 0 ? cpu_info().l3_bytes / 2 : kUnknown;
}

}  // namespace outrace::cpu
