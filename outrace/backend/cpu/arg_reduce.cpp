// The extreme of a block comes from the SIMD folds of reduce_kernels.h; which block won is noted, and only that one is
// searched for the position.
#include "outrace/backend/cpu/arg_reduce.h"

#include "outrace/backend/cpu/reduce_kernels.h"
#include "outrace/core/thread.h"

namespace outrace::cpu {
namespace {

constexpr int64_t kColumnBlock = 32;  // rows folded at once
struct ArgScratch;

template <class T>
bool beats(bool largest, T a, T b) {
  if (is_nan(b)) return false;
  return is_nan(a) || (largest ? a > b : a < b);
}

// The first of `count` elements, `stride` apart, that is `value`.
template <class S>
int64_t find_first(const S* x, int64_t stride, int64_t count, ComputeOf<S> value) {
  using T = ComputeOf<S>;
  if (is_nan(value)) {
    for (int64_t i = 0; i < count; ++i)
      if (is_nan(static_cast<T>(x[i * stride]))) return i;
  } else {
    for (int64_t i = 0; i < count; ++i)
      if (static_cast<T>(x[i * stride]) == value) return i;
  }
  return 0;
}

template <class T>
struct Found {
  T value;
  int64_t at;
};

// Of one row, or part of one.
template <class S>
Found<ComputeOf<S>> search_row(bool largest, const S* x, int64_t count) {
  using T = ComputeOf<S>;
  const auto& fold = fold_kernels<T>(largest ? Fold::max : Fold::min);
  T memory[std::is_same_v<S, T> ? 1 : kFoldBlock];
  T best{};
  int64_t block = 0;
  for (int64_t i = 0; i < count; i += kFoldBlock) {
    const int64_t n = std::min(kFoldBlock, count - i);
    T one;
    fold.rows(widened(x + i, n, memory), n, 1, &one);
    if (i == 0 || beats(largest, one, best)) best = one, block = i;
  }
  return {best, block + find_first(x + block, 1, std::min(kFoldBlock, count - block), best)};
}

template <class S>
void search_rows(bool largest, const S* x, const AxisView& v, int64_t* out) {
  using T = ComputeOf<S>;
  const AxisCut cut({v.outer, v.size, 1}, kFoldBlock);
  if (cut.parts == 1) {
    return axis_tasks(v.outer, v.size, [&](int64_t r) { out[r] = search_row(largest, x + r * v.size, v.size).at; });
  }
  Found<T>* found = thread_memory<ArgScratch, Found<T>>(v.outer * cut.parts);
  parallel_for(v.outer * cut.parts, [&](int64_t task) {
    const int64_t row = task / cut.parts, first = task % cut.parts * cut.part;
    found[task] = search_row(largest, x + row * v.size + first, std::min(cut.part, v.size - first));
    found[task].at += first;
  });
  for (int64_t r = 0; r < v.outer; ++r) {
    Found<T> best = found[r * cut.parts];
    for (int64_t p = 1; p < cut.parts; ++p)
      if (beats(largest, found[r * cut.parts + p].value, best.value)) best = found[r * cut.parts + p];
    out[r] = best.at;
  }
}

// `rows` rows of `width` columns.
template <class S>
void search_columns(bool largest, const S* x, int64_t stride, int64_t rows, int64_t width, Found<ComputeOf<S>>* found) {
  using T = ComputeOf<S>;
  const auto& fold = fold_kernels<T>(largest ? Fold::max : Fold::min);
  T best[kAxisStrip], one[kAxisStrip];
  int64_t block[kAxisStrip];
  T* memory = std::is_same_v<S, T> ? nullptr : thread_memory<ArgScratch, T>(kColumnBlock * kAxisStrip);
  for (int64_t i = 0; i < rows; i += kColumnBlock) {
    const int64_t n = std::min(kColumnBlock, rows - i);
    const S* from = x + i * stride;
    if constexpr (std::is_same_v<S, T>) {
      fold.columns(from, stride, n, width, one, true);
    } else {
      for (int64_t r = 0; r < n; ++r) widened(from + r * stride, width, memory + r * width);
      fold.columns(memory, width, n, width, one, true);
    }
    for (int64_t j = 0; j < width; ++j)
      if (i == 0 || beats(largest, one[j], best[j])) best[j] = one[j], block[j] = i;
  }
  for (int64_t j = 0; j < width; ++j) {
    const int64_t n = std::min(kColumnBlock, rows - block[j]);
    found[j] = {best[j], block[j] + find_first(x + block[j] * stride + j, stride, n, best[j])};
  }
}

template <class S>
void search(bool largest, const S* x, const AxisView& v, int64_t* out) {
  using T = ComputeOf<S>;
  if (v.inner == 1) return search_rows(largest, x, v, out);
  const AxisCut cut(v, kColumnBlock);
  Found<T>* parts = cut.parts > 1 ? thread_memory<ArgScratch, Found<T>>(v.outer * cut.parts * v.inner) : nullptr;
  axis_tasks(v.outer * cut.parts * cut.strips, std::min(cut.part, v.size) * cut.strip, [&](int64_t task) {
    const int64_t strip = task % cut.strips, part = task / cut.strips % cut.parts;
    const int64_t outer = task / cut.strips / cut.parts;
    const int64_t column = strip * kAxisStrip, width = std::min(kAxisStrip, v.inner - column);
    const int64_t first = part * cut.part, rows = std::min(cut.part, v.size - first);
    Found<T> found[kAxisStrip];
    search_columns(largest, x + (outer * v.size + first) * v.inner + column, v.inner, rows, width, found);
    for (int64_t j = 0; j < width; ++j) {
      if (parts == nullptr)
        out[outer * v.inner + column + j] = found[j].at;
      else
        parts[(outer * cut.parts + part) * v.inner + column + j] = {found[j].value, first + found[j].at};
    }
  });
  if (parts == nullptr) return;
  for (int64_t o = 0; o < v.outer; ++o)
    for (int64_t j = 0; j < v.inner; ++j) {
      const Found<T>* of = parts + o * cut.parts * v.inner + j;
      Found<T> best = of[0];
      for (int64_t p = 1; p < cut.parts; ++p)
        if (beats(largest, of[p * v.inner].value, best.value)) best = of[p * v.inner];
      out[o * v.inner + j] = best.at;
    }
}

template <class S>
void search_running(bool largest, const S* x, const AxisView& v, int64_t* out) {
  using T = ComputeOf<S>;
  const int64_t strips = ceil_div(v.inner, kAxisStrip), width_of = std::min(v.inner, kAxisStrip);
  axis_tasks(v.outer * strips, v.size * width_of, [&](int64_t s) {
    const int64_t column = s % strips * kAxisStrip, width = std::min(kAxisStrip, v.inner - column);
    const int64_t begin = s / strips * v.size * v.inner + column;
    T best[kAxisStrip];
    int64_t at[kAxisStrip];
    for (int64_t i = 0; i < v.size; ++i)
      for (int64_t j = 0; j < width; ++j) {
        const T value = static_cast<T>(x[begin + i * v.inner + j]);
        if (i == 0 || is_nan(value) || (largest ? value >= best[j] : value <= best[j])) best[j] = value, at[j] = i;
        out[begin + i * v.inner + j] = at[j];
      }
  });
}

}  // namespace

void arg_extreme(bool largest, DType dtype, const void* x, const AxisView& view, int64_t* out) {
  if (view.outer == 0 || view.inner == 0) return;
  visit_dtype(dtype, [&](auto zero) {
    using S = decltype(zero);
    search(largest, static_cast<const S*>(x), view, out);
  });
}

void running_arg_extreme(bool largest, DType dtype, const void* x, const AxisView& view, int64_t* out) {
  if (view.numel() == 0) return;
  visit_dtype(dtype, [&](auto zero) {
    using S = decltype(zero);
    search_running(largest, static_cast<const S*>(x), view, out);
  });
}

}  // namespace outrace::cpu
