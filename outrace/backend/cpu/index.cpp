// One index an element. The array is [outer, size, inner] around the axis, the index [outer, n, inner]; beside the axis
// the array may be larger, then offsets are looked up. Tasks never share a line along the axis, so that writes of one
// line come in order of position.
#include "outrace/backend/cpu/index.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "outrace/backend/cpu/convert.h"
#include "outrace/backend/cpu/index_read.h"
#include "outrace/core/aligned.h"
#include "outrace/core/error.h"
#include "outrace/core/thread.h"

namespace outrace::cpu {
namespace {

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

struct Lines {
  int64_t outer = 1, n = 1, inner = 1;
  int64_t step = 1;                   // of the array along the axis
  std::vector<int64_t> outer_offset;  // into the array; empty: outer_step apart
  std::vector<int64_t> inner_offset;  // empty: one behind the other
  int64_t outer_step = 0;

  int64_t start(int64_t o) const { return outer_offset.empty() ? o * outer_step : outer_offset[o]; }
};

// Where the elements of axes first .. last - 1 of the index lie in the array; empty if they lie like a dense array's.
std::vector<int64_t> offsets(const IndexCall& c, const Strides& strides, int first, int last) {
  bool equal = true;
  int64_t count = 1;
  for (int i = first; i < last; ++i) {
    equal = equal && c.index[i] == c.array[i];
    count *= c.index[i];
  }
  std::vector<int64_t> out;
  if (equal) return out;
  out.assign(static_cast<size_t>(count), 0);
  for (int64_t k = 0; k < count; ++k) {
    int64_t rest = k;
    for (int i = last - 1; i >= first; --i) {
      out[k] += rest % c.index[i] * strides[i];
      rest /= c.index[i];
    }
  }
  return out;
}

Lines lines_of(const IndexCall& c) {
  const int axis = static_cast<int>(c.attrs.axis);
  const Strides strides = contiguous_strides(c.array);
  Lines l;
  for (int i = 0; i < axis; ++i) l.outer *= c.index[i];
  l.n = c.index[axis];
  for (int i = axis + 1; i < c.index.rank(); ++i) l.inner *= c.index[i];
  l.step = strides[axis];
  l.outer_step = c.array[axis] * strides[axis];
  l.outer_offset = offsets(c, strides, 0, axis);
  l.inner_offset = offsets(c, strides, axis + 1, c.index.rank());
  return l;
}

template <class T, class Fn>
void with_size(int64_t bytes, const T&, Fn&& fn) {
  switch (bytes) {
    case 1: return fn(uint8_t{});
    case 2: return fn(uint16_t{});
    case 4: return fn(uint32_t{});
    default: return fn(uint64_t{});
  }
}

// Calls fn(position of the first index, first element of the array's lines, inner position, count, indices) for pieces
// of the lines, those of one line in order. A piece lies along the axis if inner is 1, else across the lines.
template <class Fn>
void for_pieces(const IndexCall& call, const Lines& l, const void* index, const Fn& fn) {
  IndexReader reader(call, index);
  if (l.outer == 0 || l.n == 0 || l.inner == 0) return;
  // Blocks of whole lines; across them at least a cache line of each row.
  const int64_t wide = std::clamp<int64_t>(kIndexTask / l.n, 64, kIndexPiece);
  const int64_t across = l.inner == 1 ? 1 : ceil_div(l.inner, wide);
  const int64_t together = std::max<int64_t>(1, kIndexTask / (l.n * std::min(l.inner, wide)));  // outer entries a task
  parallel_for(ceil_div(l.outer, together) * across, [&](int64_t task) {
    int64_t at[kIndexPiece];
    const int64_t first = task / across * together, last = std::min(first + together, l.outer);
    const int64_t begin = task % across * wide, count = std::min(wide, l.inner - begin);
    for (int64_t o = first; o < last; ++o) {
      const int64_t start = l.start(o);
      if (l.inner == 1) {
        for (int64_t k = 0; k < l.n; k += kIndexPiece) {
          const int64_t some = std::min(kIndexPiece, l.n - k);
          if (!reader.read(o * l.n + k, some, at)) return;
          fn(o * l.n + k, start, int64_t{0}, some, at);
        }
        continue;
      }
      for (int64_t k = 0; k < l.n; ++k) {
        const int64_t position = (o * l.n + k) * l.inner + begin;
        if (!reader.read(position, count, at)) return;
        fn(position, start, begin, count, at);
      }
    }
  });
  reader.throw_if_bad();
}

// Calls fn(i, offset in the array) for a piece.
template <class Fn>
void for_elements(const Lines& l, int64_t start, int64_t inner, int64_t count, const int64_t* at, const Fn& fn) {
  if (l.inner == 1) {
    for (int64_t i = 0; i < count; ++i) fn(i, start + at[i] * l.step);
  } else if (l.inner_offset.empty()) {
    for (int64_t i = 0; i < count; ++i) fn(i, start + at[i] * l.step + inner + i);
  } else {
    for (int64_t i = 0; i < count; ++i) fn(i, start + at[i] * l.step + l.inner_offset[inner + i]);
  }
}

void copy_or_zero(const void* base, void* out, int64_t bytes) {
  parallel_for(ceil_div(bytes, kIndexTaskBytes), [&](int64_t task) {
    const int64_t begin = task * kIndexTaskBytes;
    const auto count = static_cast<size_t>(std::min(kIndexTaskBytes, bytes - begin));
    if (base != nullptr)
      std::memcpy(static_cast<char*>(out) + begin, static_cast<const char*>(base) + begin, count);
    else
      std::memset(static_cast<char*>(out) + begin, 0, count);
  });
}

template <class T>
void add_all(const IndexCall& call, const Lines& l, const void* index, const T* source, T* out) {
  for_pieces(call, l, index, [&](int64_t position, int64_t start, int64_t inner, int64_t count, const int64_t* at) {
    for_elements(l, start, inner, count, at, [&](int64_t i, int64_t to) {
      // u8 is truncated, a bool stays 0 or 1; the sums of signed integers wrap.
      if constexpr (std::is_same_v<T, bool>)
        out[to] = out[to] || source[position + i];
      else
        out[to] = static_cast<T>(out[to] + source[position + i]);
    });
  });
}

// 16-bit floats are added in f32 and rounded once.
void add_narrow(const IndexCall& call, const Lines& l, const void* index, const void* source, const void* base,
                void* out) {
  const int64_t count = call.array.numel(), given = call.index.numel();
  const AlignedArray<float> sums = aligned_array<float>(count), terms = aligned_array<float>(given);
  if (base != nullptr)
    widen_to_f32(call.dtype, base, sums.get(), count);
  else
    std::fill_n(sums.get(), count, 0.0f);
  widen_to_f32(call.dtype, source, terms.get(), given);
  add_all(call, l, index, terms.get(), sums.get());
  narrow_from_f32(call.dtype, sums.get(), out, count);
}

}  // namespace

void gather(const IndexCall& call, const void* array, const void* index, void* out) {
  const Lines l = lines_of(call);
  with_size(size_of(call.dtype), 0, [&](auto zero) {
    using U = decltype(zero);
    const U* from = static_cast<const U*>(array);
    for_pieces(call, l, index, [&](int64_t position, int64_t start, int64_t inner, int64_t count, const int64_t* at) {
      U* to = static_cast<U*>(out) + position;
      for_elements(l, start, inner, count, at, [&](int64_t i, int64_t offset) { to[i] = from[offset]; });
    });
  });
}

void scatter(const IndexCall& call, const void* index, const void* source, const void* base, void* out) {
  const Lines l = lines_of(call);
  copy_or_zero(base, out, call.array.numel() * size_of(call.dtype));
  with_size(size_of(call.dtype), 0, [&](auto zero) {
    using U = decltype(zero);
    U* to = static_cast<U*>(out);
    for_pieces(call, l, index, [&](int64_t position, int64_t start, int64_t inner, int64_t count, const int64_t* at) {
      const U* from = static_cast<const U*>(source) + position;
      for_elements(l, start, inner, count, at, [&](int64_t i, int64_t offset) { to[offset] = from[i]; });
    });
  });
}

void scatter_add(const IndexCall& call, const void* index, const void* source, const void* base, void* out) {
  const Lines l = lines_of(call);
  if (call.array.rank() == 1) return index_add(call, index, source, base, out);
  if (call.dtype == DType::bf16 || call.dtype == DType::f16) return add_narrow(call, l, index, source, base, out);
  copy_or_zero(base, out, call.array.numel() * size_of(call.dtype));
  switch (call.dtype) {
    case DType::f64: return add_all(call, l, index, static_cast<const double*>(source), static_cast<double*>(out));
    case DType::i32: return add_all(call, l, index, static_cast<const uint32_t*>(source), static_cast<uint32_t*>(out));
    case DType::i64: return add_all(call, l, index, static_cast<const uint64_t*>(source), static_cast<uint64_t*>(out));
    case DType::u8: return add_all(call, l, index, static_cast<const uint8_t*>(source), static_cast<uint8_t*>(out));
    case DType::boolean: return add_all(call, l, index, static_cast<const bool*>(source), static_cast<bool*>(out));
    default: return add_all(call, l, index, static_cast<const float*>(source), static_cast<float*>(out));
  }
}

}  // namespace outrace::cpu
