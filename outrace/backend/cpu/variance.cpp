#include "outrace/backend/cpu/variance.h"

#include <bit>
#include <limits>

#include "outrace/backend/cpu/variance_kernels.h"
#include "outrace/core/error.h"
#include "outrace/core/thread.h"

namespace outrace::cpu {
namespace {

constexpr int64_t kBlock = 4096;      // elements of a row: 16 KB of f32, in L1 for the second pass
constexpr int64_t kColumnBlock = 32;  // rows of a strip of columns: 64 KB of f32, in L2
struct VarianceScratch;
struct PartScratch;

// The mean is base + rest: a large one beside small differences needs more digits than one number has.
struct Moments {
  double count, base, rest, squares;
};

Moments join(const Moments& a, const Moments& b) {
  const double count = a.count + b.count, apart = (b.base - a.base) + (b.rest - a.rest);
  return {count, a.base, a.rest + apart * (b.count / count),
          a.squares + b.squares + apart * apart * (a.count * b.count / count)};
}

template <class T>
Moments corrected(int64_t count, T mean, T rest, T squares) {
  const double n = static_cast<double>(count), r = static_cast<double>(rest);
  return {n, static_cast<double>(mean), r / n, static_cast<double>(squares) - r * (r / n)};
}

// Joins moments in the order of a binary counter: equal sizes first.
class Tree {
 public:
  void push(const Moments& m) {
    slots_[top_++] = m;
    for (uint64_t c = ++pushed_; (c & 1) == 0; c >>= 1) join_top();
  }
  Moments finish() {
    while (top_ > 1) join_top();
    return slots_[0];
  }

 private:
  void join_top() {
    --top_;
    slots_[top_ - 1] = join(slots_[top_ - 1], slots_[top_]);
  }
  Moments slots_[64];
  int top_ = 0;
  uint64_t pushed_ = 0;
};

template <class S>
S rounded(double v) {
  if constexpr (std::is_same_v<S, double>) return v;
  return S(static_cast<float>(v));
}

// Where results go.
template <class S>
struct Results {
  int64_t correction;
  S *variances, *means;  // means may be null

  void put(int64_t i, const Moments& m) const {
    const double free = m.count - static_cast<double>(correction);
    variances[i] = rounded<S>(free > 0 ? m.squares / free : std::numeric_limits<double>::quiet_NaN());
    if (means != nullptr) means[i] = rounded<S>(m.base + m.rest);
  }
};

template <class S>
Moments of_row(const S* x, int64_t count) {
  using T = ComputeOf<S>;
  T* memory = std::is_same_v<S, T> ? nullptr : thread_memory<VarianceScratch, T>(kBlock);
  const auto block = [&](int64_t i, int64_t n) {
    T mean, rest, squares;
    moment_kernels<T>().row(widened(x + i, n, memory), n, &mean, &rest, &squares);
    return corrected(n, mean, rest, squares);
  };
  if (count <= kBlock) return block(0, count);
  Tree tree;
  for (int64_t i = 0; i < count; i += kBlock) tree.push(block(i, std::min(kBlock, count - i)));
  return tree.finish();
}

template <class S>
void of_rows(const S* x, const AxisView& v, const Results<S>& out) {
  const AxisCut cut({v.outer, v.size, 1}, kBlock);
  if (cut.parts == 1) {
    return axis_tasks(v.outer, v.size, [&](int64_t r) { out.put(r, of_row(x + r * v.size, v.size)); });
  }
  Moments* parts = thread_memory<PartScratch, Moments>(v.outer * cut.parts);
  parallel_for(v.outer * cut.parts, [&](int64_t task) {
    const int64_t row = task / cut.parts, first = task % cut.parts * cut.part;
    parts[task] = of_row(x + row * v.size + first, std::min(cut.part, v.size - first));
  });
  for (int64_t r = 0; r < v.outer; ++r) {
    Tree tree;
    for (int64_t p = 0; p < cut.parts; ++p) tree.push(parts[r * cut.parts + p]);
    out.put(r, tree.finish());
  }
}

// The moments of `width` columns of `rows` numbers, blocks joined one by one.
template <class S>
void of_columns(const S* x, int64_t stride, int64_t rows, int64_t width, Moments* moments) {
  using T = ComputeOf<S>;
  T mean[kAxisStrip], rest[kAxisStrip], squares[kAxisStrip];
  T* memory = std::is_same_v<S, T> ? nullptr : thread_memory<VarianceScratch, T>(kColumnBlock * kAxisStrip);
  for (int64_t i = 0; i < rows; i += kColumnBlock) {
    const int64_t n = std::min(kColumnBlock, rows - i);
    const S* from = x + i * stride;
    if constexpr (std::is_same_v<S, T>) {
      moment_kernels<T>().columns(from, stride, n, width, mean, rest, squares);
    } else {
      for (int64_t r = 0; r < n; ++r) widened(from + r * stride, width, memory + r * width);
      moment_kernels<T>().columns(memory, width, n, width, mean, rest, squares);
    }
    for (int64_t j = 0; j < width; ++j) {
      const Moments block = corrected(n, mean[j], rest[j], squares[j]);
      moments[j] = i == 0 ? block : join(moments[j], block);
    }
  }
}

template <class S>
void variance_of(const S* x, const AxisView& v, const Results<S>& out) {
  if (v.size == 0) {
    for (int64_t i = 0; i < v.outer * v.inner; ++i) out.put(i, {});
    return;
  }
  if (v.inner == 1) return of_rows(x, v, out);
  const AxisCut cut(v, kColumnBlock);
  Moments* parts = cut.parts > 1 ? thread_memory<PartScratch, Moments>(v.outer * cut.parts * v.inner) : nullptr;
  axis_tasks(v.outer * cut.parts * cut.strips, std::min(cut.part, v.size) * cut.strip, [&](int64_t task) {
    const int64_t column = task % cut.strips * kAxisStrip, width = std::min(kAxisStrip, v.inner - column);
    const int64_t part = task / cut.strips % cut.parts, outer = task / cut.strips / cut.parts;
    const int64_t first = part * cut.part, rows = std::min(cut.part, v.size - first);
    Moments moments[kAxisStrip];
    of_columns(x + (outer * v.size + first) * v.inner + column, v.inner, rows, width, moments);
    for (int64_t j = 0; j < width; ++j) {
      if (parts == nullptr)
        out.put(outer * v.inner + column + j, moments[j]);
      else
        parts[(outer * cut.parts + part) * v.inner + column + j] = moments[j];
    }
  });
  if (parts == nullptr) return;
  for (int64_t o = 0; o < v.outer; ++o)
    for (int64_t j = 0; j < v.inner; ++j) {
      Tree tree;
      for (int64_t p = 0; p < cut.parts; ++p) tree.push(parts[(o * cut.parts + p) * v.inner + j]);
      out.put(o * v.inner + j, tree.finish());
    }
}

}  // namespace

void variance(DType dtype, const void* x, const AxisView& view, int64_t correction, void* out, void* means) {
  visit_dtype(dtype, [&](auto zero) {
    using S = decltype(zero);
    if constexpr (is_float(dtype_of<S>()))
      variance_of(static_cast<const S*>(x), view, Results<S>{correction, static_cast<S*>(out), static_cast<S*>(means)});
    else
      OUTRACE_ASSERT(false, "variance of ", name_of(dtype));
  });
}

}  // namespace outrace::cpu
