// A scan is a chain of dependent operations, so several lines are taken side by side: neighbouring columns, or, where
// the axis is the last, kLines rows (or parts of one row).
#include "outrace/backend/cpu/scan.h"

#include "outrace/core/error.h"
#include "outrace/core/thread.h"

namespace outrace::cpu {
namespace {

// More rows of a power-of-two length would push each other out of the L1 cache: reads and writes take two lines each.
constexpr int64_t kLines = 4;
constexpr int64_t kPart = 1024;
struct ScanScratch;

struct Sum {
  static double join(double a, double b) { return a + b; }
  static int64_t join(int64_t a, int64_t b) {
    return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  }
  static constexpr int kNeutral = 0;
};
struct Product {
  static double join(double a, double b) { return a * b; }
  static int64_t join(int64_t a, int64_t b) {
    return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  }
  static constexpr int kNeutral = 1;
};

template <class S>
using Wide = std::conditional_t<std::is_integral_v<S>, int64_t, double>;

template <class S>
Wide<S> widen(S v) {
  if constexpr (std::is_same_v<S, bf16> || std::is_same_v<S, f16>)
    return static_cast<float>(v);
  else
    return v;
}
template <class S>
S narrow(Wide<S> v) {
  if constexpr (std::is_same_v<S, bf16> || std::is_same_v<S, f16>)
    return S(static_cast<float>(v));
  else
    return static_cast<S>(v);
}

// One element of one line: `y` null sums up only.
template <class Op, bool kExclusive, class S>
inline void step(const S* x, S* y, int64_t i, Wide<S>& carry) {
  if (y != nullptr && kExclusive) y[i] = narrow<S>(carry);
  carry = Op::join(carry, widen(x[i]));
  if (y != nullptr && !kExclusive) y[i] = narrow<S>(carry);
}

// A piece of a line: `count` elements from element `begin` of the array, in the scan's direction.
struct Line {
  int64_t begin, count;
};

// kLines lines of neighbouring elements.
template <class Op, bool kExclusive, class S>
void scan_lines(const S* x, S* y, const Line* lines, int64_t number, int64_t step_of, Wide<S>* carries) {
  int64_t together = 0;
  if (number == kLines) {
    together = lines[0].count;
    for (int64_t k = 1; k < kLines; ++k) together = std::min(together, lines[k].count);
    Wide<S> c[kLines];
    int64_t at[kLines];
    for (int64_t k = 0; k < kLines; ++k) c[k] = carries[k], at[k] = lines[k].begin;
    for (int64_t i = 0; i < together; ++i)
      for (int64_t k = 0; k < kLines; ++k) step<Op, kExclusive>(x, y, at[k] + i * step_of, c[k]);
    for (int64_t k = 0; k < kLines; ++k) carries[k] = c[k];
  }
  for (int64_t k = 0; k < number; ++k)
    for (int64_t i = together; i < lines[k].count; ++i)
      step<Op, kExclusive>(x, y, lines[k].begin + i * step_of, carries[k]);
}

// `count` rows of `width` columns, `row` elements apart.
template <class Op, bool kExclusive, class S>
void scan_columns(const S* x, S* y, int64_t count, int64_t row, int64_t width, Wide<S>* carries) {
  for (int64_t i = 0; i < count; ++i, x += row) {
    for (int64_t j = 0; j < width; ++j) step<Op, kExclusive>(x, y, j, carries[j]);
    if (y != nullptr) y += row;
  }
}

template <class Op, bool kExclusive, class S>
void scan_as(bool reverse, const S* x, const AxisView& v, S* y) {
  using A = Wide<S>;
  const AxisCut cut(v, kPart);
  const int64_t direction = reverse ? -1 : 1;
  // Position of the i-th element that the scan visits, for column 0.
  const auto place = [&](int64_t outer, int64_t i) {
    return (outer * v.size + (reverse ? v.size - 1 - i : i)) * v.inner;
  };
  A* carries = axis_scratch<ScanScratch, A>(v.outer * cut.parts * v.inner);  // [outer, parts, inner]
  std::fill_n(carries, v.outer * cut.parts * v.inner, A{Op::kNeutral});
  const auto length = [&](int64_t part) { return std::min(cut.part, v.size - part * cut.part); };
  const auto sweep = [&](S* to) {
    if (v.inner == 1) {
      const int64_t lines = v.outer * cut.parts;
      const int64_t group = kLines * std::max<int64_t>(1, kAxisTask / (kLines * std::min(cut.part, v.size)));
      parallel_for(axis_ceil(lines, group), [&](int64_t task) {
        for (int64_t first = task * group, end = std::min(first + group, lines); first < end; first += kLines) {
          const int64_t number = std::min(kLines, end - first);
          Line line[kLines];
          for (int64_t k = 0; k < number; ++k) {
            const int64_t outer = (first + k) / cut.parts, part = (first + k) % cut.parts;
            line[k] = {place(outer, part * cut.part), length(part)};
          }
          scan_lines<Op, kExclusive>(x, to, line, number, direction, carries + first);
        }
      });
      return;
    }
    parallel_for(v.outer * cut.parts * cut.strips, [&](int64_t task) {
      const int64_t column = task % cut.strips * kAxisStrip, width = std::min(kAxisStrip, v.inner - column);
      const int64_t part = task / cut.strips % cut.parts, outer = task / cut.strips / cut.parts;
      const int64_t begin = place(outer, part * cut.part) + column;
      scan_columns<Op, kExclusive>(x + begin, to == nullptr ? nullptr : to + begin, length(part), direction * v.inner,
                                   width, carries + (outer * cut.parts + part) * v.inner + column);
    });
  };
  if (cut.parts > 1) {
    sweep(nullptr);
    // From totals to what comes before each part.
    for (int64_t o = 0; o < v.outer; ++o)
      for (int64_t j = 0; j < v.inner; ++j) {
        A before{Op::kNeutral};
        for (int64_t p = 0; p < cut.parts; ++p) {
          A& c = carries[(o * cut.parts + p) * v.inner + j];
          const A total = c;
          c = before;
          before = Op::join(before, total);
        }
      }
  }
  sweep(y);
}

template <class T, class S>
void recur(bool reverse, const S* a, const S* b, const AxisView& v, S* h) {
  const int64_t strips = axis_ceil(v.inner, kAxisStrip), direction = reverse ? -v.inner : v.inner;
  const int64_t each = std::max<int64_t>(1, kAxisTask / (v.size * std::min(v.inner, kAxisStrip)));
  parallel_for(axis_ceil(v.outer * strips, each), [&](int64_t task) {
    for (int64_t s = task * each, end = std::min(s + each, v.outer * strips); s < end; ++s) {
      const int64_t column = s % strips * kAxisStrip, width = std::min(kAxisStrip, v.inner - column);
      int64_t at = (s / strips * v.size + (reverse ? v.size - 1 : 0)) * v.inner + column;
      T last[kAxisStrip] = {};
      for (int64_t i = 0; i < v.size; ++i, at += direction)
        for (int64_t j = 0; j < width; ++j) {
          const T factor = static_cast<T>(widen(a[at + j])), term = static_cast<T>(widen(b[at + j]));
          last[j] = i == 0 ? term : factor * last[j] + term;
          h[at + j] = narrow<S>(last[j]);
        }
    }
  });
}

}  // namespace

void scan(ScanKind kind, DType dtype, const ScanAttrs& attrs, const void* x, const AxisView& view, void* y) {
  if (view.numel() == 0) return;
  visit_dtype(dtype, [&](auto zero) {
    using S = decltype(zero);
    if constexpr (std::is_same_v<S, int64_t> || is_float(dtype_of<S>())) {
      const auto fn = kind == ScanKind::sum
                          ? (attrs.exclusive ? scan_as<Sum, true, S> : scan_as<Sum, false, S>)
                          : (attrs.exclusive ? scan_as<Product, true, S> : scan_as<Product, false, S>);
      fn(attrs.reverse, static_cast<const S*>(x), view, static_cast<S*>(y));
    } else {
      OUTRACE_ASSERT(false, "a scan of ", name_of(dtype));
    }
  });
}

void linear_recurrence(DType dtype, bool reverse, const void* a, const void* b, const AxisView& view, void* h) {
  if (view.numel() == 0) return;
  visit_dtype(dtype, [&](auto zero) {
    using S = decltype(zero);
    if constexpr (is_float(dtype_of<S>())) {
      using T = std::conditional_t<std::is_same_v<S, double>, double, float>;
      recur<T>(reverse, static_cast<const S*>(a), static_cast<const S*>(b), view, static_cast<S*>(h));
    } else {
      OUTRACE_ASSERT(false, "a recurrence of ", name_of(dtype));
    }
  });
}

}  // namespace outrace::cpu
