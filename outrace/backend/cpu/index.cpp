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

template <class Fn>
void with_size(int64_t bytes, Fn&& fn) {
  switch (bytes) {
    case 1: return fn(uint8_t{});
    case 2: return fn(uint16_t{});
    case 4: return fn(uint32_t{});
    default: return fn(uint64_t{});
  }
}

// Calls fn(position of the first index, first element of the array's lines, inner position, count, indices) for pieces
// of the lines. A piece lies along the axis if inner is 1, else across the lines. `ordered`: the pieces of one line
// come in order, in one task.
template <class Fn>
void for_pieces(const IndexCall& call, const Lines& l, const void* index, bool ordered, const Fn& fn) {
  IndexReader reader(call, index);
  if (l.outer == 0 || l.n == 0 || l.inner == 0) return;
  // Across lines at least a cache line of each row.
  const int64_t wide = std::min(std::clamp<int64_t>(kIndexTask / l.n, 64, kIndexPiece), l.inner);
  const int64_t across = ceil_div(l.inner, wide);
  const int64_t span = ordered ? l.n : std::min(l.n, kIndexTask / wide), along = ceil_div(l.n, span);
  const int64_t together = along > 1 ? 1 : std::max<int64_t>(1, kIndexTask / (l.n * wide));  // outer entries a task
  parallel_for(ceil_div(l.outer, together) * along * across, [&](int64_t task) {
    int64_t at[kIndexPiece];
    const int64_t group = task / (along * across);
    const int64_t first = group * together, last = std::min(first + together, l.outer);
    const int64_t k_first = task / across % along * span, k_last = std::min(k_first + span, l.n);
    const int64_t begin = task % across * wide, count = std::min(wide, l.inner - begin);
    for (int64_t o = first; o < last; ++o) {
      const int64_t start = l.start(o);
      const int64_t step = l.inner == 1 ? kIndexPiece : 1;
      for (int64_t k = k_first; k < k_last; k += step) {
        const int64_t position = (o * l.n + k) * l.inner + begin;
        const int64_t some = l.inner == 1 ? std::min(kIndexPiece, k_last - k) : count;
        if (!reader.read(position, some, at)) return;
        fn(position, start, begin, some, at);
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

void copy_or_zero(const void* base, void* out, int64_t begin, int64_t bytes) {
  if (base != nullptr)
    std::memcpy(static_cast<char*>(out) + begin, static_cast<const char*>(base) + begin, static_cast<size_t>(bytes));
  else
    std::memset(static_cast<char*>(out) + begin, 0, static_cast<size_t>(bytes));
}

// Calls fn(begin, count) for parts of an array.
template <class Fn>
void for_parts(int64_t count, int64_t most, const Fn& fn) {
  parallel_for(ceil_div(count, most), [&](int64_t task) { fn(task * most, std::min(most, count - task * most)); });
}

// The result before anything is written to it: each line when its first piece comes, where a line is one run of memory,
// else all at once.
template <class T>
class Start {
 public:
  Start(const IndexCall& call, const Lines& l, const T* base, T* out)
      : base_(base), out_(out), n_(l.n), line_bytes_(l.outer_step * static_cast<int64_t>(sizeof(T))) {
    by_line_ = l.inner == 1 && l.step == 1 && l.n > 0 && l.outer > 0 && l.outer_offset.empty();
    if (by_line_) return;
    for_parts(call.array.numel() * static_cast<int64_t>(sizeof(T)), kIndexTaskBytes,
              [&](int64_t begin, int64_t bytes) { copy_or_zero(base_, out_, begin, bytes); });
  }
  void line(int64_t position) const {
    if (by_line_ && position % n_ == 0) copy_or_zero(base_, out_, position / n_ * line_bytes_, line_bytes_);
  }

 private:
  const T* base_;
  T* out_;
  int64_t n_, line_bytes_;
  bool by_line_;
};

template <class T>
void add_all(const IndexCall& call, const Lines& l, const void* index, const void* source, const void* base,
             void* out) {
  const T* from = static_cast<const T*>(source);
  T* to = static_cast<T*>(out);
  const Start<T> begin(call, l, static_cast<const T*>(base), to);
  for_pieces(call, l, index, true,
             [&](int64_t position, int64_t start, int64_t inner, int64_t count, const int64_t* at) {
               begin.line(position);
               for_elements(l, start, inner, count, at, [&](int64_t i, int64_t k) {
                 // u8 is truncated, a bool stays 0 or 1; the sums of signed integers wrap.
                 if constexpr (std::is_same_v<T, bool>)
                   to[k] = to[k] || from[position + i];
                 else
                   to[k] = static_cast<T>(to[k] + from[position + i]);
               });
             });
}

// 16-bit floats are added in f32 and rounded once.
void add_narrow(const IndexCall& call, const Lines& l, const void* index, const void* source, const void* base,
                void* out) {
  const int64_t count = call.array.numel(), given = call.index.numel(), element = size_of(call.dtype);
  const AlignedArray<float> first = aligned_array<float>(base != nullptr ? count : 0);
  const AlignedArray<float> sums = aligned_array<float>(count), terms = aligned_array<float>(given);
  const auto widen = [&](const void* from, float* to, int64_t n) {
    for_parts(n, kIndexTask, [&](int64_t begin, int64_t some) {
      widen_to_f32(call.dtype, static_cast<const char*>(from) + begin * element, to + begin, some);
    });
  };
  if (base != nullptr) widen(base, first.get(), count);
  widen(source, terms.get(), given);
  add_all<float>(call, l, index, terms.get(), base != nullptr ? first.get() : nullptr, sums.get());
  for_parts(count, kIndexTask, [&](int64_t begin, int64_t some) {
    narrow_from_f32(call.dtype, sums.get() + begin, static_cast<char*>(out) + begin * element, some);
  });
}

}  // namespace

void gather(const IndexCall& call, const void* array, const void* index, void* out) {
  const Lines l = lines_of(call);
  with_size(size_of(call.dtype), [&](auto zero) {
    using U = decltype(zero);
    const U* from = static_cast<const U*>(array);
    for_pieces(call, l, index, false,
               [&](int64_t position, int64_t start, int64_t inner, int64_t count, const int64_t* at) {
                 U* to = static_cast<U*>(out) + position;
                 for_elements(l, start, inner, count, at, [&](int64_t i, int64_t k) { to[i] = from[k]; });
               });
  });
}

void scatter(const IndexCall& call, const void* index, const void* source, const void* base, void* out) {
  const Lines l = lines_of(call);
  with_size(size_of(call.dtype), [&](auto zero) {
    using U = decltype(zero);
    U* to = static_cast<U*>(out);
    const Start<U> begin(call, l, static_cast<const U*>(base), to);
    for_pieces(call, l, index, true,
               [&](int64_t position, int64_t start, int64_t inner, int64_t count, const int64_t* at) {
                 begin.line(position);
                 const U* from = static_cast<const U*>(source) + position;
                 for_elements(l, start, inner, count, at, [&](int64_t i, int64_t k) { to[k] = from[i]; });
               });
  });
}

void scatter_add(const IndexCall& call, const void* index, const void* source, const void* base, void* out) {
  if (call.array.rank() == 1) return index_add(call, index, source, base, out);
  const Lines l = lines_of(call);
  switch (call.dtype) {
    case DType::f64: return add_all<double>(call, l, index, source, base, out);
    case DType::i32: return add_all<uint32_t>(call, l, index, source, base, out);
    case DType::i64: return add_all<uint64_t>(call, l, index, source, base, out);
    case DType::u8: return add_all<uint8_t>(call, l, index, source, base, out);
    case DType::boolean: return add_all<bool>(call, l, index, source, base, out);
    case DType::bf16:
    case DType::f16: return add_narrow(call, l, index, source, base, out);
    default: return add_all<float>(call, l, index, source, base, out);
  }
}

}  // namespace outrace::cpu
