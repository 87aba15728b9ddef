// Means and squared differences of blocks that are in cache, in two passes, as SIMD loops.
#include "outrace/backend/cpu/variance_kernels.h"

#include "outrace/backend/cpu/simd_target.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "outrace/backend/cpu/variance_simd.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "outrace/backend/cpu/simd_value.h"
HWY_BEFORE_NAMESPACE();
namespace outrace::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
HWY_INLINE T sum_across(Simd<T> v) {
  return hn::GetLane(hn::SumOfLanes(typename Simd<T>::Tag(), v.v));
}

// fn(vector k of four, lanes that count): whole vectors in turn, then the rest.
template <class T, class Fn>
HWY_INLINE void each_vector(const T* x, int64_t count, const Fn& fn) {
  constexpr int64_t kLanes = Simd<T>::kLanes;
  int64_t i = 0;
  for (; i + 4 * kLanes <= count; i += 4 * kLanes)
    for (int k = 0; k < 4; ++k) fn(k, Simd<T>::load(x + i + k * kLanes), kLanes);
  int k = 0;
  for (; i + kLanes <= count; i += kLanes) fn(k++, Simd<T>::load(x + i), kLanes);
  if (i < count) fn(k, Simd<T>::load_first(x + i, count - i), count - i);
}

template <class T>
void row(const T* x, int64_t count, T* mean, T* rest, T* squares) {
  constexpr int64_t kLanes = Simd<T>::kLanes;
  Simd<T> sum[4], square[4];
  for (auto& v : sum) v = Simd<T>(0.0);
  each_vector(x, count, [&](int k, Simd<T> v, int64_t) HWY_ATTR { sum[k] = sum[k] + v; });  // zeros behind the end
  *mean = sum_across((sum[0] + sum[1]) + (sum[2] + sum[3])) / static_cast<T>(count);
  const Simd<T> m = Simd<T>::splat(mean);
  for (auto& v : sum) v = Simd<T>(0.0);
  for (auto& v : square) v = Simd<T>(0.0);
  each_vector(x, count, [&](int k, Simd<T> v, int64_t lanes) HWY_ATTR {
    Simd<T> d = v - m;
    if (lanes < kLanes) d = hn::IfThenElseZero(hn::FirstN(typename Simd<T>::Tag(), static_cast<size_t>(lanes)), d.v);
    sum[k] = sum[k] + d;
    square[k] = hn::MulAdd(d.v, d.v, square[k].v);
  });
  *rest = sum_across((sum[0] + sum[1]) + (sum[2] + sum[3]));
  *squares = sum_across((square[0] + square[1]) + (square[2] + square[3]));
}

// kCount vectors of columns side by side, so that a line is read whole; `lanes` of the last one count.
template <int kCount, class T>
HWY_INLINE void column_group(const T* x, int64_t stride, int64_t rows, int64_t lanes, T* mean, T* rest, T* squares) {
  constexpr int64_t kLanes = Simd<T>::kLanes;
  const auto load = [&](int64_t r, int k) HWY_ATTR {
    const T* from = x + r * stride + k * kLanes;
    return lanes == kLanes ? Simd<T>::load(from) : Simd<T>::load_first(from, lanes);
  };
  const auto store = [&](T* to, int k, Simd<T> v) HWY_ATTR {
    if (lanes == kLanes)
      v.store(to + k * kLanes);
    else
      v.store_first(to + k * kLanes, lanes);
  };
  Simd<T> m[kCount], sum[kCount], square[kCount];
  for (int k = 0; k < kCount; ++k) m[k] = sum[k] = square[k] = Simd<T>(0.0);
  for (int64_t r = 0; r < rows; ++r)
    for (int k = 0; k < kCount; ++k) m[k] = m[k] + load(r, k);
  const Simd<T> count(static_cast<double>(rows));
  for (int k = 0; k < kCount; ++k) m[k] = m[k] / count;
  for (int64_t r = 0; r < rows; ++r)
    for (int k = 0; k < kCount; ++k) {
      const Simd<T> d = load(r, k) - m[k];
      sum[k] = sum[k] + d;
      square[k] = hn::MulAdd(d.v, d.v, square[k].v);
    }
  for (int k = 0; k < kCount; ++k) {
    store(mean, k, m[k]);
    store(rest, k, sum[k]);
    store(squares, k, square[k]);
  }
}

template <class T>
void columns(const T* x, int64_t stride, int64_t rows, int64_t width, T* mean, T* rest, T* squares) {
  constexpr int64_t kLanes = Simd<T>::kLanes;
  int64_t j = 0;
  for (; j + 4 * kLanes <= width; j += 4 * kLanes)
    column_group<4>(x + j, stride, rows, kLanes, mean + j, rest + j, squares + j);
  for (; j < width; j += kLanes)
    column_group<1>(x + j, stride, rows, width - j < kLanes ? width - j : kLanes, mean + j, rest + j, squares + j);
}

template <class T>
constexpr cpu::MomentKernels<T> kMoments = {&row<T>, &columns<T>};

}  // namespace
}  // namespace outrace::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace outrace::cpu {
template <>
const MomentKernels<float>& moment_kernels<float>() {
  return OUTRACE_CHOOSE_TARGET(kMoments<float>);
}
template <>
const MomentKernels<double>& moment_kernels<double>() {
  return OUTRACE_CHOOSE_TARGET(kMoments<double>);
}
}  // namespace outrace::cpu
#endif
