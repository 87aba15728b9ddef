// Elements become unsigned keys in the same order, inverted for a descending one, and travel with their position: in
// one word where key and position fit in 32 bits each, so that equal keys differ and any sort is stable. Short rows are
// sorted by comparison, longer ones by radix from the lowest digit, very long ones with several threads.
#include "outrace/backend/cpu/sort.h"

#include <bit>
#include <limits>
#include <utility>

#include "outrace/backend/cpu/axis.h"
#include "outrace/core/error.h"
#include "outrace/core/thread.h"

namespace outrace::cpu {
namespace {

constexpr int kDigitBits = 11;  // 2048 counters: 8 KB, in L1
constexpr int64_t kDigits = 1 << kDigitBits;
constexpr int64_t kRadixFrom = 400;        // below, counting takes longer than comparing
constexpr int64_t kPartFrom = 128 * 1024;  // elements of a part that a thread takes of one row
constexpr int64_t kMostParts = 32;
struct EntryScratch;
struct SwapScratch;
struct CountScratch;

template <int kBytes>
using Bits =
    std::conditional_t<kBytes == 1, uint8_t,
                       std::conditional_t<kBytes == 2, uint16_t, std::conditional_t<kBytes == 4, uint32_t, uint64_t>>>;

// In the order of the numbers.
template <class S>
Bits<sizeof(S)> key_of(S v) {
  using U = Bits<sizeof(S)>;
  constexpr U kTop = U(1) << (8 * sizeof(S) - 1);
  if constexpr (std::is_same_v<S, bool> || std::is_same_v<S, uint8_t>) {
    return static_cast<U>(v);
  } else if constexpr (std::is_integral_v<S>) {
    return static_cast<U>(static_cast<U>(v) ^ kTop);
  } else {
    const ComputeOf<S> number = static_cast<ComputeOf<S>>(v);
    if (is_nan(number)) return std::numeric_limits<U>::max();
    if (number == 0) return kTop;
    const U bits = std::bit_cast<U>(v);
    return static_cast<U>(bits & kTop ? ~bits : bits | kTop);
  }
}

// Key and position in one word.
struct Packed {
  uint64_t word;
  static constexpr int kKeyBits = 32;
  static Packed of(uint64_t key, int64_t at) { return {key << 32 | static_cast<uint64_t>(at)}; }
  uint64_t key() const { return word >> 32; }
  int64_t at() const { return static_cast<int64_t>(word & 0xffffffffu); }
  friend bool operator<(const Packed& a, const Packed& b) { return a.word < b.word; }
};

struct Wide {
  uint64_t bits;
  int64_t position;
  static constexpr int kKeyBits = 64;
  static Wide of(uint64_t key, int64_t at) { return {key, at}; }
  uint64_t key() const { return bits; }
  int64_t at() const { return position; }
  friend bool operator<(const Wide& a, const Wide& b) {
    return a.bits < b.bits || (a.bits == b.bits && a.position < b.position);
  }
};

template <class E, class S>
void read_entries(const S* x, bool descending, int64_t first, int64_t count, E* to) {
  using U = Bits<sizeof(S)>;
  const U flip = descending ? std::numeric_limits<U>::max() : U{0};
  for (int64_t i = 0; i < count; ++i) to[i] = E::of(static_cast<U>(key_of(x[first + i]) ^ flip), first + i);
}

int digit_of(uint64_t key, int digit) { return static_cast<int>(key >> (digit * kDigitBits) & (kDigits - 1)); }

// Sorts by radix; the result is where the return value points: `a` or `b`.
template <class E>
E* radix_sort(E* a, E* b, int64_t count, int key_bits) {
  const int digits = (key_bits + kDigitBits - 1) / kDigitBits;
  int64_t* counts = thread_memory<CountScratch, int64_t>(kDigits * digits);
  std::fill_n(counts, kDigits * digits, 0);
  for (int64_t i = 0; i < count; ++i)
    for (int d = 0; d < digits; ++d) ++counts[d * kDigits + digit_of(a[i].key(), d)];
  for (int d = 0; d < digits; ++d) {
    int64_t* of = counts + d * kDigits;
    if (of[digit_of(a[0].key(), d)] == count) continue;  // all alike
    int64_t before = 0;
    for (int64_t v = 0; v < kDigits; ++v) before += std::exchange(of[v], before);
    for (int64_t i = 0; i < count; ++i) b[of[digit_of(a[i].key(), d)]++] = a[i];
    std::swap(a, b);
  }
  return a;
}

// The same by parts of the row, each with counts of its own. Stable: parts write in their order.
template <class E>
E* parallel_radix_sort(E* a, E* b, int64_t count, int key_bits) {
  const int digits = (key_bits + kDigitBits - 1) / kDigitBits;
  const int64_t parts = std::clamp<int64_t>(count / kPartFrom, 1, kMostParts), each = ceil_div(count, parts);
  int64_t* counts = thread_memory<CountScratch, int64_t>(kDigits * parts);
  for (int d = 0; d < digits; ++d) {
    parallel_for(parts, [&](int64_t part) {
      int64_t* of = counts + part * kDigits;
      std::fill_n(of, kDigits, 0);
      for (int64_t i = part * each, end = std::min(i + each, count); i < end; ++i) ++of[digit_of(a[i].key(), d)];
    });
    int64_t before = 0;
    bool alike = false;
    for (int64_t v = 0; v < kDigits; ++v) {
      const int64_t start = before;
      for (int64_t part = 0; part < parts; ++part) before += std::exchange(counts[part * kDigits + v], before);
      alike = alike || before - start == count;
    }
    if (alike) continue;
    parallel_for(parts, [&](int64_t part) {
      int64_t* of = counts + part * kDigits;
      for (int64_t i = part * each, end = std::min(i + each, count); i < end; ++i)
        b[of[digit_of(a[i].key(), d)]++] = a[i];
    });
    std::swap(a, b);
  }
  return a;
}

template <class E, class S>
void sort_row(const S* x, bool descending, int64_t size, int64_t* out) {
  E* entries = thread_memory<EntryScratch, E>(size);
  read_entries(x, descending, 0, size, entries);
  if (size < kRadixFrom)
    std::sort(entries, entries + size);
  else
    entries = radix_sort(entries, thread_memory<SwapScratch, E>(size), size, 8 * sizeof(S));
  for (int64_t i = 0; i < size; ++i) out[i] = entries[i].at();
}

template <class E, class S>
void sort_long_row(const S* x, bool descending, int64_t size, int64_t* out) {
  // Too large to be kept for the next call.
  const AlignedArray<E> first_half = aligned_array<E>(size), second_half = aligned_array<E>(size);
  E* entries = first_half.get();
  const int64_t parts = ceil_div(size, kAxisTask);
  const auto by_parts = [&](auto&& fn) {
    parallel_for(parts, [&](int64_t part) { fn(part * kAxisTask, std::min((part + 1) * kAxisTask, size)); });
  };
  by_parts([&](int64_t first, int64_t last) { read_entries(x, descending, first, last - first, entries + first); });
  const E* sorted = parallel_radix_sort(entries, second_half.get(), size, 8 * sizeof(S));
  by_parts([&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) out[i] = sorted[i].at();
  });
}

// The first k of `count` entries in their order, at their front; the k-th stands last.
template <class E>
void select_front(E* entries, int64_t count, int64_t k) {
  if (k > 0 && k < count) std::nth_element(entries, entries + (k - 1), entries + count);
}

template <class E>
void write_selected(E* entries, int64_t k, Selection selection, int64_t* out) {
  if (selection == Selection::only_kth) {
    *out = entries[k - 1].at();
    return;
  }
  if (selection == Selection::sorted) std::sort(entries, entries + k);
  for (int64_t i = 0; i < k; ++i) out[i] = entries[i].at();
  if (selection == Selection::by_position) std::sort(out, out + k);
}

template <class E>
void select_row(E* entries, int64_t count, const TopKAttrs& a, int64_t* out) {
  select_front(entries, count, a.k);
  // nth_element leaves the k-th in its place; with k = count nothing was selected yet.
  if (a.selection == Selection::only_kth && a.k == count)
    std::nth_element(entries, entries + (count - 1), entries + count);
  write_selected(entries, a.k, a.selection, out);
}

// Room that the candidates for the first k of `count` need: all, or a few times k.
int64_t candidates_room(int64_t count, int64_t k) { return std::min(count, 2 * k + 64); }

// Leaves the first k of x[first .. first + count), and others perhaps, in `to`. Returns how many there are.
template <class E, class S>
int64_t collect_candidates(const S* x, bool largest, int64_t first, int64_t count, int64_t k, E* to) {
  const int64_t room = candidates_room(count, k);
  if (room == count) {
    read_entries(x, largest, first, count, to);
    return count;
  }
  // What comes behind k others already is left out at once.
  read_entries(x, largest, first, room, to);
  int64_t kept = k;
  std::nth_element(to, to + (k - 1), to + room);
  E limit = to[k - 1];
  for (int64_t i = first + room; i < first + count; ++i) {
    read_entries(x, largest, i, 1, to + kept);
    if (!(to[kept] < limit)) continue;
    if (++kept < room) continue;
    std::nth_element(to, to + (k - 1), to + room);
    limit = to[k - 1];
    kept = k;
  }
  return kept;
}

// Each part hands in its own first k.
template <class E, class S>
void select_long_row(const S* x, const TopKAttrs& a, int64_t size, int64_t* out) {
  const int64_t parts = ceil_div(size, kPartFrom), room = candidates_room(kPartFrom, a.k);
  const AlignedArray<E> memory = aligned_array<E>(parts * room);  // perhaps too large to be kept
  E* entries = memory.get();
  int64_t* kept = thread_memory<CountScratch, int64_t>(parts);
  parallel_for(parts, [&](int64_t part) {
    const int64_t first = part * kPartFrom, count = std::min(kPartFrom, size - first), k = std::min(a.k, count);
    E* own = entries + part * room;
    const int64_t found = collect_candidates(x, a.largest, first, count, k, own);
    select_front(own, found, k);
    kept[part] = k;
  });
  int64_t left = 0;
  for (int64_t part = 0; part < parts; ++part) {
    std::copy_n(entries + part * room, kept[part], entries + left);
    left += kept[part];
  }
  select_row(entries, left, a, out);
}

template <class E, class S>
void sort_rows(const S* x, bool descending, int64_t rows, int64_t size, int64_t* out) {
  if (size >= 2 * kPartFrom && rows < kMostParts) {
    for (int64_t r = 0; r < rows; ++r) sort_long_row<E>(x + r * size, descending, size, out + r * size);
    return;
  }
  const int64_t each = std::max<int64_t>(1, kAxisTask / 8 / size);
  parallel_for(ceil_div(rows, each), [&](int64_t task) {
    for (int64_t r = task * each, end = std::min(r + each, rows); r < end; ++r)
      sort_row<E>(x + r * size, descending, size, out + r * size);
  });
}

template <class E, class S>
void select_rows(const S* x, const TopKAttrs& a, int64_t rows, int64_t size, int64_t* out) {
  const int64_t width = a.selection == Selection::only_kth ? 1 : a.k;
  if (size >= 2 * kPartFrom && rows < kMostParts) {
    for (int64_t r = 0; r < rows; ++r) select_long_row<E>(x + r * size, a, size, out + r * width);
    return;
  }
  const int64_t each = std::max<int64_t>(1, kAxisTask / 8 / size);
  parallel_for(ceil_div(rows, each), [&](int64_t task) {
    for (int64_t r = task * each, end = std::min(r + each, rows); r < end; ++r) {
      E* entries = thread_memory<EntryScratch, E>(candidates_room(size, a.k));
      const int64_t found = collect_candidates(x + r * size, a.largest, 0, size, a.k, entries);
      select_row(entries, found, a, out + r * width);
    }
  });
}

// fn(Entry{}, S{}) with the narrowest entry that holds key and position.
template <class Fn>
void with_entry(DType dtype, int64_t size, const Fn& fn) {
  visit_dtype(dtype, [&](auto zero) {
    if (sizeof(zero) <= 4 && size <= std::numeric_limits<uint32_t>::max())
      fn(Packed{}, zero);
    else
      fn(Wide{}, zero);
  });
}

}  // namespace

void argsort(DType dtype, bool descending, const void* x, int64_t rows, int64_t size, int64_t* out) {
  if (rows == 0 || size == 0) return;
  with_entry(dtype, size, [&](auto entry, auto zero) {
    using S = decltype(zero);
    sort_rows<decltype(entry)>(static_cast<const S*>(x), descending, rows, size, out);
  });
}

void top_k(DType dtype, const TopKAttrs& attrs, const void* x, int64_t rows, int64_t size, int64_t* out) {
  if (rows == 0 || size == 0 || attrs.k == 0) return;
  OUTRACE_ASSERT(attrs.k <= size, "top ", attrs.k, " of ", size);
  with_entry(dtype, size, [&](auto entry, auto zero) {
    using S = decltype(zero);
    select_rows<decltype(entry)>(static_cast<const S*>(x), attrs, rows, size, out);
  });
}

}  // namespace outrace::cpu
