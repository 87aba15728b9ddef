// Both are cut by elements of the result, so that each is written once, in order.
#include "outrace/backend/cpu/fill.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "outrace/backend/cpu/convert.h"
#include "outrace/core/error.h"
#include "outrace/core/half.h"
#include "outrace/core/number.h"
#include "outrace/core/thread.h"

namespace outrace::cpu {
namespace {

// A random number costs 1 ns (uniform) to 3 (normal): a task takes 15 us or more. A multiple of every Philox block.
constexpr int64_t kRandomTask = 16 * 1024;
// Numbers drawn at once when they are converted afterwards: 2 or 4 KB, in L1.
constexpr int64_t kRandomPiece = 512;

template <class T>
void draw(const RandomAttrs& attrs, RandomState state, int64_t begin, int64_t end, T* out) {
  const uint64_t first = static_cast<uint64_t>(begin), last = static_cast<uint64_t>(end);
  if constexpr (std::is_same_v<T, int64_t>) {
    fill_integer(out, state, first, last, static_cast<int64_t>(attrs.a), static_cast<int64_t>(attrs.b));
  } else if (attrs.distribution == Distribution::uniform) {
    fill_uniform(out, state, first, last, attrs.a, attrs.b);
  } else {
    fill_normal(out, state, first, last, attrs.a, attrs.b);
  }
}

template <class Drawn, class T>
void store(const Drawn* from, T* to, int64_t count) {
  if constexpr (std::is_same_v<T, bf16> || std::is_same_v<T, f16>) {
    if constexpr (std::is_same_v<Drawn, float>)
      return narrow_from_f32(dtype_of<T>(), from, to, count);
    else
      for (int64_t i = 0; i < count; ++i) to[i] = T(static_cast<float>(from[i]));
  } else {
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<T>(from[i]);
  }
}

// Numbers drawn as Drawn, stored as T.
template <class Drawn, class T>
void fill_as(const RandomAttrs& attrs, RandomState state, T* out, int64_t count) {
  parallel_for(ceil_div(count, kRandomTask), [&](int64_t task) {
    const int64_t begin = task * kRandomTask, end = std::min(begin + kRandomTask, count);
    if constexpr (std::is_same_v<Drawn, T>) {
      draw(attrs, state, begin, end, out + begin);
    } else {
      Drawn piece[kRandomPiece];
      for (int64_t i = begin; i < end; i += kRandomPiece) {
        const int64_t n = std::min(kRandomPiece, end - i);
        draw(attrs, state, i, i + n, piece);
        store(piece, out + i, n);
      }
    }
  });
}

// ---- pad ----

// Bytes worth a task of their own, some 10 us.
constexpr int64_t kPadTask = 128 * 1024;

// The axes before the last, and the last, after joining those that x fills as they are.
struct Padding {
  int rank = 0;  // of the axes before the last
  std::array<int64_t, kMaxRank> from{}, to{}, start{}, step{};
  int64_t last_from = 1, last_to = 1, last_start = 0, last_step = 1;
};

Padding plan_padding(const Shape& from, const Shape& to, const SliceAttrs& attrs) {
  Padding p;
  int axis = to.rank() - 1;
  if (axis < 0) return p;
  // A last axis that x fills whole makes the one before it longer, in units of the whole.
  int64_t whole = 1;
  for (; axis > 0 && from[axis] == to[axis] && attrs.start[axis] == 0 && (attrs.step[axis] == 1 || from[axis] == 1) &&
         (attrs.step[axis - 1] == 1 || from[axis - 1] == 1);
       --axis)
    whole *= to[axis];
  p.last_from = from[axis] * whole;
  p.last_to = to[axis] * whole;
  p.last_start = attrs.start[axis] * whole;
  p.last_step = from[axis] == 1 ? 1 : attrs.step[axis];
  p.rank = axis;
  for (int i = 0; i < axis; ++i) {
    p.from[i] = from[i];
    p.to[i] = to[i];
    p.start[i] = attrs.start[i];
    p.step[i] = from[i] == 1 ? 1 : attrs.step[i];
  }
  return p;
}

// The row of x that lies in row `index` of the result; -1: none.
int64_t source_row(const Padding& p, int64_t index) {
  int64_t row = 0, stride = 1;
  for (int i = p.rank - 1; i >= 0; --i) {
    const int64_t distance = index % p.to[i] - p.start[i];
    index /= p.to[i];
    if (distance % p.step[i] != 0) return -1;
    const int64_t at = distance / p.step[i];
    if (at < 0 || at >= p.from[i]) return -1;
    row += at * stride;
    stride *= p.from[i];
  }
  return row;
}

// Elements first .. last of a row of the result.
template <class T>
void pad_row(const Padding& p, const T* x, int64_t first, int64_t last, T fill, T* out) {
  if (x == nullptr || p.last_from == 0) {
    std::fill_n(out, last - first, fill);
  } else if (p.last_step == 1) {
    const int64_t begin = std::clamp(p.last_start, first, last);
    const int64_t end = std::clamp(p.last_start + p.last_from, first, last);
    std::fill_n(out, begin - first, fill);
    if (end > begin)
      std::memcpy(out + (begin - first), x + (begin - p.last_start), static_cast<size_t>(end - begin) * sizeof(T));
    std::fill_n(out + (end - first), last - end, fill);
  } else {
    std::fill_n(out, last - first, fill);
    // A negative step: the same elements from the last one on.
    const int64_t step = std::abs(p.last_step), sign = p.last_step < 0 ? -1 : 1;
    const int64_t start = sign < 0 ? p.last_start + (p.last_from - 1) * p.last_step : p.last_start;
    const T* from = sign < 0 ? x + p.last_from - 1 : x;
    const int64_t begin = first > start ? ceil_div(first - start, step) : 0;
    for (int64_t i = begin; i < p.last_from && start + i * step < last; ++i)
      out[start + i * step - first] = from[sign * i];
  }
}

template <class T>
void pad_as(const Padding& p, const void* x, uint64_t fill, void* out, int64_t count) {
  const T* in = static_cast<const T*>(x);
  const int64_t task_elements = kPadTask / static_cast<int64_t>(sizeof(T));
  parallel_for(ceil_div(count, task_elements), [&](int64_t task) {
    const int64_t end = std::min((task + 1) * task_elements, count);
    for (int64_t i = task * task_elements; i < end;) {
      const int64_t row = i / p.last_to, first = i % p.last_to;
      const int64_t last = std::min(p.last_to, first + (end - i));
      const int64_t source = source_row(p, row);
      pad_row(p, source < 0 ? nullptr : in + source * p.last_from, first, last, static_cast<T>(fill),
              static_cast<T*>(out) + i);
      i += last - first;
    }
  });
}

// A number's bits in a dtype, in the low bytes.
uint64_t bits_of(double value, DType dtype) {
  uint64_t bits = 0;
  visit_dtype(dtype, [&](auto zero) {
    using T = decltype(zero);
    const T v = from_number<T>(value);
    std::memcpy(&bits, &v, sizeof v);
  });
  return bits;
}

}  // namespace

void fill_random(const RandomAttrs& attrs, RandomState state, DType dtype, void* out, int64_t count) {
  const bool integers = attrs.distribution == Distribution::integer;
  OUTRACE_ASSERT(integers || is_float(dtype), "uniform or normal numbers as ", name_of(dtype));
  visit_dtype(dtype, [&](auto zero) {
    using T = decltype(zero);
    T* to = static_cast<T*>(out);
    if (integers) return fill_as<int64_t>(attrs, state, to, count);
    if constexpr (std::is_same_v<T, double>)
      fill_as<double>(attrs, state, to, count);
    else if constexpr (is_float(dtype_of<T>()))
      fill_as<float>(attrs, state, to, count);
  });
}

void pad(DType dtype, const void* x, const Shape& x_shape, const SliceAttrs& attrs, void* out, const Shape& shape) {
  OUTRACE_ASSERT(x_shape.rank() == shape.rank(), "pad from ", x_shape, " to ", shape);
  for (int i = 0; i < shape.rank(); ++i)
    OUTRACE_ASSERT(attrs.step[i] != 0 || x_shape[i] <= 1, "pad with step 0 along axis ", i);
  const Padding p = plan_padding(x_shape, shape, attrs);
  const uint64_t fill = bits_of(attrs.fill, dtype);
  if (x_shape.numel() == 0) x = nullptr;
  switch (size_of(dtype)) {
    case 1: return pad_as<uint8_t>(p, x, fill, out, shape.numel());
    case 2: return pad_as<uint16_t>(p, x, fill, out, shape.numel());
    case 4: return pad_as<uint32_t>(p, x, fill, out, shape.numel());
    default: return pad_as<uint64_t>(p, x, fill, out, shape.numel());
  }
}

}  // namespace outrace::cpu
