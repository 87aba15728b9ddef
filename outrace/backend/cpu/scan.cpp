// A scan is a chain of dependent operations, so several lines are taken side by side: neighbouring columns, or, where
// the axis is the last, kScanLines rows (or parts of one row).
#include "outrace/backend/cpu/scan.h"

#include <utility>

#include "outrace/backend/cpu/scan_kernels.h"
#include "outrace/core/error.h"
#include "outrace/core/thread.h"

namespace outrace::cpu {
namespace {

constexpr int64_t kPart = 1024;
constexpr int64_t kStrip = 1024;  // columns: half a page and more of a row, whose sums, 8 KB, stay in L1
// A second pass pays only where there are few tasks without it. Parts of one row go kScanLines together.
constexpr int64_t kEnoughTasks = 8, kEnoughLines = 32 * kScanLines;
struct ScanScratch;

double join(ScanKind kind, double a, double b) { return kind == ScanKind::sum ? a + b : a * b; }
int64_t join(ScanKind kind, int64_t a, int64_t b) {
  const uint64_t x = static_cast<uint64_t>(a), z = static_cast<uint64_t>(b);
  return static_cast<int64_t>(kind == ScanKind::sum ? x + z : x * z);
}

// One pass over the array, from the carries [outer, parts, inner] that each part starts with; null: from `neutral`.
template <class S>
void sweep(const ScanKernels<S>& kernels, bool reverse, const S* x, const AxisView& v, const AxisCut& cut,
           ScanWide<S>* carries, ScanWide<S> neutral, S* y) {
  const int64_t direction = reverse ? -1 : 1;
  const auto length = [&](int64_t part) { return std::min(cut.part, v.size - part * cut.part); };
  // Where the scan enters a part, in column 0.
  const auto start = [&](int64_t outer, int64_t part) {
    const int64_t i = part * cut.part;
    return (outer * v.size + (reverse ? v.size - 1 - i : i)) * v.inner;
  };
  if (v.inner == 1) {
    const int64_t lines = v.outer * cut.parts;
    const int64_t group = kScanLines * std::max<int64_t>(1, kAxisTask / (kScanLines * std::min(cut.part, v.size)));
    return parallel_for(ceil_div(lines, group), [&](int64_t task) {
      for (int64_t first = task * group, end = std::min(first + group, lines); first < end; first += kScanLines) {
        const int64_t number = std::min(kScanLines, end - first);
        ScanLine line[kScanLines];
        for (int64_t k = 0; k < number; ++k) {
          const int64_t outer = (first + k) / cut.parts, part = (first + k) % cut.parts;
          line[k] = {start(outer, part), length(part)};
        }
        ScanWide<S> own[kScanLines];
        std::fill_n(own, number, neutral);
        kernels.lines(x, y, line, number, direction, carries == nullptr ? own : carries + first);
      }
    });
  }
  axis_tasks(v.outer * cut.parts * cut.strips, std::min(cut.part, v.size) * cut.strip, [&](int64_t task) {
    const int64_t column = task % cut.strips * cut.strip, width = std::min(cut.strip, v.inner - column);
    const int64_t part = task / cut.strips % cut.parts, outer = task / cut.strips / cut.parts;
    ScanWide<S> own[kStrip];
    std::fill_n(own, width, neutral);
    kernels.columns(x, y, start(outer, part) + column, length(part), direction * v.inner, width,
                    carries == nullptr ? own : carries + (outer * cut.parts + part) * v.inner + column);
  });
}

template <class S>
void scan_as(ScanKind kind, const ScanAttrs& attrs, const S* x, const AxisView& v, S* y) {
  using A = ScanWide<S>;
  // Parts cost a second pass over x. Products of floats have none: a part's may overflow where what comes before it is
  // 0.
  const bool whole = kind == ScanKind::prod && !std::is_integral_v<S>;
  const AxisCut cut(v, whole ? v.size : kPart, kStrip, v.inner == 1 ? kEnoughLines : kEnoughTasks);
  const A neutral = kind == ScanKind::sum ? 0 : 1;
  A* carries = nullptr;
  if (cut.parts > 1) {
    const int64_t carried = v.outer * cut.parts * v.inner;
    carries = thread_memory<ScanScratch, A>(carried);
    std::fill_n(carries, carried, neutral);
    sweep(scan_kernels<S>(kind, ScanOutput::none), attrs.reverse, x, v, cut, carries, neutral, y);
    // From each part's total to what comes before it.
    for (int64_t o = 0; o < v.outer; ++o)
      for (int64_t j = 0; j < v.inner; ++j) {
        A before = neutral;
        for (int64_t p = 0; p < cut.parts; ++p) {
          A& c = carries[(o * cut.parts + p) * v.inner + j];
          before = join(kind, std::exchange(c, before), before);
        }
      }
  }
  const ScanOutput output = attrs.exclusive ? ScanOutput::exclusive : ScanOutput::inclusive;
  sweep(scan_kernels<S>(kind, output), attrs.reverse, x, v, cut, carries, neutral, y);
}

template <class T, class S>
void recur(bool reverse, const S* a, const S* b, const AxisView& v, S* h) {
  const int64_t strips = ceil_div(v.inner, kAxisStrip), direction = reverse ? -v.inner : v.inner;
  axis_tasks(v.outer * strips, v.size * std::min(v.inner, kAxisStrip), [&](int64_t s) {
    const int64_t column = s % strips * kAxisStrip, width = std::min(kAxisStrip, v.inner - column);
    int64_t at = (s / strips * v.size + (reverse ? v.size - 1 : 0)) * v.inner + column;
    T last[kAxisStrip] = {};
    for (int64_t i = 0; i < v.size; ++i, at += direction)
      for (int64_t j = 0; j < width; ++j) {
        const T factor = static_cast<T>(a[at + j]), term = static_cast<T>(b[at + j]);
        last[j] = i == 0 ? term : factor * last[j] + term;
        h[at + j] = S(last[j]);
      }
  });
}

}  // namespace

void scan(ScanKind kind, DType dtype, const ScanAttrs& attrs, const void* x, const AxisView& view, void* y) {
  if (view.numel() == 0) return;
  visit_dtype(dtype, [&](auto zero) {
    using S = decltype(zero);
    if constexpr (std::is_same_v<S, int64_t> || is_float(dtype_of<S>())) {
      scan_as(kind, attrs, static_cast<const S*>(x), view, static_cast<S*>(y));
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
