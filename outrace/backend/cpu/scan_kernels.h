// The innermost loops of scan.cpp, chosen per instruction set. Nothing here knows of parts or threads.
#pragma once
#include <cstdint>
#include <type_traits>

namespace outrace::cpu {

enum class ScanKind : uint8_t { sum, prod };

// What a sweep writes: only totals, or each element's sum with or without itself.
enum class ScanOutput : uint8_t { none, inclusive, exclusive };

// Floats are added up and multiplied in f64, integers wrap around in i64.
template <class S>
using ScanWide = std::conditional_t<std::is_integral_v<S>, int64_t, double>;

// `count` elements from element `begin` of an array on, in the scan's direction.
struct ScanLine {
  int64_t begin, count;
};
constexpr int64_t kScanLines = 4;  // taken side by side: as many operations as an addition takes cycles

template <class S>
struct ScanKernels {
  // Up to kScanLines lines of neighbouring elements; `direction` 1 or -1. Carries go on from what they are.
  void (*lines)(const S* x, S* y, const ScanLine* lines, int64_t number, int64_t direction, ScanWide<S>* carries);
  // `count` rows of `width` columns, `row` elements apart, from element `at` on.
  void (*columns)(const S* x, S* y, int64_t at, int64_t count, int64_t row, int64_t width, ScanWide<S>* carries);
};

template <class S>  // float, double, bf16, f16, int64_t
const ScanKernels<S>& scan_kernels(ScanKind kind, ScanOutput output);

}  // namespace outrace::cpu
