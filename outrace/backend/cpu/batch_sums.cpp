#include "outrace/backend/cpu/batch_sums.h"

#include "outrace/backend/cpu/axis.h"
#include "outrace/core/error.h"
#include "outrace/core/thread.h"

namespace outrace::cpu {
namespace {

constexpr int64_t kBlockRows = 64;
struct GradScratch;
struct InputScratch;
struct MeanScratch;
struct PartScratch;

// Sums of one part of the rows and one strip of columns, in f64: [2][width].
template <class S>
void sum_part(const S* g, const S* x, int64_t stride, int64_t rows, int64_t width, const S* mean, double* out) {
  using T = ComputeOf<S>;
  constexpr bool kStored = std::is_same_v<S, T>;
  T sums[kAxisStrip], products[kAxisStrip];
  const T* m = widened(mean, width, kStored ? nullptr : thread_memory<MeanScratch, T>(kAxisStrip));
  std::fill_n(out, 2 * width, 0.0);
  for (int64_t r = 0; r < rows; r += kBlockRows) {
    const int64_t n = std::min(kBlockRows, rows - r);
    if constexpr (kStored) {
      batch_sum_kernels<T>().block(g + r * stride, x + r * stride, stride, n, width, m, sums, products);
    } else {
      T* wide_g = thread_memory<GradScratch, T>(kBlockRows * kAxisStrip);
      T* wide_x = thread_memory<InputScratch, T>(kBlockRows * kAxisStrip);
      for (int64_t i = 0; i < n; ++i) {
        widened(g + (r + i) * stride, width, wide_g + i * width);
        widened(x + (r + i) * stride, width, wide_x + i * width);
      }
      batch_sum_kernels<T>().block(wide_g, wide_x, width, n, width, m, sums, products);
    }
    for (int64_t j = 0; j < width; ++j) {
      out[j] += static_cast<double>(sums[j]);
      out[width + j] += static_cast<double>(products[j]);
    }
  }
}

template <class S>
S rounded(double v) {
  if constexpr (std::is_same_v<S, double>) return v;
  return S(static_cast<float>(v));
}

template <class S>
void sums_of(int64_t rows, int64_t columns, const S* g, const S* x, const S* mean, S* out) {
  const AxisCut cut({1, rows, columns}, kBlockRows);
  double* parts = thread_memory<PartScratch, double>(cut.parts * 2 * columns);
  axis_tasks(cut.parts * cut.strips, std::min(cut.part, rows) * cut.strip, [&](int64_t task) {
    const int64_t first = task / cut.strips * cut.part, column = task % cut.strips * kAxisStrip;
    const int64_t width = std::min(kAxisStrip, columns - column), from = first * columns + column;
    sum_part(g + from, x + from, columns, std::min(cut.part, rows - first), width, mean + column,
             parts + 2 * (task / cut.strips * columns + column));
  });
  for (int64_t column = 0; column < columns; column += kAxisStrip) {
    const int64_t width = std::min(kAxisStrip, columns - column);
    for (int64_t j = 0; j < width; ++j) {
      double sum = 0, product = 0;
      for (int64_t p = 0; p < cut.parts; ++p) {
        const double* at = parts + 2 * (p * columns + column);
        sum += at[j];
        product += at[width + j];
      }
      out[column + j] = rounded<S>(sum);
      out[columns + column + j] = rounded<S>(product);
    }
  }
}

}  // namespace

void batch_norm_sums(DType dtype, int64_t rows, int64_t columns, const void* g, const void* x, const void* mean,
                     void* out) {
  visit_dtype(dtype, [&](auto zero) {
    using S = decltype(zero);
    if constexpr (is_float(dtype_of<S>()))
      sums_of(rows, columns, static_cast<const S*>(g), static_cast<const S*>(x), static_cast<const S*>(mean),
              static_cast<S*>(out));
    else
      OUTRACE_ASSERT(false, "sums of ", name_of(dtype));
  });
}

}  // namespace outrace::cpu
