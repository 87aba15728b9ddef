#include "outrace/backend/cpu/take_along.h"

#include <cstring>

#include "outrace/core/error.h"
#include "outrace/core/thread.h"

namespace outrace::cpu {
namespace {

constexpr int64_t kTask = 16 * 1024;  // elements: each may miss the cache

int64_t checked(const char* op, int64_t position, int64_t size) {
  if (static_cast<uint64_t>(position) >= static_cast<uint64_t>(size))
    fail(ErrorKind::value, "[", op, "] a position must lie between 0 and ", size - 1, " along an axis of ", size,
         " elements; got ", position);
  return position;
}

template <class T>
void take_as(const T* x, const AxisView& v, const int64_t* index, int64_t count, T* out) {
  const int64_t rows = v.outer * count;  // of the result, `inner` elements each
  const int64_t each = std::max<int64_t>(1, kTask / v.inner);
  parallel_for(axis_ceil(rows, each), [&](int64_t task) {
    for (int64_t r = task * each, end = std::min(r + each, rows); r < end; ++r) {
      const T* from = x + r / count * v.size * v.inner;
      for (int64_t i = r * v.inner; i < (r + 1) * v.inner; ++i)
        out[i] = from[checked("take_along", index[i], v.size) * v.inner + (i - r * v.inner)];
    }
  });
}

// By rows of the axis, where there is one column: the division is once a row.
template <class T>
void take_rows(const T* x, const AxisView& v, const int64_t* index, int64_t count, T* out) {
  const int64_t pieces = axis_ceil(count, kTask), each = pieces > 1 ? 1 : std::max<int64_t>(1, kTask / count);
  parallel_for(axis_ceil(v.outer, each) * pieces, [&](int64_t task) {
    const int64_t first = task % pieces * kTask, last = std::min(first + kTask, count);
    for (int64_t o = task / pieces * each, end = std::min(o + each, v.outer); o < end; ++o) {
      const T* from = x + o * v.size;
      for (int64_t j = o * count + first; j < o * count + last; ++j)
        out[j] = from[checked("take_along", index[j], v.size)];
    }
  });
}

template <class T>
void put_as(const T* x, const AxisView& v, const int64_t* index, int64_t count, T* out) {
  const int64_t strips = axis_ceil(v.inner, kAxisStrip);
  const int64_t each = std::max<int64_t>(1, kTask / ((v.size + count) * std::min(v.inner, kAxisStrip)));
  parallel_for(axis_ceil(v.outer * strips, each), [&](int64_t task) {
    for (int64_t s = task * each, end = std::min(s + each, v.outer * strips); s < end; ++s) {
      const int64_t outer = s / strips, column = s % strips * kAxisStrip;
      const int64_t width = std::min(kAxisStrip, v.inner - column);
      T* to = out + outer * v.size * v.inner + column;
      for (int64_t i = 0; i < v.size; ++i) std::memset(to + i * v.inner, 0, static_cast<size_t>(width) * sizeof(T));
      for (int64_t j = 0; j < count; ++j) {
        const int64_t from = (outer * count + j) * v.inner + column;
        for (int64_t c = 0; c < width; ++c) {
          T& sum = to[checked("put_along", index[from + c], v.size) * v.inner + c];
          if constexpr (std::is_floating_point_v<T>)
            sum += x[from + c];
          else
            sum = static_cast<T>(static_cast<uint64_t>(sum) + static_cast<uint64_t>(x[from + c]));
        }
      }
    }
  });
}

}  // namespace

void take_along(DType dtype, const void* x, const AxisView& view, const int64_t* index, int64_t count, void* out) {
  if (view.outer == 0 || count == 0 || view.inner == 0) return;
  const auto take = [&](auto zero) {
    using T = decltype(zero);
    const auto fn = view.inner == 1 ? take_rows<T> : take_as<T>;
    fn(static_cast<const T*>(x), view, index, count, static_cast<T*>(out));
  };
  switch (size_of(dtype)) {
    case 1: return take(uint8_t{});
    case 2: return take(uint16_t{});
    case 4: return take(uint32_t{});
    default: return take(uint64_t{});
  }
}

void put_along(DType dtype, const void* x, const AxisView& view, const int64_t* index, int64_t count, void* out) {
  if (view.outer == 0 || view.inner == 0) return;
  visit_dtype(dtype, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>)
      put_as(static_cast<const T*>(x), view, index, count, static_cast<T*>(out));
    else
      OUTRACE_ASSERT(false, "put_along of ", name_of(dtype));
  });
}

}  // namespace outrace::cpu
