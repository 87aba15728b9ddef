// Softmax and cross-entropy of single rows, as SIMD loops. Rows of up to four vectors stay in registers.
#include "outrace/backend/cpu/rows_kernels.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "outrace/backend/cpu/simd_target.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "outrace/backend/cpu/rows_simd.cpp"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "outrace/backend/cpu/simd_value.h"
HWY_BEFORE_NAMESPACE();
namespace outrace::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using cpu::kRowGroup;

// Exponentials added up in one type of T; their sums of blocks are added in double. As in reduce_simd.cpp.
constexpr int64_t kSumBlock = 1024;

// What softmax needs of a row: its largest number (NaN need not win: it spoils the sum) and the sum of e^(x - max).
template <class T>
struct RowSum {
  Simd<T> max, sum;  // the same number in all lanes
};

template <class T>
HWY_INLINE Simd<T> max_across(Simd<T> v) {
  return hn::MaxOfLanes(typename Simd<T>::Tag(), v.v);
}
template <class T>
HWY_INLINE Simd<T> sum_across(Simd<T> v) {
  return hn::SumOfLanes(typename Simd<T>::Tag(), v.v);
}
// Of a NaN and a number the number, on x86.
template <class T>
HWY_INLINE Simd<T> raw_max(Simd<T> x, Simd<T> seen) {
  return hn::Max(x.v, seen.v);
}
template <class T>
HWY_INLINE T first_lane(Simd<T> v) {
  return hn::GetLane(v.v);
}

// e^x for x <= 0, as in simd_math.h but with 0 instead of subnormal numbers, whose arithmetic takes 100 cycles and
// more: a row's largest exponential is 1, beside which they mean nothing.
template <class T>
struct ExpRange;
template <>
struct ExpRange<float> {
  static constexpr float kLow = -87;  // 1.6e-38; the smallest normal number is 1.2e-38
};
template <>
struct ExpRange<double> {
  static constexpr double kLow = -708;  // 3.3e-308; 2.2e-308
};

// Several vectors step by step: one alone is a chain of dependent operations, and few such chains are in flight at
// once. kPlain: no number is below ExpRange or NaN.
template <bool kPlain, class T, int kCount>
HWY_INLINE void exp_in_range(Simd<T> (&x)[kCount]) {
  using F = MathFacts<T>;
  using V = typename Simd<T>::Vector;
  const typename Simd<T>::Tag d;
  const hn::RebindToUnsigned<decltype(d)> du;
  const V low = hn::Set(d, ExpRange<T>::kLow), round = hn::Set(d, F::kRound);
  V rounded[kCount], r[kCount], z[kCount], sum[kCount], odd[kCount];
  for (int k = 0; k < kCount; ++k) r[k] = kPlain ? x[k].v : hn::Max(low, x[k].v);  // NaN if x is
  for (int k = 0; k < kCount; ++k)
    rounded[k] = hn::MulAdd(r[k], hn::Set(d, static_cast<T>(1.44269504088896340736)), round);
  for (int k = 0; k < kCount; ++k) {
    const V n = hn::Sub(rounded[k], round);
    r[k] = hn::NegMulAdd(n, hn::Set(d, F::kLn2High), r[k]);
    r[k] = hn::NegMulAdd(n, hn::Set(d, F::kLn2Low), r[k]);
  }
  // The terms with even and with odd powers side by side, for a shorter chain.
  constexpr int kTerms = sizeof(F::kExp) / sizeof(T);
  static_assert(kTerms % 2 == 0);
  for (int k = 0; k < kCount; ++k) {
    z[k] = hn::Mul(r[k], r[k]);
    sum[k] = hn::Set(d, F::kExp[kTerms - 2]);
    odd[k] = hn::Set(d, F::kExp[kTerms - 1]);
  }
#pragma GCC unroll 16
  for (int i = kTerms - 4; i >= 0; i -= 2)
    for (int k = 0; k < kCount; ++k) {
      sum[k] = hn::MulAdd(sum[k], z[k], hn::Set(d, F::kExp[i]));
      odd[k] = hn::MulAdd(odd[k], z[k], hn::Set(d, F::kExp[i + 1]));
    }
  for (int k = 0; k < kCount; ++k) sum[k] = hn::MulAdd(odd[k], r[k], sum[k]);
  for (int k = 0; k < kCount; ++k) sum[k] = hn::MulAdd(z[k], sum[k], r[k]);
  for (int k = 0; k < kCount; ++k) sum[k] = hn::Add(sum[k], hn::Set(d, T(1)));
  for (int k = 0; k < kCount; ++k) {
    if constexpr (kPlain) {
      const auto exponent = hn::ShiftLeft<F::kMantissa>(hn::BitCast(du, rounded[k]));
      x[k] = hn::BitCast(d, hn::Add(hn::BitCast(du, sum[k]), exponent));
    } else {
      const V y = hn::Mul(sum[k], power_of_two<T>(hn::Sub(rounded[k], round)));
      x[k] = hn::IfThenZeroElse(hn::Lt(x[k].v, low), y);
    }
  }
}

template <class T, int kCount>
HWY_INLINE void exp_to_one(Simd<T> (&x)[kCount]) {
  const typename Simd<T>::Tag d;
  auto plain = hn::Ge(x[0].v, hn::Set(d, ExpRange<T>::kLow));
  for (int k = 1; k < kCount; ++k) plain = hn::And(plain, hn::Ge(x[k].v, hn::Set(d, ExpRange<T>::kLow)));
  if (hn::AllTrue(d, plain)) [[likely]]
    exp_in_range<true>(x);
  else
    exp_in_range<false>(x);
}
template <class T>
HWY_INLINE Simd<T> exp_to_one(Simd<T> x) {
  Simd<T> one[1] = {x};
  exp_to_one(one);
  return one[0];
}

// The only vector of a short row: `count` numbers, with -infinity behind them, whose exponential is 0. `spill`: the
// numbers behind may be read (masked loads are slow on AMD where they miss the cache).
template <class T>
HWY_INLINE Simd<T> load_short(const T* x, int64_t count, bool spill) {
  const typename Simd<T>::Tag d;
  const auto mask = hn::FirstN(d, static_cast<size_t>(count));
  const auto v = spill ? hn::LoadU(d, x) : hn::MaskedLoad(mask, d, x);
  return hn::IfThenElse(mask, v, hn::Set(d, -std::numeric_limits<T>::infinity()));
}

// Longer rows end with a vector that overlaps the one before it (masked stores are slow on AMD, and what they wrote
// must not be read soon). This is its part that was not seen before, for sums: the last columns % kLanes numbers, zeros
// before them.
template <class T>
HWY_INLINE Simd<T> unseen(Simd<T> v, int64_t columns) {
  const typename Simd<T>::Tag d;
  return hn::IfThenZeroElse(
      hn::FirstN(d, static_cast<size_t>((Simd<T>::kLanes - columns % Simd<T>::kLanes) % Simd<T>::kLanes)), v.v);
}

// ---- rows of kVectors vectors, the last of them perhaps not full ----

template <class T, int kVectors>
HWY_INLINE void load_row(const T* x, int64_t columns, bool spill, Simd<T> (&v)[kVectors]) {
  for (int k = 0; k < kVectors - 1; ++k) v[k] = Simd<T>::load(x + k * Simd<T>::kLanes);
  v[kVectors - 1] = kVectors == 1 ? load_short(x, columns, spill) : Simd<T>::load(x + columns - Simd<T>::kLanes);
}

// Leaves the exponentials in v.
template <class T, int kVectors>
HWY_INLINE RowSum<T> exp_row(int64_t columns, Simd<T> (&v)[kVectors]) {
  Simd<T> max = v[0];
  for (int k = 1; k < kVectors; ++k) max = raw_max(v[k], max);
  max = max_across(max);
  for (int k = 0; k < kVectors; ++k) v[k] = v[k] - max;
  exp_to_one(v);
  Simd<T> sum = kVectors == 1 ? v[0] : unseen(v[kVectors - 1], columns);
  for (int k = 0; k < kVectors - 1; ++k) sum = sum + v[k];
  return {max, sum_across(sum)};
}

// `spill`: the numbers behind a short row may be overwritten; their turn comes.
template <class T, int kVectors>
HWY_INLINE void store_row(T* y, int64_t columns, bool spill, const Simd<T> (&v)[kVectors], Simd<T> factor) {
  for (int k = 0; k < kVectors - 1; ++k) (v[k] * factor).store(y + k * Simd<T>::kLanes);
  const Simd<T> last = v[kVectors - 1] * factor;
  if (kVectors > 1)
    last.store(y + columns - Simd<T>::kLanes);
  else if (spill || columns == Simd<T>::kLanes)
    last.store(y);
  else
    last.store_first(y, columns);
}

// ---- rows of at least a vector ----

template <class T>
HWY_INLINE Simd<T> max_of_row(const T* x, int64_t columns) {
  constexpr int64_t kLanes = Simd<T>::kLanes;
  Simd<T> m[4];
  for (auto& v : m) v = Simd<T>::load(x + columns - kLanes);
  int64_t i = 0;
  for (; i + 4 * kLanes <= columns; i += 4 * kLanes)
    for (int k = 0; k < 4; ++k) m[k] = raw_max(Simd<T>::load(x + i + k * kLanes), m[k]);
  for (; i + kLanes <= columns; i += kLanes) m[0] = raw_max(Simd<T>::load(x + i), m[0]);
  return max_across(raw_max(raw_max(m[0], m[1]), raw_max(m[2], m[3])));
}

// Sum of the exponentials of at most kSumBlock numbers; y gets them if kStore. Asks for the row behind this one,
// `ahead` numbers further on: arithmetic is long enough to hide what memory takes.
template <bool kStore, class T>
HWY_INLINE Simd<T> exp_block(const T* x, int64_t count, Simd<T> max, T* y, int64_t ahead) {
  constexpr int64_t kLanes = Simd<T>::kLanes, kVectorBytes = kLanes * int64_t{sizeof(T)}, kCacheLine = 64;
  if (count < kLanes) {
    const Simd<T> e = exp_to_one(load_short(x, count, false) - max);
    if (kStore) e.store_first(y, count);
    return sum_across(e);
  }
  // Read before y, which may be x, is written.
  Simd<T> end = Simd<T>::load(x + count - kLanes);
  Simd<T> sum[4];
  for (auto& v : sum) v = Simd<T>(0.0);
  int64_t i = 0;
  for (; i + 4 * kLanes <= count; i += 4 * kLanes) {
    Simd<T> e[4];
    for (int k = 0; k < 4; ++k) {
      e[k] = Simd<T>::load(x + i + k * kLanes) - max;
      if (k * kVectorBytes % kCacheLine == 0) hwy::Prefetch(x + i + k * kLanes + ahead);
    }
    exp_to_one(e);
    for (int k = 0; k < 4; ++k) {
      if (kStore) e[k].store(y + i + k * kLanes);
      sum[k] = sum[k] + e[k];
    }
  }
  for (; i + kLanes <= count; i += kLanes) {
    const Simd<T> e = exp_to_one(Simd<T>::load(x + i) - max);
    if (kStore) e.store(y + i);
    sum[0] = sum[0] + e;
  }
  if (i < count) {
    end = exp_to_one(end - max);
    if (kStore) end.store(y + count - kLanes);
    sum[1] = sum[1] + unseen(end, count);
  }
  return sum_across((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

template <bool kStore, class T>
HWY_INLINE RowSum<T> exp_long_row(const T* x, int64_t columns, T* y) {
  const Simd<T> max = max_of_row(x, columns);
  if (columns <= kSumBlock) return {max, exp_block<kStore>(x, columns, max, y, columns)};
  double sum = 0;
  for (int64_t i = 0; i < columns; i += kSumBlock)
    sum += first_lane(exp_block<kStore>(x + i, std::min(kSumBlock, columns - i), max, y + i, columns));
  return {max, Simd<T>(sum)};
}

// y = fn(x) for any number of columns; y may be x.
template <class T, class Fn>
HWY_INLINE void map_row(const T* x, T* y, int64_t columns, const Fn& fn) {
  constexpr int64_t kLanes = Simd<T>::kLanes;
  if (columns < kLanes) return fn(Simd<T>::load_first(x, columns)).store_first(y, columns);
  const Simd<T> end = Simd<T>::load(x + columns - kLanes);
  int64_t i = 0;
  for (; i + 4 * kLanes <= columns; i += 4 * kLanes)
    for (int k = 0; k < 4; ++k) fn(Simd<T>::load(x + i + k * kLanes)).store(y + i + k * kLanes);
  for (; i + kLanes <= columns; i += kLanes) fn(Simd<T>::load(x + i)).store(y + i);
  if (i < columns) fn(end).store(y + columns - kLanes);
}

// The same past the caches, where y is aligned.
template <class T, class Fn>
HWY_INLINE void stream_row(const T* x, T* y, int64_t columns, const Fn& fn) {
  constexpr int64_t kLanes = Simd<T>::kLanes;
  const typename Simd<T>::Tag d;
  int64_t i = 0;
  for (; i + kLanes <= columns; i += kLanes) hn::Stream(fn(Simd<T>::load(x + i)).v, d, y + i);
  if (i < columns) fn(Simd<T>::load_first(x + i, columns - i)).store_first(y + i, columns - i);
}
template <class T>
HWY_INLINE bool can_stream(const T* y) {
  return reinterpret_cast<uintptr_t>(y) % (static_cast<uintptr_t>(Simd<T>::kLanes) * sizeof(T)) == 0;
}

template <class T>
HWY_INLINE void log_all(T* x, int64_t count) {
  map_row(x, x, count, [](Simd<T> v) HWY_ATTR { return log(v); });
}

// ---- all rows of a call; kVectors 0: of any length ----

// Whether a vector from row r on ends within the rows.
template <class T>
HWY_INLINE bool may_spill(int64_t r, int64_t rows, int64_t columns) {
  return (rows - r) * columns >= Simd<T>::kLanes;
}

// The largest number and the sum of each row; 0 and 1 for rows whose class is -1. `classes` may be null.
template <int kVectors, class T>
void sums_of_rows(const T* x, const int64_t* classes, int64_t rows, int64_t columns, T* max, T* sum) {
  for (int64_t r = 0; r < rows; ++r, x += columns) {
    RowSum<T> row = {0.0, 1.0};
    if (classes == nullptr || classes[r] >= 0) {
      if constexpr (kVectors == 0) {
        row = exp_long_row<false>(x, columns, static_cast<T*>(nullptr));
      } else {
        Simd<T> v[kVectors];
        load_row(x, columns, may_spill<T>(r, rows, columns), v);
        row = exp_row(columns, v);
      }
    }
    max[r] = first_lane(row.max);
    sum[r] = first_lane(row.sum);
  }
}

// y[r] = scales[r] * (softmax(x[r]) - onehot(classes[r])); without classes and scales y[r] = softmax(x[r]). `scratch`,
// a row, if results go past the caches: the exponentials wait there for their sum.
template <int kVectors, class T>
void softmax_of_rows(const T* x, const int64_t* classes, const T* scales, T* y, int64_t rows, int64_t columns,
                     T* scratch) {
  for (int64_t r = 0; r < rows; ++r, x += columns, y += columns) {
    if (classes != nullptr && classes[r] < 0) {
      std::memset(y, 0, static_cast<size_t>(columns) * sizeof(T));
      continue;
    }
    const Simd<T> scale = scales == nullptr ? Simd<T>(1.0) : Simd<T>::splat(scales + r);
    if constexpr (kVectors == 0) {
      const bool stream = scratch != nullptr && can_stream(y);
      T* exponentials = stream ? scratch : y;
      const Simd<T> factor = scale / exp_long_row<true>(x, columns, exponentials).sum;
      const auto scaled = [&](Simd<T> e) HWY_ATTR { return e * factor; };
      stream ? stream_row(exponentials, y, columns, scaled) : map_row(y, y, columns, scaled);
    } else {
      const bool spill = may_spill<T>(r, rows, columns);
      Simd<T> v[kVectors];
      load_row(x, columns, spill, v);
      const Simd<T> sum = exp_row(columns, v).sum;
      store_row(y, columns, spill && x != y, v, scale / sum);
    }
    if (classes != nullptr) y[classes[r]] -= scales[r];
  }
}

// The function of the two above for rows of 1 to 4 vectors, or for longer ones.
template <class T>
using SumsOfRows = void (*)(const T*, const int64_t*, int64_t, int64_t, T*, T*);
template <class T>
constexpr SumsOfRows<T> kSumsOfRows[] = {&sums_of_rows<0, T>, &sums_of_rows<1, T>, &sums_of_rows<2, T>,
                                         &sums_of_rows<3, T>, &sums_of_rows<4, T>};
template <class T>
using SoftmaxOfRows = void (*)(const T*, const int64_t*, const T*, T*, int64_t, int64_t, T*);
template <class T>
constexpr SoftmaxOfRows<T> kSoftmaxOfRows[] = {&softmax_of_rows<0, T>, &softmax_of_rows<1, T>, &softmax_of_rows<2, T>,
                                               &softmax_of_rows<3, T>, &softmax_of_rows<4, T>};
template <class T>
int64_t by_length(int64_t columns) {
  const int64_t vectors = (columns + Simd<T>::kLanes - 1) / Simd<T>::kLanes;
  return vectors <= 4 ? vectors : 0;
}

// ---- the kernels ----

template <class T>
void softmax(const T* x, T* y, int64_t rows, int64_t columns, T* scratch) {
  kSoftmaxOfRows<T>[by_length<T>(columns)](x, nullptr, nullptr, y, rows, columns, scratch);
}

template <class T>
void log_softmax(const T* x, T* y, int64_t rows, int64_t columns, T* scratch) {
  T max[kRowGroup], log_sum[kRowGroup];
  kSumsOfRows<T>[by_length<T>(columns)](x, nullptr, rows, columns, max, log_sum);
  log_all(log_sum, rows);
  for (int64_t r = 0; r < rows; ++r) {
    // Two subtractions: max + log_sum, rounded, would lose log_sum where the numbers are huge.
    const Simd<T> m = Simd<T>::splat(max + r), l = Simd<T>::splat(log_sum + r);
    const auto shifted = [&](Simd<T> v) HWY_ATTR { return v - m - l; };
    const T* from = x + r * columns;
    T* to = y + r * columns;
    scratch != nullptr&& can_stream(to) ? stream_row(from, to, columns, shifted) : map_row(from, to, columns, shifted);
  }
}

// Of a row whose largest number is infinite, or NaN: x - max says nothing there.
template <class T>
T logsumexp_without_difference(const T* x, int64_t columns, T max) {
  for (int64_t i = 0; i < columns; ++i)
    if (x[i] != x[i]) return x[i];
  return max;
}

template <class T>
void logsumexp(const T* x, T* y, int64_t rows, int64_t columns) {
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  T max[kRowGroup];
  kSumsOfRows<T>[by_length<T>(columns)](x, nullptr, rows, columns, max, y);
  log_all(y, rows);
  for (int64_t r = 0; r < rows; ++r) {
    const bool finite = max[r] > -kInfinity && max[r] < kInfinity;
    y[r] = finite ? y[r] + max[r] : logsumexp_without_difference(x + r * columns, columns, max[r]);
  }
}

template <class T>
void cross_entropy(const T* x, const int64_t* classes, T* losses, int64_t rows, int64_t columns) {
  T max[kRowGroup];
  kSumsOfRows<T>[by_length<T>(columns)](x, classes, rows, columns, max, losses);
  log_all(losses, rows);
  for (int64_t r = 0; r < rows; ++r)
    if (classes[r] >= 0) losses[r] -= x[r * columns + classes[r]] - max[r];
}

template <class T>
void cross_entropy_grad(const T* x, const int64_t* classes, const T* scales, T* y, int64_t rows, int64_t columns) {
  kSoftmaxOfRows<T>[by_length<T>(columns)](x, classes, scales, y, rows, columns, nullptr);
}

void fence() { hwy::FlushStream(); }

template <class T>
constexpr cpu::RowKernels<T> kRows = {&softmax<T>,       &log_softmax<T>,        &logsumexp<T>,
                                      &cross_entropy<T>, &cross_entropy_grad<T>, &fence};

}  // namespace
}  // namespace outrace::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace outrace::cpu {
template <>
const RowKernels<float>& row_kernels<float>() {
  return OUTRACE_CHOOSE_TARGET(kRows<float>);
}
template <>
const RowKernels<double>& row_kernels<double>() {
  return OUTRACE_CHOOSE_TARGET(kRows<double>);
}
}  // namespace outrace::cpu
#endif
