#include "outrace/backend/cpu/pooling.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "outrace/backend/cpu/axis.h"
#include "outrace/backend/cpu/thread_memory.h"
#include "outrace/core/error.h"
#include "outrace/core/thread.h"
#include "outrace/ops/pool.h"

namespace outrace::cpu {
namespace {

struct PlaceScratch;
struct BestScratch;
struct SumScratch;

// Whether `a` replaces the maximum `best`.
template <class T>
bool beats(T a, T best) {
  if constexpr (std::is_integral_v<T>)
    return a > best;
  else
    return static_cast<float>(a) > static_cast<float>(best) ||
           (std::isnan(static_cast<float>(a)) && !std::isnan(static_cast<float>(best)));
}
template <>
bool beats(double a, double best) {
  return a > best || (std::isnan(a) && !std::isnan(best));
}

// The windows of both axes, written down once a call.
struct Table {
  std::vector<PoolWindow> rows, columns;
  explicit Table(const PoolAttrs& a) {
    for (int64_t i = 0; i < a.count[0]; ++i) rows.push_back(pool_window(a, 0, i));
    for (int64_t j = 0; j < a.count[1]; ++j) columns.push_back(pool_window(a, 1, j));
  }
};

// Calls fn(entry) for each entry of x in window (i, j), in memory's order.
template <class Fn>
void each_entry(const PoolCall& call, const PoolWindow& rows, const PoolWindow& columns, Fn&& fn) {
  for (int64_t y = rows.begin; y < rows.end; y += rows.step)
    for (int64_t x = columns.begin; x < columns.end; x += columns.step) fn(y * call.windows.size[1] + x);
}

// places[c]: the entry of the window where channel c of `image` is largest.
template <class T>
void find_largest(const PoolCall& call, const T* image, const PoolWindow& rows, const PoolWindow& columns, T* best,
                  int32_t* places) {
  bool first = true;
  each_entry(call, rows, columns, [&](int64_t entry) {
    const T* at = image + entry * call.channels;
    const int32_t place = static_cast<int32_t>(entry);
    if (first) {
      std::copy_n(at, call.channels, best);
      std::fill_n(places, call.channels, place);
      first = false;
      return;
    }
    for (int64_t c = 0; c < call.channels; ++c) {
      const bool better = beats(at[c], best[c]);
      best[c] = better ? at[c] : best[c];
      places[c] = better ? place : places[c];
    }
  });
}

int64_t x_image(const PoolCall& call) { return call.windows.size[0] * call.windows.size[1] * call.channels; }
int64_t y_image(const PoolCall& call) { return call.windows.count[0] * call.windows.count[1] * call.channels; }

template <class T, class V>
void pick_of(const PoolCall& call, const T* x, const V* values, V* y) {
  const Table table(call.windows);
  const int64_t rows = call.windows.count[0], columns = call.windows.count[1];
  parallel_for(call.images * rows, [&](int64_t task) {
    const int64_t image = task / rows, i = task % rows;
    auto* places = thread_memory<PlaceScratch, int32_t>(call.channels);
    T* best = thread_memory<BestScratch, T>(call.channels);
    V* to = y + image * y_image(call) + i * columns * call.channels;
    const V* from = values + image * x_image(call);
    for (int64_t j = 0; j < columns; ++j, to += call.channels) {
      find_largest(call, x + image * x_image(call), table.rows[i], table.columns[j], best, places);
      for (int64_t c = 0; c < call.channels; ++c) to[c] = from[places[c] * call.channels + c];
    }
  });
}

// Windows may overlap: a thread takes whole images.
template <class T, class V>
void grad_of(const PoolCall& call, const T* x, const V* g, V* dx) {
  using W = ComputeOf<V>;
  const Table table(call.windows);
  parallel_for(call.images, [&](int64_t image) {
    auto* places = thread_memory<PlaceScratch, int32_t>(call.channels);
    T* best = thread_memory<BestScratch, T>(call.channels);
    V* to = dx + image * x_image(call);
    W* sums = nullptr;
    if constexpr (std::is_same_v<V, W>)
      sums = to;
    else
      sums = thread_memory<SumScratch, W>(x_image(call));
    std::fill_n(sums, x_image(call), W(0));
    const V* from = g + image * y_image(call);
    for (int64_t i = 0; i < call.windows.count[0]; ++i)
      for (int64_t j = 0; j < call.windows.count[1]; ++j, from += call.channels) {
        find_largest(call, x + image * x_image(call), table.rows[i], table.columns[j], best, places);
        for (int64_t c = 0; c < call.channels; ++c) sums[places[c] * call.channels + c] += static_cast<W>(from[c]);
      }
    if constexpr (!std::is_same_v<V, W>)
      for (int64_t e = 0; e < x_image(call); ++e) to[e] = V(static_cast<float>(sums[e]));
  });
}

template <class V>
void avg_of(const PoolCall& call, const V* x, V* y) {
  using W = ComputeOf<V>;
  const Table table(call.windows);
  const int64_t rows = call.windows.count[0], columns = call.windows.count[1];
  parallel_for(call.images * rows, [&](int64_t task) {
    const int64_t image = task / rows, i = task % rows;
    W* sums = thread_memory<SumScratch, W>(call.channels);
    V* to = y + image * y_image(call) + i * columns * call.channels;
    for (int64_t j = 0; j < columns; ++j, to += call.channels) {
      std::fill_n(sums, call.channels, W(0));
      each_entry(call, table.rows[i], table.columns[j], [&](int64_t entry) {
        const V* at = x + image * x_image(call) + entry * call.channels;
        for (int64_t c = 0; c < call.channels; ++c) sums[c] += static_cast<W>(at[c]);
      });
      const W divisor = static_cast<W>(table.rows[i].divisor * table.columns[j].divisor);
      for (int64_t c = 0; c < call.channels; ++c) to[c] = V(sums[c] / divisor);
    }
  });
}

template <class V>
void avg_grad_of(const PoolCall& call, const V* g, V* dx) {
  using W = ComputeOf<V>;
  const Table table(call.windows);
  parallel_for(call.images, [&](int64_t image) {
    V* to = dx + image * x_image(call);
    W* sums = nullptr;
    if constexpr (std::is_same_v<V, W>)
      sums = to;
    else
      sums = thread_memory<SumScratch, W>(x_image(call));
    std::fill_n(sums, x_image(call), W(0));
    const V* from = g + image * y_image(call);
    for (int64_t i = 0; i < call.windows.count[0]; ++i)
      for (int64_t j = 0; j < call.windows.count[1]; ++j, from += call.channels) {
        const W divisor = static_cast<W>(table.rows[i].divisor * table.columns[j].divisor);
        each_entry(call, table.rows[i], table.columns[j], [&](int64_t entry) {
          W* at = sums + entry * call.channels;
          for (int64_t c = 0; c < call.channels; ++c) at[c] += static_cast<W>(from[c]) / divisor;
        });
      }
    if constexpr (!std::is_same_v<V, W>)
      for (int64_t e = 0; e < x_image(call); ++e) to[e] = V(static_cast<float>(sums[e]));
  });
}

template <class Fn>
void visit_floats(DType dtype, Fn&& fn) {
  visit_dtype(dtype, [&](auto zero) {
    if constexpr (is_float(dtype_of<decltype(zero)>()))
      fn(zero);
    else
      OUTRACE_ASSERT(false, "pooling of ", name_of(dtype));
  });
}

// The type of x and that of the values: any and the same, or positions (i64).
template <class Fn>
void visit_pair(const PoolCall& call, Fn&& fn) {
  visit_dtype(call.x, [&](auto x) {
    if (call.values == call.x)
      fn(x, x);
    else if (call.values == DType::i64)
      fn(x, int64_t{0});
    else
      OUTRACE_ASSERT(false, "pooling picks ", name_of(call.values), " by ", name_of(call.x));
  });
}

}  // namespace

void max_pool_pick(const PoolCall& call, const void* x, const void* values, void* y) {
  visit_pair(call, [&](auto t, auto v) {
    pick_of(call, static_cast<const decltype(t)*>(x), static_cast<const decltype(v)*>(values),
            static_cast<decltype(v)*>(y));
  });
}

void max_pool_grad(const PoolCall& call, const void* x, const void* g, void* dx) {
  visit_floats(call.x, [&](auto t) {
    grad_of(call, static_cast<const decltype(t)*>(x), static_cast<const decltype(t)*>(g),
            static_cast<decltype(t)*>(dx));
  });
}

void avg_pool(const PoolCall& call, const void* x, void* y) {
  visit_floats(call.values,
               [&](auto t) { avg_of(call, static_cast<const decltype(t)*>(x), static_cast<decltype(t)*>(y)); });
}

void avg_pool_grad(const PoolCall& call, const void* g, void* dx) {
  visit_floats(call.values,
               [&](auto t) { avg_grad_of(call, static_cast<const decltype(t)*>(g), static_cast<decltype(t)*>(dx)); });
}

}  // namespace outrace::cpu
