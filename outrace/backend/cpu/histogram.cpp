#include "outrace/backend/cpu/histogram.h"

#include <algorithm>

#include "outrace/backend/cpu/axis.h"
#include "outrace/core/error.h"
#include "outrace/core/thread.h"

namespace outrace::cpu {
namespace {

constexpr int64_t kMostParts = 32;  // each has counts of its own, so that no element waits for another thread
struct HistogramScratch;

// Counts fn(i) for 0 <= i < count; below 0: left out. Whole numbers: the order of additions does not matter.
template <class Fn>
void count_by(int64_t count, int64_t bins, int64_t* counts, const Fn& bin_of) {
  // A part is worth its own counts only if it has more elements than those.
  const int64_t parts = std::clamp<int64_t>(count / std::max(kAxisTask, bins), 1, kMostParts);
  const int64_t each = ceil_div(count, parts);
  int64_t* own = parts == 1 ? counts : thread_memory<HistogramScratch, int64_t>(parts * bins);
  parallel_for(parts, [&](int64_t part) {
    int64_t* to = own + part * bins;
    std::fill_n(to, bins, 0);
    for (int64_t i = part * each, end = std::min(i + each, count); i < end; ++i) {
      const int64_t b = bin_of(i);
      if (b >= 0) ++to[b];
    }
  });
  if (parts == 1) return;
  std::fill_n(counts, bins, 0);
  for (int64_t part = 0; part < parts; ++part)
    for (int64_t b = 0; b < bins; ++b) counts[b] += own[part * bins + b];
}

template <class S>
double number(S v) {
  return static_cast<double>(static_cast<ComputeOf<S>>(v));
}

}  // namespace

void histogram(DType dtype, const void* x, int64_t count, const HistogramAttrs& a, int64_t* counts) {
  const double bins = static_cast<double>(a.bins), width = a.high / bins - a.low / bins;
  const double most = bins - 1, scale = 1 / width;
  const auto edge = [&](int64_t b) { return b == a.bins ? a.high : a.low + static_cast<double>(b) * width; };
  visit_dtype(dtype, [&](auto zero) {
    using S = decltype(zero);
    const S* in = static_cast<const S*>(x);
    count_by(count, a.bins, counts, [&](int64_t i) {
      const double v = number(in[i]);
      if (!(v >= a.low && v <= a.high)) return int64_t{-1};
      // Rounded, and nothing at all where the range is tiny; the edges decide.
      const double guess = (v - a.low) * scale;
      int64_t b = static_cast<int64_t>(guess >= 0 ? std::min(guess, most) : 0);
      if (b > 0 && v < edge(b)) --b;
      if (b < a.bins - 1 && v >= edge(b + 1)) ++b;
      return b;
    });
  });
}

void bincount(const int64_t* x, int64_t count, int64_t bins, int64_t* counts) {
  count_by(count, bins, counts, [&](int64_t i) {
    if (static_cast<uint64_t>(x[i]) >= static_cast<uint64_t>(bins))
      fail(ErrorKind::value, "[bincount] an element must lie between 0 and ", bins - 1, "; element ", i, " is ", x[i]);
    return x[i];
  });
}

}  // namespace outrace::cpu
