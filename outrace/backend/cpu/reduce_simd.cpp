// Sums, products and extremes of short rows and of columns, as SIMD loops.
#include "outrace/backend/cpu/reduce_kernels.h"

#include <cstring>

#include "outrace/backend/cpu/simd_target.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "outrace/backend/cpu/reduce_simd.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
HWY_BEFORE_NAMESPACE();
namespace outrace::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

template <class D>
using Lane = hn::TFromD<D>;

// The first n < Lanes(d) numbers at p, zeros behind; touches nothing else.
template <class D>
hn::Vec<D> load_some(D d, const Lane<D>* p, int64_t n) {
#if HWY_ARCH_X86
  return hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(n)), d, p);
#else
  HWY_ALIGN Lane<D> lanes[hn::MaxLanes(d)] = {};
  std::memcpy(lanes, p, static_cast<size_t>(n) * sizeof(Lane<D>));
  return hn::Load(d, lanes);
#endif
}

template <class D>
void store_some(D d, Lane<D>* p, int64_t n, hn::Vec<D> v) {
#if HWY_ARCH_X86
  hn::BlendedStore(v, hn::FirstN(d, static_cast<size_t>(n)), d, p);
#else
  HWY_ALIGN Lane<D> lanes[hn::MaxLanes(d)];
  hn::Store(v, d, lanes);
  std::memcpy(p, lanes, static_cast<size_t>(n) * sizeof(Lane<D>));
#endif
}

struct Sum {
  // What fills the lanes behind a row's end.
  template <class D>
  static hn::Vec<D> neutral(D d, const Lane<D>*) {
    return hn::Zero(d);
  }
  template <class D>
  static hn::Vec<D> join(D, hn::Vec<D> a, hn::Vec<D> b) {
    return hn::Add(a, b);
  }
  template <class D>
  static Lane<D> across(D d, hn::Vec<D> v) {
    return hn::GetLane(hn::SumOfLanes(d, v));
  }
};

// kSign: 1 for the maximum, -1 for the minimum.
template <int kSign>
struct Extreme {
  template <class D>
  static hn::Vec<D> neutral(D d, const Lane<D>* row) {
    return hn::Set(d, row[0]);
  }
  template <class D>
  static hn::Vec<D> join(D, hn::Vec<D> a, hn::Vec<D> b) {
    // A NaN in a stays because no comparison with it holds; one in b is taken.
    if constexpr (hwy::IsFloat<Lane<D>>())
      return hn::IfThenElse(hn::Or(kSign > 0 ? hn::Gt(b, a) : hn::Lt(b, a), hn::IsNaN(b)), b, a);
    return kSign > 0 ? hn::Max(a, b) : hn::Min(a, b);
  }
  template <class D>
  static Lane<D> across(D d, hn::Vec<D> v) {
    if constexpr (hwy::IsFloat<Lane<D>>()) {
      const auto nan = hn::IsNaN(v);
      if (!hn::AllFalse(d, nan)) return hn::GetLane(hn::SumOfLanes(d, hn::IfThenElseZero(nan, v)));
    }
    return hn::GetLane(kSign > 0 ? hn::MaxOfLanes(d, v) : hn::MinOfLanes(d, v));
  }
};

struct Product {
  template <class D>
  static hn::Vec<D> neutral(D d, const Lane<D>*) {
    return hn::Set(d, Lane<D>{1});
  }
  template <class D>
  static hn::Vec<D> join(D, hn::Vec<D> a, hn::Vec<D> b) {
    return hn::Mul(a, b);
  }
  template <class D>
  static Lane<D> across(D d, hn::Vec<D> v) {
    HWY_ALIGN Lane<D> lanes[hn::MaxLanes(d)];
    hn::Store(v, d, lanes);
    for (size_t half = hn::Lanes(d) / 2; half > 0; half /= 2)
      for (size_t i = 0; i < half; ++i) lanes[i] = multiply(lanes[i], lanes[i + half]);
    return lanes[0];
  }
  template <class T>
  static T multiply(T a, T b) {
    if constexpr (hwy::IsFloat<T>()) return a * b;
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  }
};

// One row of more than two vectors.
template <class Op, class D>
Lane<D> long_row(D d, const Lane<D>* x, int64_t depth) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto neutral = Op::neutral(d, x);
  auto a0 = neutral, a1 = neutral, a2 = neutral, a3 = neutral;
  int64_t i = 0;
  for (; i + 4 * lanes <= depth; i += 4 * lanes) {
    a0 = Op::join(d, a0, hn::LoadU(d, x + i));
    a1 = Op::join(d, a1, hn::LoadU(d, x + i + lanes));
    a2 = Op::join(d, a2, hn::LoadU(d, x + i + 2 * lanes));
    a3 = Op::join(d, a3, hn::LoadU(d, x + i + 3 * lanes));
  }
  if (i + lanes <= depth) a0 = Op::join(d, a0, hn::LoadU(d, x + i)), i += lanes;
  if (i + lanes <= depth) a1 = Op::join(d, a1, hn::LoadU(d, x + i)), i += lanes;
  if (i + lanes <= depth) a2 = Op::join(d, a2, hn::LoadU(d, x + i)), i += lanes;
  if (i < depth) {
    const auto some =
        hn::IfThenElse(hn::FirstN(d, static_cast<size_t>(depth - i)), load_some(d, x + i, depth - i), neutral);
    a3 = Op::join(d, a3, some);
  }
  return Op::across(d, Op::join(d, Op::join(d, a0, a1), Op::join(d, a2, a3)));
}

template <class Op, class T>
void rows(const T* x, int64_t depth, int64_t count, T* out) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  if (depth > 2 * lanes) {
    for (int64_t r = 0; r < count; ++r) out[r] = long_row<Op>(d, x + r * depth, depth);
    return;
  }
  // Short rows: a whole vector, if there is one, and the rest.
  const int64_t whole = depth > lanes ? lanes : 0;
  const int64_t rest = depth - whole;
  const auto rest_mask = hn::FirstN(d, static_cast<size_t>(rest));
  // A vector that reaches into the next row is read whole: masked loads are slow on AMD where they miss the cache.
  for (int64_t r = 0; r < count; ++r, x += depth) {
    const bool inside = (count - r) * depth >= whole + lanes;
    auto v = inside ? hn::LoadU(d, x + whole) : load_some(d, x + whole, rest);
    if (rest < lanes) v = hn::IfThenElse(rest_mask, v, Op::neutral(d, x));
    if (whole) v = Op::join(d, hn::LoadU(d, x), v);
    out[r] = Op::across(d, v);
  }
}

// acc[0 .. width) joined with kRows rows, in order.
template <class Op, int kRows, bool kFirst, class T>
void column_group(const T* x, int64_t stride, int64_t width, T* acc) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t j = 0;
  for (; j + lanes <= width; j += lanes) {
    auto v = hn::LoadU(d, kFirst ? x + j : acc + j);
    for (int r = kFirst; r < kRows; ++r) v = Op::join(d, v, hn::LoadU(d, x + r * stride + j));
    hn::StoreU(v, d, acc + j);
  }
  if (j == width) return;
  auto v = load_some(d, kFirst ? x + j : acc + j, width - j);
  for (int r = kFirst; r < kRows; ++r) v = Op::join(d, v, load_some(d, x + r * stride + j, width - j));
  store_some(d, acc + j, width - j, v);
}

// Eight rows at a time: as many streams as the prefetchers follow, and acc is read and written once in eight.
template <class Op, class T>
void columns(const T* x, int64_t stride, int64_t rows, int64_t width, T* acc, bool first) {
  constexpr int kGroup = 8;
  int64_t r = 0;
  if (first) {
    if (rows >= kGroup)
      column_group<Op, kGroup, true>(x, stride, width, acc), r = kGroup;
    else
      column_group<Op, 1, true>(x, stride, width, acc), r = 1;
  }
  for (; r + kGroup <= rows; r += kGroup) column_group<Op, kGroup, false>(x + r * stride, stride, width, acc);
  if (r + 4 <= rows) column_group<Op, 4, false>(x + r * stride, stride, width, acc), r += 4;
  for (; r < rows; ++r) column_group<Op, 1, false>(x + r * stride, stride, width, acc);
}

// In the order of Fold.
template <class T>
constexpr cpu::FoldKernels<T> kFold[] = {{&rows<Sum, T>, &columns<Sum, T>},
                                         {&rows<Extreme<1>, T>, &columns<Extreme<1>, T>},
                                         {&rows<Extreme<-1>, T>, &columns<Extreme<-1>, T>},
                                         {&rows<Product, T>, &columns<Product, T>}};

}  // namespace
}  // namespace outrace::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#if HWY_ONCE
namespace outrace::cpu {
template <>
const FoldKernels<float>& fold_kernels<float>(Fold fold) {
  return OUTRACE_CHOOSE_TARGET(kFold<float>)[static_cast<int>(fold)];
}
template <>
const FoldKernels<double>& fold_kernels<double>(Fold fold) {
  return OUTRACE_CHOOSE_TARGET(kFold<double>)[static_cast<int>(fold)];
}
template <>
const FoldKernels<int64_t>& fold_kernels<int64_t>(Fold fold) {
  return OUTRACE_CHOOSE_TARGET(kFold<int64_t>)[static_cast<int>(fold)];
}
}  // namespace outrace::cpu
#endif
