// A scan is a chain of dependent operations, so several lines are taken side by side: neighbouring columns, or, where
// the axis is the last, kLines rows (or parts of one row).
#include "outrace/backend/cpu/scan.h"

#include <utility>

#include "outrace/core/error.h"
#include "outrace/core/thread.h"

namespace outrace::cpu {
namespace {

constexpr int64_t kLines = 4;    // as many operations as an addition takes cycles
constexpr int64_t kPiece = 128;  // elements of a line at once
constexpr int64_t kPart = 1024;
constexpr int64_t kStrip = 256;  // columns: their sums, 2 KB, stay in L1
constexpr int64_t kEnoughTasks = 32;
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

// What a sweep writes: only totals, or each element's sum with or without itself.
enum class Output : uint8_t { none, inclusive, exclusive };

// `value` becomes what is written for it.
template <class Op, Output kOut, class A>
inline void advance(A& value, A& carry) {
  const A next = Op::join(carry, value);
  value = kOut == Output::exclusive ? carry : next;
  carry = next;
}

// A piece of a line: `count` elements from element `begin` of the array, in the scan's direction.
struct Line {
  int64_t begin, count;
};

// Up to kLines lines of neighbouring elements. Pieces of them are widened into L1 first: reads of x between writes of y
// would wait for each other wherever the two lie alike within a page.
template <class Op, Output kOut, class S>
void scan_lines(const S* x, S* y, const Line* lines, int64_t number, int64_t direction, Wide<S>* carries) {
  Wide<S> pieces[kLines][kPiece], carry[kLines] = {};
  std::copy_n(carries, number, carry);
  int64_t longest = 0;
  for (int64_t k = 0; k < number; ++k) longest = std::max(longest, lines[k].count);
  for (int64_t begin = 0; begin < longest; begin += kPiece) {
    int64_t count[kLines] = {};
    for (int64_t k = 0; k < number; ++k) {
      count[k] = std::clamp<int64_t>(lines[k].count - begin, 0, kPiece);
      const S* from = x + lines[k].begin + begin * direction;
      if (direction > 0)
        for (int64_t i = 0; i < count[k]; ++i) pieces[k][i] = widen(from[i]);
      else
        for (int64_t i = 0; i < count[k]; ++i) pieces[k][i] = widen(from[-i]);
    }
    const int64_t most = std::min(kPiece, longest - begin);
    if (most == *std::min_element(count, count + kLines)) {
      for (int64_t i = 0; i < most; ++i)
        for (int64_t k = 0; k < kLines; ++k) advance<Op, kOut>(pieces[k][i], carry[k]);
    } else {
      for (int64_t k = 0; k < number; ++k)
        for (int64_t i = 0; i < count[k]; ++i) advance<Op, kOut>(pieces[k][i], carry[k]);
    }
    if constexpr (kOut != Output::none) {
      for (int64_t k = 0; k < number; ++k) {
        S* to = y + lines[k].begin + begin * direction;
        if (direction > 0)
          for (int64_t i = 0; i < count[k]; ++i) to[i] = narrow<S>(pieces[k][i]);
        else
          for (int64_t i = 0; i < count[k]; ++i) to[-i] = narrow<S>(pieces[k][i]);
      }
    }
  }
  std::copy_n(carry, number, carries);
}

// `count` rows of `width` columns, `row` elements apart, from element `at` on.
template <class Op, Output kOut, class S>
void scan_columns(const S* __restrict x, S* __restrict y, int64_t at, int64_t count, int64_t row, int64_t width,
                  Wide<S>* __restrict carries) {
  for (int64_t i = 0; i < count; ++i, at += row)
    for (int64_t j = 0; j < width; ++j) {
      Wide<S> value = widen(x[at + j]);
      advance<Op, kOut>(value, carries[j]);
      if constexpr (kOut != Output::none) y[at + j] = narrow<S>(value);
    }
}

// One pass over the array, from the carries [outer, parts, inner] that each part starts with.
template <class Op, Output kOut, class S>
void sweep(bool reverse, const S* x, const AxisView& v, const AxisCut& cut, Wide<S>* carries, S* y) {
  const int64_t direction = reverse ? -1 : 1;
  const auto length = [&](int64_t part) { return std::min(cut.part, v.size - part * cut.part); };
  // Where the scan enters a part, in column 0.
  const auto start = [&](int64_t outer, int64_t part) {
    const int64_t i = part * cut.part;
    return (outer * v.size + (reverse ? v.size - 1 - i : i)) * v.inner;
  };
  if (v.inner == 1) {
    const int64_t lines = v.outer * cut.parts;
    const int64_t group = kLines * std::max<int64_t>(1, kAxisTask / (kLines * std::min(cut.part, v.size)));
    return parallel_for(axis_ceil(lines, group), [&](int64_t task) {
      for (int64_t first = task * group, end = std::min(first + group, lines); first < end; first += kLines) {
        const int64_t number = std::min(kLines, end - first);
        Line line[kLines];
        for (int64_t k = 0; k < number; ++k) {
          const int64_t outer = (first + k) / cut.parts, part = (first + k) % cut.parts;
          line[k] = {start(outer, part), length(part)};
        }
        scan_lines<Op, kOut>(x, y, line, number, direction, carries + first);
      }
    });
  }
  parallel_for(v.outer * cut.parts * cut.strips, [&](int64_t task) {
    const int64_t column = task % cut.strips * cut.strip, width = std::min(cut.strip, v.inner - column);
    const int64_t part = task / cut.strips % cut.parts, outer = task / cut.strips / cut.parts;
    scan_columns<Op, kOut>(x, y, start(outer, part) + column, length(part), direction * v.inner, width,
                           carries + (outer * cut.parts + part) * v.inner + column);
  });
}

template <class Op, class S>
void scan_as(const ScanAttrs& attrs, const S* x, const AxisView& v, S* y) {
  using A = Wide<S>;
  // Parts cost a second pass over x. Products of floats have none: a part's may overflow where what comes before it is
  // 0.
  const bool whole = std::is_same_v<Op, Product> && !std::is_integral_v<S>;
  const AxisCut cut(v, whole ? v.size : kPart, kStrip, kEnoughTasks);
  const int64_t carried = v.outer * cut.parts * v.inner;
  A* carries = axis_scratch<ScanScratch, A>(carried);
  std::fill_n(carries, carried, A{Op::kNeutral});
  if (cut.parts > 1) {
    sweep<Op, Output::none>(attrs.reverse, x, v, cut, carries, y);
    // From each part's total to what comes before it.
    for (int64_t o = 0; o < v.outer; ++o)
      for (int64_t j = 0; j < v.inner; ++j) {
        A before{Op::kNeutral};
        for (int64_t p = 0; p < cut.parts; ++p) {
          A& c = carries[(o * cut.parts + p) * v.inner + j];
          before = Op::join(std::exchange(c, before), before);
        }
      }
  }
  const auto fn = attrs.exclusive ? sweep<Op, Output::exclusive, S> : sweep<Op, Output::inclusive, S>;
  fn(attrs.reverse, x, v, cut, carries, y);
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
      const auto fn = kind == ScanKind::sum ? scan_as<Sum, S> : scan_as<Product, S>;
      fn(attrs, static_cast<const S*>(x), view, static_cast<S*>(y));
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
