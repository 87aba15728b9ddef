// Sums of batch norm's derivative over a block of rows, as SIMD loops.
#include "outrace/backend/cpu/batch_sums.h"
#include "outrace/backend/cpu/simd_target.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "outrace/backend/cpu/batch_sums_simd.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "outrace/backend/cpu/simd_value.h"
HWY_BEFORE_NAMESPACE();
namespace outrace::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// kCount vectors of columns side by side, so that a line is read whole; `lanes` of the last one count.
template <int kCount, class T>
HWY_INLINE void columns_of(const T* g, const T* x, int64_t stride, int64_t rows, int64_t lanes, const T* mean, T* sums,
                           T* products) {
  constexpr int64_t kLanes = Simd<T>::kLanes;
  const auto load = [&](const T* from, int k) HWY_ATTR {
    return lanes == kLanes ? Simd<T>::load(from + k * kLanes) : Simd<T>::load_first(from + k * kLanes, lanes);
  };
  const auto store = [&](T* to, int k, Simd<T> v) HWY_ATTR {
    if (lanes == kLanes)
      v.store(to + k * kLanes);
    else
      v.store_first(to + k * kLanes, lanes);
  };
  Simd<T> m[kCount], sum[kCount], product[kCount];
  for (int k = 0; k < kCount; ++k) {
    m[k] = load(mean, k);
    sum[k] = product[k] = Simd<T>(0.0);
  }
  for (int64_t r = 0; r < rows; ++r)
    for (int k = 0; k < kCount; ++k) {
      const Simd<T> v = load(g + r * stride, k);
      sum[k] = sum[k] + v;
      product[k] = hn::MulAdd(v.v, (load(x + r * stride, k) - m[k]).v, product[k].v);
    }
  for (int k = 0; k < kCount; ++k) {
    store(sums, k, sum[k]);
    store(products, k, product[k]);
  }
}

template <class T>
void block(const T* g, const T* x, int64_t stride, int64_t rows, int64_t width, const T* mean, T* sums, T* products) {
  constexpr int64_t kLanes = Simd<T>::kLanes;
  int64_t j = 0;
  for (; j + 4 * kLanes <= width; j += 4 * kLanes)
    columns_of<4>(g + j, x + j, stride, rows, kLanes, mean + j, sums + j, products + j);
  for (; j < width; j += kLanes)
    columns_of<1>(g + j, x + j, stride, rows, width - j < kLanes ? width - j : kLanes, mean + j, sums + j,
                  products + j);
}

template <class T>
constexpr cpu::BatchSumKernels<T> kSums = {&block<T>};

}  // namespace
}  // namespace outrace::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace outrace::cpu {
template <>
const BatchSumKernels<float>& batch_sum_kernels<float>() {
  return OUTRACE_CHOOSE_TARGET(kSums<float>);
}
template <>
const BatchSumKernels<double>& batch_sum_kernels<double>() {
  return OUTRACE_CHOOSE_TARGET(kSums<double>);
}
}  // namespace outrace::cpu
#endif
