// Layer norm and RMS norm of single rows, as SIMD loops. A row is read several times, from L1 or L2 after the first.
#include "outrace/backend/cpu/norm_kernels.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "outrace/backend/cpu/simd_target.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "outrace/backend/cpu/norm_simd.cpp"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
HWY_BEFORE_NAMESPACE();
namespace outrace::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using cpu::NormRows;

// Numbers added up in one type of T; their sums of blocks are added in double.
constexpr int64_t kSumBlock = 1024;

template <class T>
using Tag = hn::ScalableTag<T>;
template <class T>
using Vec = hn::Vec<Tag<T>>;
template <class T>
constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(Tag<T>()));

template <class T>
HWY_INLINE Vec<T> load_some(const T* p, int64_t n) {
  return hn::MaskedLoad(hn::FirstN(Tag<T>(), static_cast<size_t>(n)), Tag<T>(), p);
}

// Two sums over [0, columns): fn(i, n, a, b) adds the terms of the vector at i to a and b; n < kLanes lanes of it
// count, and terms of the others must be 0.
template <class T, class Fn>
HWY_INLINE void two_sums(int64_t columns, double& total_a, double& total_b, const Fn& fn) {
  const Tag<T> d;
  total_a = total_b = 0;
  for (int64_t block = 0; block < columns; block += kSumBlock) {
    const int64_t end = std::min(columns, block + kSumBlock);
    Vec<T> a[4], b[4];
    for (int k = 0; k < 4; ++k) a[k] = b[k] = hn::Zero(d);
    int64_t i = block;
    for (; i + 4 * kLanes<T> <= end; i += 4 * kLanes<T>)
      for (int k = 0; k < 4; ++k) fn(i + k * kLanes<T>, kLanes<T>, a[k], b[k]);
    for (; i + kLanes<T> <= end; i += kLanes<T>) fn(i, kLanes<T>, a[0], b[0]);
    if (i < end) fn(i, end - i, a[1], b[1]);
    total_a += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(a[0], a[1]), hn::Add(a[2], a[3])))));
    total_b += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(b[0], b[1]), hn::Add(b[2], b[3])))));
  }
}

template <class T>
HWY_INLINE Vec<T> load_part(const T* x, int64_t i, int64_t n) {
  return n == kLanes<T> ? hn::LoadU(Tag<T>(), x + i) : load_some(x + i, n);
}
// The lanes of a part that count, zeros behind.
template <class T>
HWY_INLINE Vec<T> counted(Vec<T> v, int64_t n) {
  return n == kLanes<T> ? v : hn::IfThenElseZero(hn::FirstN(Tag<T>(), static_cast<size_t>(n)), v);
}

template <class T>
struct RowMoments {
  Vec<T> mean, inverse;  // the same number in all lanes; the mean is 0 for RMS norm
};

// The mean first, then squares of differences from it: numbers far from 0 lose nothing. What rounding left of the mean
// is found beside the squares and taken out of them.
template <class T>
HWY_INLINE RowMoments<T> moments_of(const NormRows<T>& call, const T* x) {
  const Tag<T> d;
  const double n = static_cast<double>(call.columns);
  double sum = 0, squares = 0;
  if (!call.centered) {
    two_sums<T>(call.columns, sum, squares, [&](int64_t i, int64_t count, Vec<T>&, Vec<T>& b) HWY_ATTR {
      const Vec<T> v = load_part(x, i, count);
      b = hn::MulAdd(v, v, b);
    });
    return {hn::Zero(d), hn::Set(d, static_cast<T>(1 / std::sqrt(squares / n + call.eps)))};
  }
  double unused = 0;
  two_sums<T>(call.columns, sum, unused,
              [&](int64_t i, int64_t count, Vec<T>& a, Vec<T>&) HWY_ATTR { a = hn::Add(a, load_part(x, i, count)); });
  const T mean = static_cast<T>(sum / n);
  const Vec<T> m = hn::Set(d, mean);
  double rest = 0;
  // This pass and the next work in L1, so that memory has time to bring the row behind this one.
  two_sums<T>(call.columns, rest, squares, [&](int64_t i, int64_t count, Vec<T>& a, Vec<T>& b) HWY_ATTR {
    hwy::Prefetch(x + call.columns + i);
    const Vec<T> v = counted<T>(hn::Sub(load_part(x, i, count), m), count);
    a = hn::Add(a, v);
    b = hn::MulAdd(v, v, b);
  });
  const double variance = std::max(0.0, (squares - rest * rest / n) / n);
  // A NaN or infinity in the row makes `squares` NaN, which max() would hide.
  const double spread = squares == squares ? variance : squares;
  return {m, hn::Set(d, static_cast<T>(1 / std::sqrt(spread + call.eps)))};
}

// y[i] = fn(i, n) for all columns, streamed where asked for and possible.
template <class T, class Fn>
HWY_INLINE void write_row(const NormRows<T>& call, T* y, const Fn& fn) {
  const Tag<T> d;
  int64_t i = 0;
  if (call.stream && reinterpret_cast<uintptr_t>(y) % (kLanes<T> * sizeof(T)) == 0) {
    for (; i + kLanes<T> <= call.columns; i += kLanes<T>) hn::Stream(fn(i, kLanes<T>), d, y + i);
  } else {
    for (; i + kLanes<T> <= call.columns; i += kLanes<T>) hn::StoreU(fn(i, kLanes<T>), d, y + i);
  }
  if (const int64_t left = call.columns - i; left > 0)
    hn::BlendedStore(fn(i, left), hn::FirstN(d, static_cast<size_t>(left)), d, y + i);
}

template <class T>
HWY_INLINE Vec<T> normalized(const RowMoments<T>& m, const T* x, int64_t i, int64_t n) {
  return hn::Mul(hn::Sub(load_part(x, i, n), m.mean), m.inverse);
}

template <class T, bool kWeight, bool kBias>
void forward_rows(const NormRows<T>& call, const T* x, const T* weight, const T* bias, T* y) {
  for (int64_t r = 0; r < call.rows; ++r, x += call.columns, y += call.columns) {
    const RowMoments<T> m = moments_of(call, x);
    write_row(call, y, [&](int64_t i, int64_t n) HWY_ATTR {
      Vec<T> v = normalized(m, x, i, n);
      if constexpr (kWeight) v = hn::Mul(v, load_part(weight, i, n));
      if constexpr (kBias) v = hn::Add(v, load_part(bias, i, n));
      return v;
    });
  }
}

template <class T>
void forward(const NormRows<T>& call, const T* x, const T* weight, const T* bias, T* y) {
  if (weight == nullptr) return forward_rows<T, false, false>(call, x, weight, bias, y);
  if (bias == nullptr) return forward_rows<T, true, false>(call, x, weight, bias, y);
  forward_rows<T, true, true>(call, x, weight, bias, y);
}

// dx = inverse * (h - mean(h) - normalized * mean(h * normalized)) with h = g * weight; RMS norm without mean(h).
template <class T, bool kWeight>
void backward_rows(const NormRows<T>& call, const T* x, const T* weight, const T* g, T* dx) {
  const Tag<T> d;
  const double n = static_cast<double>(call.columns);
  for (int64_t r = 0; r < call.rows; ++r, x += call.columns, g += call.columns, dx += call.columns) {
    const RowMoments<T> m = moments_of(call, x);
    const auto h = [&](int64_t i, int64_t count) HWY_ATTR {
      const Vec<T> v = load_part(g, i, count);
      return kWeight ? hn::Mul(v, load_part(weight, i, count)) : v;
    };
    double sum = 0, product = 0;
    two_sums<T>(call.columns, sum, product, [&](int64_t i, int64_t count, Vec<T>& a, Vec<T>& b) HWY_ATTR {
      const Vec<T> v = h(i, count);  // 0 behind the end
      a = hn::Add(a, v);
      b = hn::MulAdd(v, normalized(m, x, i, count), b);
    });
    const Vec<T> mean_h = hn::Set(d, call.centered ? static_cast<T>(sum / n) : T(0));
    const Vec<T> mean_product = hn::Set(d, static_cast<T>(product / n));
    write_row(call, dx, [&](int64_t i, int64_t count) HWY_ATTR {
      const Vec<T> rest = hn::Sub(h(i, count), mean_h);
      return hn::Mul(hn::NegMulAdd(normalized(m, x, i, count), mean_product, rest), m.inverse);
    });
  }
}

template <class T>
void backward(const NormRows<T>& call, const T* x, const T* weight, const T* g, T* dx) {
  if (weight == nullptr) return backward_rows<T, false>(call, x, weight, g, dx);
  backward_rows<T, true>(call, x, weight, g, dx);
}

template <class T>
void weight_grad(const NormRows<T>& call, const T* x, const T* g, T* dweight, T* dbias) {
  const Tag<T> d;
  std::fill_n(dweight, call.columns, T(0));
  std::fill_n(dbias, call.columns, T(0));
  for (int64_t r = 0; r < call.rows; ++r, x += call.columns, g += call.columns) {
    const RowMoments<T> m = moments_of(call, x);
    int64_t i = 0;
    for (; i + kLanes<T> <= call.columns; i += kLanes<T>) {
      const Vec<T> v = hn::LoadU(d, g + i);
      hn::StoreU(hn::MulAdd(v, normalized(m, x, i, kLanes<T>), hn::LoadU(d, dweight + i)), d, dweight + i);
      hn::StoreU(hn::Add(v, hn::LoadU(d, dbias + i)), d, dbias + i);
    }
    if (const int64_t left = call.columns - i; left > 0) {
      const auto mask = hn::FirstN(d, static_cast<size_t>(left));
      const Vec<T> v = load_some(g + i, left);
      hn::BlendedStore(hn::MulAdd(v, normalized(m, x, i, left), load_some(dweight + i, left)), mask, d, dweight + i);
      hn::BlendedStore(hn::Add(v, load_some(dbias + i, left)), mask, d, dbias + i);
    }
  }
}

void fence() { hwy::FlushStream(); }

template <class T>
constexpr cpu::NormKernels<T> kNorm = {&forward<T>, &backward<T>, &weight_grad<T>, &fence};

}  // namespace
}  // namespace outrace::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace outrace::cpu {
template <>
const NormKernels<float>& norm_kernels<float>() {
  return OUTRACE_CHOOSE_TARGET(kNorm<float>);
}
template <>
const NormKernels<double>& norm_kernels<double>() {
  return OUTRACE_CHOOSE_TARGET(kNorm<double>);
}
}  // namespace outrace::cpu
#endif
