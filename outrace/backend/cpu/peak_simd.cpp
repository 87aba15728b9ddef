#include "outrace/backend/cpu/peak_kernels.h"
#include "outrace/backend/cpu/simd_target.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "outrace/backend/cpu/peak_simd.cpp"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace outrace::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Enough to hide a latency of 4 or 5 cycles on two units, few enough for AVX2's 16 registers with the two factors.
constexpr int kAccumulators = 12;
constexpr int kUnroll = 4;

template <class T>
double multiply_add(int64_t rounds) {
  const hn::ScalableTag<T> d;
  // Unknown to the compiler; every accumulator tends to 2, so nothing overflows or goes subnormal.
  volatile T source = T(0.5);
  const auto factor = hn::Set(d, source);
  const auto addend = hn::Add(factor, factor);
  hn::Vec<decltype(d)> sum[kAccumulators];
  for (int i = 0; i < kAccumulators; ++i) sum[i] = hn::Set(d, static_cast<T>(source * static_cast<T>(i)));
  for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 4
    for (int u = 0; u < kUnroll; ++u) {
#pragma GCC unroll 12
      for (int i = 0; i < kAccumulators; ++i) sum[i] = hn::MulAdd(sum[i], factor, addend);
    }
  }
  auto total = sum[0];
  for (int i = 1; i < kAccumulators; ++i) total = hn::Add(total, sum[i]);
  source = hn::GetLane(total);  // a use, so that the loop stays
  return 2.0 * kAccumulators * kUnroll * static_cast<double>(hn::Lanes(d)) * static_cast<double>(rounds);
}

void stream_copy(const float* from, float* to, int64_t count) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < count; i += 2 * lanes) {
    hn::Stream(hn::Load(d, from + i), d, to + i);
    hn::Stream(hn::Load(d, from + i + lanes), d, to + i + lanes);
  }
  hwy::FlushStream();
}

constexpr PeakKernels kPeakKernels = {&multiply_add<float>, &multiply_add<double>, &stream_copy};

}  // namespace
}  // namespace outrace::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace outrace {
const PeakKernels& peak_kernels() { return OUTRACE_CHOOSE_TARGET(kPeakKernels); }
}  // namespace outrace
#endif
