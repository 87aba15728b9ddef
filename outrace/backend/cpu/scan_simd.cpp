// Plain loops, which the compiler turns into vectors for each instruction set: conversions and columns gain by it.
#include <algorithm>
#include <cstdint>

#include "outrace/backend/cpu/scan_kernels.h"
#include "outrace/backend/cpu/simd_target.h"
#include "outrace/core/half.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "outrace/backend/cpu/scan_simd.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
HWY_BEFORE_NAMESPACE();
namespace outrace::HWY_NAMESPACE {
namespace {

using cpu::kScanLines;
using cpu::ScanKernels;
using cpu::ScanKind;
using cpu::ScanLine;
using cpu::ScanOutput;
using cpu::ScanWide;

constexpr int64_t kPiece = 128;  // elements of a line at once

struct Sum {
  static HWY_INLINE double join(double a, double b) { return a + b; }
  static HWY_INLINE int64_t join(int64_t a, int64_t b) {
    return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  }
};
struct Product {
  static HWY_INLINE double join(double a, double b) { return a * b; }
  static HWY_INLINE int64_t join(int64_t a, int64_t b) {
    return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  }
};

template <class S>
HWY_INLINE ScanWide<S> widen(S v) {
  if constexpr (std::is_same_v<S, bf16> || std::is_same_v<S, f16>)
    return static_cast<float>(v);
  else
    return v;
}
template <class S>
HWY_INLINE S narrow(ScanWide<S> v) {
  if constexpr (std::is_same_v<S, bf16> || std::is_same_v<S, f16>)
    return S(static_cast<float>(v));
  else
    return static_cast<S>(v);
}

// `value` becomes what is written for it.
template <class Op, ScanOutput kOut, class A>
HWY_INLINE void advance(A& value, A& carry) {
  const A next = Op::join(carry, value);
  value = kOut == ScanOutput::exclusive ? carry : next;
  carry = next;
}

// Up to kScanLines lines of neighbouring elements. Pieces of them are widened into L1 first: reads of x between writes
// of y would wait for each other wherever the two lie alike within a page.
template <class Op, ScanOutput kOut, class S>
void scan_lines(const S* x, S* y, const ScanLine* lines, int64_t number, int64_t direction, ScanWide<S>* carries) {
  ScanWide<S> pieces[kScanLines][kPiece], carry[kScanLines] = {};
  std::copy_n(carries, number, carry);
  int64_t longest = 0;
  for (int64_t k = 0; k < number; ++k) longest = std::max(longest, lines[k].count);
  for (int64_t begin = 0; begin < longest; begin += kPiece) {
    int64_t count[kScanLines] = {};
    for (int64_t k = 0; k < number; ++k) {
      count[k] = std::clamp<int64_t>(lines[k].count - begin, 0, kPiece);
      const S* from = x + lines[k].begin + begin * direction;
      if (direction > 0)
        for (int64_t i = 0; i < count[k]; ++i) pieces[k][i] = widen(from[i]);
      else
        for (int64_t i = 0; i < count[k]; ++i) pieces[k][i] = widen(from[-i]);
    }
    const int64_t most = std::min(kPiece, longest - begin);
    if (most == *std::min_element(count, count + kScanLines)) {
      for (int64_t i = 0; i < most; ++i)
        for (int64_t k = 0; k < kScanLines; ++k) advance<Op, kOut>(pieces[k][i], carry[k]);
    } else {
      for (int64_t k = 0; k < number; ++k)
        for (int64_t i = 0; i < count[k]; ++i) advance<Op, kOut>(pieces[k][i], carry[k]);
    }
    if constexpr (kOut != ScanOutput::none) {
      for (int64_t k = 0; k < number; ++k) {
        S* to = y + lines[k].begin + begin * direction;
        if (direction > 0)
          for (int64_t i = 0; i < count[k]; ++i) to[i] = narrow<S>(pieces[k][i]);
        else
          for (int64_t i = 0; i < count[k]; ++i) to[-i] = narrow<S>(pieces[k][i]);
      }
    }
  }
  std::copy_n(carry, number, carries);
}

// `count` rows of `width` columns, `row` elements apart, from element `at` on.
template <class Op, ScanOutput kOut, class S>
void scan_columns(const S* __restrict x, S* __restrict y, int64_t at, int64_t count, int64_t row, int64_t width,
                  ScanWide<S>* __restrict carries) {
  for (int64_t i = 0; i < count; ++i, at += row)
    for (int64_t j = 0; j < width; ++j) {
      ScanWide<S> value = widen(x[at + j]);
      advance<Op, kOut>(value, carries[j]);
      if constexpr (kOut != ScanOutput::none) y[at + j] = narrow<S>(value);
    }
}

template <class Op, class S>
constexpr ScanKernels<S> kOutputs[] = {
    {&scan_lines<Op, ScanOutput::none, S>, &scan_columns<Op, ScanOutput::none, S>},
    {&scan_lines<Op, ScanOutput::inclusive, S>, &scan_columns<Op, ScanOutput::inclusive, S>},
    {&scan_lines<Op, ScanOutput::exclusive, S>, &scan_columns<Op, ScanOutput::exclusive, S>}};

template <class S>
const ScanKernels<S>& choose(ScanKind kind, ScanOutput output) {
  return (kind == ScanKind::sum ? kOutputs<Sum, S> : kOutputs<Product, S>)[static_cast<int>(output)];
}

}  // namespace
}  // namespace outrace::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace outrace::cpu {
template <>
const ScanKernels<float>& scan_kernels<float>(ScanKind kind, ScanOutput output) {
  return OUTRACE_CHOOSE_TARGET(choose<float>)(kind, output);
}
template <>
const ScanKernels<double>& scan_kernels<double>(ScanKind kind, ScanOutput output) {
  return OUTRACE_CHOOSE_TARGET(choose<double>)(kind, output);
}
template <>
const ScanKernels<bf16>& scan_kernels<bf16>(ScanKind kind, ScanOutput output) {
  return OUTRACE_CHOOSE_TARGET(choose<bf16>)(kind, output);
}
template <>
const ScanKernels<f16>& scan_kernels<f16>(ScanKind kind, ScanOutput output) {
  return OUTRACE_CHOOSE_TARGET(choose<f16>)(kind, output);
}
template <>
const ScanKernels<int64_t>& scan_kernels<int64_t>(ScanKind kind, ScanOutput output) {
  return OUTRACE_CHOOSE_TARGET(choose<int64_t>)(kind, output);
}
}  // namespace outrace::cpu
#endif
