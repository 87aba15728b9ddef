// One index an entry of the axis: rows of [outer, size, inner] are copied, or added up. Additions are sorted by their
// row first, stably, so that each row belongs to one task and gets its terms in order of position.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "outrace/backend/cpu/convert.h"
#include "outrace/backend/cpu/index.h"
#include "outrace/backend/cpu/index_read.h"
#include "outrace/backend/index_errors.h"
#include "outrace/core/error.h"
#include "outrace/core/thread.h"

namespace outrace::cpu {
namespace {

struct Rows {
  int64_t outer = 1, size = 1, inner = 1, n = 1;
};

Rows rows_of(const IndexCall& c) {
  const int axis = static_cast<int>(c.attrs.axis);
  Rows r;
  for (int i = 0; i < axis; ++i) r.outer *= c.array[i];
  r.size = c.array[axis];
  for (int i = axis + 1; i < c.array.rank(); ++i) r.inner *= c.array[i];
  r.n = c.index.numel();
  return r;
}

// Rows of one small element, copied by a plain assignment.
template <class U>
void copy_elements(const char* from, const int64_t* at, int64_t count, char* out) {
  const U* array = reinterpret_cast<const U*>(from);
  U* to = reinterpret_cast<U*>(out);
  for (int64_t i = 0; i < count; ++i) to[i] = array[at[i]];
}

void copy_rows(const char* from, const int64_t* at, int64_t count, int64_t bytes, char* out) {
  switch (bytes) {
    case 1: return copy_elements<uint8_t>(from, at, count, out);
    case 2: return copy_elements<uint16_t>(from, at, count, out);
    case 4: return copy_elements<uint32_t>(from, at, count, out);
    case 8: return copy_elements<uint64_t>(from, at, count, out);
    default: break;
  }
  for (int64_t i = 0; i < count; ++i) std::memcpy(out + i * bytes, from + at[i] * bytes, static_cast<size_t>(bytes));
}

// Positions of the index ordered by the row they name, those of one row in order.
struct ByRow {
  std::vector<int64_t> row, order;

  // The first place in `order` whose row is not below `r`.
  int64_t first_of(int64_t r) const {
    return std::partition_point(order.begin(), order.end(), [&](int64_t p) { return row[p] < r; }) - order.begin();
  }
};

ByRow sorted_by_row(const IndexCall& call, const Rows& r, const void* index) {
  IndexReader reader(call, index);
  ByRow s;
  s.row.resize(static_cast<size_t>(r.n));
  for (int64_t i = 0; i < r.n; i += kIndexPiece) reader.read(i, std::min(kIndexPiece, r.n - i), s.row.data() + i);
  reader.throw_if_bad();
  s.order.resize(s.row.size());
  if (r.size > 8 * r.n) {
    std::iota(s.order.begin(), s.order.end(), 0);
    std::stable_sort(s.order.begin(), s.order.end(), [&](int64_t a, int64_t b) { return s.row[a] < s.row[b]; });
    return s;
  }
  std::vector<int64_t> next(static_cast<size_t>(r.size) + 1, 0);
  for (int64_t i = 0; i < r.n; ++i) ++next[s.row[i] + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  for (int64_t i = 0; i < r.n; ++i) s.order[next[s.row[i]]++] = i;
  return s;
}

template <class T>
void add_row(T* sum, const T* term, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    // As in scatter_add.
    if constexpr (std::is_same_v<T, bool>)
      sum[i] = sum[i] || term[i];
    else
      sum[i] = static_cast<T>(sum[i] + term[i]);
  }
}

// The terms order[begin .. end) of one row.
template <class T>
void add_terms(const ByRow& s, int64_t begin, int64_t end, const void* source, int64_t inner, DType, void* out) {
  for (int64_t i = begin; i < end; ++i)
    add_row(static_cast<T*>(out), static_cast<const T*>(source) + s.order[i] * inner, inner);
}

// 16-bit floats are added in f32 and rounded once.
void add_terms_narrow(const ByRow& s, int64_t begin, int64_t end, const void* source, int64_t inner, DType dtype,
                      void* out) {
  constexpr int64_t kPiece = 512;
  for (int64_t c = 0; c < inner; c += kPiece) {
    float sum[kPiece], term[kPiece];
    const int64_t count = std::min(kPiece, inner - c);
    char* to = static_cast<char*>(out) + c * size_of(dtype);
    widen_to_f32(dtype, to, sum, count);
    for (int64_t i = begin; i < end; ++i) {
      widen_to_f32(dtype, static_cast<const char*>(source) + (s.order[i] * inner + c) * size_of(dtype), term, count);
      add_row(sum, term, count);
    }
    narrow_from_f32(dtype, sum, to, count);
  }
}

using AddTerms = void (*)(const ByRow&, int64_t, int64_t, const void*, int64_t, DType, void*);

AddTerms add_terms_of(DType dtype) {
  switch (dtype) {
    case DType::f64: return add_terms<double>;
    case DType::i32: return add_terms<uint32_t>;
    case DType::i64: return add_terms<uint64_t>;
    case DType::u8: return add_terms<uint8_t>;
    case DType::boolean: return add_terms<bool>;
    case DType::bf16:
    case DType::f16: return add_terms_narrow;
    default: return add_terms<float>;
  }
}

int64_t offset_at(DType dtype, const void* offsets, int64_t i) {
  return dtype == DType::i32 ? static_cast<const int32_t*>(offsets)[i] : static_cast<const int64_t*>(offsets)[i];
}

// The rows where bags begin, and where the last one ends.
std::vector<int64_t> bag_starts(DType dtype, const void* offsets, int64_t bags, int64_t rows) {
  std::vector<int64_t> starts;
  for (int64_t b = 0; b < bags; ++b) {
    const int64_t v = offset_at(dtype, offsets, b), least = b == 0 ? 0 : starts.back();
    if (v < least || v > rows || (b == 0 && v != 0)) fail(ErrorKind::value, bag_error(rows, b, v, least));
    starts.push_back(v);
  }
  if (bags == 0 && rows > 0) fail(ErrorKind::value, no_bags_error(rows));
  starts.push_back(rows);
  return starts;
}

template <class T>
void argmax_of(const T* x, int64_t width, const std::vector<int64_t>& starts, int64_t* best) {
  const auto bags = static_cast<int64_t>(starts.size()) - 1;
  const auto number = [](T v) {
    if constexpr (is_float(dtype_of<T>()) && sizeof(T) == 2)
      return static_cast<float>(v);
    else
      return v;
  };
  parallel_for(bags, [&](int64_t b) {
    int64_t* row = best + b * width;
    std::fill_n(row, width, starts[b] < starts[b + 1] ? starts[b] : 0);
    for (int64_t r = starts[b] + 1; r < starts[b + 1]; ++r)
      for (int64_t c = 0; c < width; ++c) {
        const auto now = number(x[row[c] * width + c]), next = number(x[r * width + c]);
        if (next > now || (next != next && now == now)) row[c] = r;
      }
  });
}

}  // namespace

void IndexReader::throw_if_bad() const {
  if (!bad_.load()) return;
  for (int64_t i = 0; i < call_.index.numel(); ++i) {
    const int64_t v = call_.index_dtype == DType::i32 ? static_cast<const int32_t*>(index_)[i]
                                                      : static_cast<const int64_t*>(index_)[i];
    if (v >= 0 && v < size_) continue;
    fail(ErrorKind::value, index_error(call_.op, v, call_.index, i, call_.attrs.axis, size_));
  }
}

void index_select(const IndexCall& call, const void* array, const void* index, void* out) {
  const Rows r = rows_of(call);
  IndexReader reader(call, index);
  const int64_t bytes = r.inner * size_of(call.dtype);
  if (r.outer == 0 || r.n == 0 || bytes == 0) {
    reader.check_all();
    return;
  }
  const char* from = static_cast<const char*>(array);
  char* to = static_cast<char*>(out);
  // Several rows a task, or several tasks a row.
  const int64_t rows = std::clamp<int64_t>(kIndexTaskBytes / bytes, 1, kIndexTask);
  const int64_t cuts = bytes > 2 * kIndexTaskBytes ? ceil_div(bytes, kIndexTaskBytes) : 1;
  const int64_t groups = ceil_div(r.n, rows);
  parallel_for(r.outer * groups * cuts, [&](int64_t task) {
    const int64_t o = task / (groups * cuts), group = task / cuts % groups, cut = task % cuts;
    int64_t at[kIndexPiece];
    const int64_t last = std::min((group + 1) * rows, r.n);
    for (int64_t i = group * rows; i < last; i += kIndexPiece) {
      const int64_t count = std::min(kIndexPiece, last - i);
      if (!reader.read(i, count, at)) return;
      char* part = to + (o * r.n + i) * bytes;
      const char* lines = from + o * r.size * bytes;
      if (cuts > 1) {
        const int64_t begin = cut * kIndexTaskBytes;
        std::memcpy(part + begin, lines + at[0] * bytes + begin,
                    static_cast<size_t>(std::min(kIndexTaskBytes, bytes - begin)));
      } else {
        copy_rows(lines, at, count, bytes, part);
      }
      for (int64_t k = 0; k < count && call.attrs.zeros; ++k)
        if (at[k] == call.attrs.padding) std::memset(part + k * bytes, 0, static_cast<size_t>(bytes));
    }
  });
  reader.throw_if_bad();
}

void IndexReader::check_all() {
  int64_t at[kIndexPiece];
  for (int64_t i = 0; i < call_.index.numel(); i += kIndexPiece)
    read(i, std::min(kIndexPiece, call_.index.numel() - i), at);
  throw_if_bad();
}

void index_add(const IndexCall& call, const void* index, const void* source, const void* base, void* out) {
  const Rows r = rows_of(call);
  const ByRow s = sorted_by_row(call, r, index);
  if (r.outer == 0 || r.size == 0 || r.inner == 0) return;
  const int64_t element = size_of(call.dtype), bytes = r.inner * element;
  const AddTerms add = add_terms_of(call.dtype);
  // As many rows a task as make, with their share of the terms, some kIndexTaskBytes.
  const int64_t most = std::max<int64_t>(1, kIndexTaskBytes / bytes);
  const int64_t rows = std::max<int64_t>(1, most * r.size / (r.size + r.n));
  const int64_t groups = ceil_div(r.size, rows);
  parallel_for(r.outer * groups, [&](int64_t task) {
    const int64_t o = task / groups, first = task % groups * rows, last = std::min(first + rows, r.size);
    char* to = static_cast<char*>(out) + o * r.size * bytes;
    const char* from = static_cast<const char*>(source) + o * r.n * bytes;
    const auto span = static_cast<size_t>((last - first) * bytes);
    if (base != nullptr)
      std::memcpy(to + first * bytes, static_cast<const char*>(base) + (o * r.size + first) * bytes, span);
    else
      std::memset(to + first * bytes, 0, span);
    const int64_t end = s.first_of(last);
    for (int64_t i = s.first_of(first); i < end;) {
      const int64_t row = s.row[s.order[i]], begin = i;
      while (i < end && s.row[s.order[i]] == row) ++i;
      if (row != call.attrs.padding) add(s, begin, i, from, r.inner, call.dtype, to + row * bytes);
    }
  });
}

void one_hot(const IndexCall& call, const void* index, void* out) {
  IndexReader reader(call, index);
  const int64_t count = call.index.numel(), classes = call.array.back(), element = size_of(call.dtype);
  visit_dtype(call.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T one = T(1.0f);
    const int64_t rows = std::max<int64_t>(1, kIndexTaskBytes / (classes * element));
    parallel_for(ceil_div(count, rows), [&](int64_t task) {
      int64_t at[kIndexPiece];
      const int64_t last = std::min((task + 1) * rows, count);
      for (int64_t i = task * rows; i < last; i += kIndexPiece) {
        const int64_t some = std::min(kIndexPiece, last - i);
        if (!reader.read(i, some, at)) return;
        T* to = static_cast<T*>(out) + i * classes;
        std::memset(static_cast<void*>(to), 0, static_cast<size_t>(some * classes * element));
        for (int64_t k = 0; k < some; ++k) to[k * classes + at[k]] = one;
      }
    });
  });
  reader.throw_if_bad();
}

void bag_of(DType dtype, const void* offsets, int64_t bags, int64_t* bag, int64_t rows) {
  const std::vector<int64_t> starts = bag_starts(dtype, offsets, bags, rows);
  for (int64_t b = 0; b < bags; ++b) std::fill(bag + starts[b], bag + starts[b + 1], b);
}

void bag_argmax(DType row_dtype, const void* x, int64_t rows, int64_t width, DType dtype, const void* offsets,
                int64_t bags, int64_t* best) {
  const std::vector<int64_t> starts = bag_starts(dtype, offsets, bags, rows);
  visit_dtype(row_dtype, [&](auto zero) {
    using T = decltype(zero);
    argmax_of(static_cast<const T*>(x), width, starts, best);
  });
}

}  // namespace outrace::cpu
