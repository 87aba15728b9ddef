// Register tiles of the dense product and the copies that feed them. One tile: up to 6 x 2 vectors of sums (AVX2, 16
// registers) or 8 x 2 (AVX-512); each step of K loads one row of the panel and broadcasts one number of each row of A.
#include <type_traits>

#include "outrace/backend/cpu/gemm_kernels.h"
#include "outrace/backend/cpu/simd_target.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "outrace/backend/cpu/gemm_simd.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace outrace::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;
using cpu::GemmSweep;

template <class T>
using Lanes = hn::ScalableTag<T>;

#if HWY_TARGET == HWY_AVX2
constexpr int kTileRows = 6;
#else
constexpr int kTileRows = 8;
#endif

// R rows by V vectors; V > 2 spans several panels.
template <class T, int R, int V>
HWY_INLINE void tile(const T* a, int64_t a_row, int64_t a_col, const GemmSweep<T>& s, T* c) {
  const Lanes<T> d;
  constexpr int64_t kLanes = hn::MaxLanes(Lanes<T>());
  hn::Vec<Lanes<T>> sum[R][V];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) sum[r][v] = hn::Zero(d);

  const T* b = s.panel;
  const T* row[R];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) row[r] = a + r * a_row;
  int64_t at = 0;
#pragma GCC unroll 2
  for (int64_t k = 0; k < s.k; ++k) {
    hn::Vec<Lanes<T>> right[V];
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) right[v] = hn::LoadU(d, b + v / 2 * s.panel_step + v % 2 * kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const auto left = hn::Set(d, row[r][at]);
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) sum[r][v] = hn::MulAdd(left, right[v], sum[r][v]);
    }
    at += a_col;
    b += s.panel_row;
  }

  if (s.width == V * kLanes) [[likely]] {
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) {
        T* to = c + r * s.c_row + v * kLanes;
        hn::StoreU(s.add ? hn::Add(hn::LoadU(d, to), sum[r][v]) : sum[r][v], d, to);
      }
    return;
  }
  // Masked stores take some 20 cycles each on AMD: the last, narrow panel goes through a small array.
  alignas(64) T full[R][V * kLanes];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) hn::Store(sum[r][v], d, full[r] + v * kLanes);
  for (int r = 0; r < R; ++r) {
    T* to = c + r * s.c_row;
    for (int64_t j = 0; j < s.width; ++j) to[j] = s.add ? to[j] + full[r][j] : full[r][j];
  }
}

// Calls f with `rows` (1 .. kTileRows) as a constant; with 0, nothing.
template <class F>
HWY_INLINE void with_rows(int64_t rows, const F& f) {
  switch (rows) {
    case 1: return f(std::integral_constant<int, 1>());
    case 2: return f(std::integral_constant<int, 2>());
    case 3: return f(std::integral_constant<int, 3>());
    case 4: return f(std::integral_constant<int, 4>());
    case 5: return f(std::integral_constant<int, 5>());
    case 6: return f(std::integral_constant<int, 6>());
#if HWY_TARGET != HWY_AVX2
    case 7: return f(std::integral_constant<int, 7>());
    case 8: return f(std::integral_constant<int, 8>());
#endif
  }
}

template <class T, int R>
HWY_NOINLINE void blocks_of(const GemmSweep<T>& s, int64_t first_row, int64_t count) {
  const int64_t a_row = s.packed_a ? 1 : s.a_row;
  const int64_t a_col = s.packed_a ? R : s.a_col;
  const T* a = s.a + first_row * (s.packed_a ? s.k : s.a_row);
  T* c = s.c + first_row * s.c_row;
  const int64_t a_step = R * (s.packed_a ? s.k : s.a_row);
  for (int64_t i = 0; i < count; ++i, a += a_step, c += R * s.c_row) {
    if (s.vectors == 1)
      tile<T, R, 1>(a, a_row, a_col, s, c);
    else if (s.vectors == 2)
      tile<T, R, 2>(a, a_row, a_col, s, c);
    else if constexpr (R <= 2)
      tile<T, R, 8 / R>(a, a_row, a_col, s, c);
  }
}

template <class T>
void sweep(const GemmSweep<T>& s) {
  const cpu::RowBlocks cut(s.rows, kTileRows);
  const int64_t done = cut.larger * (cut.small + 1);
  if (cut.larger > 0) with_rows(cut.small + 1, [&](auto r) { blocks_of<T, r>(s, 0, cut.larger); });
  with_rows(cut.small, [&](auto r) { blocks_of<T, r>(s, done, cut.blocks - cut.larger); });
}

// Copies of four (f32) or two (f64) numbers, 128 bits, which every target has: kSide x kSide squares are turned in
// registers.
template <class T>
using Square = hn::FixedTag<T, 16 / sizeof(T)>;
template <class T>
constexpr int kSide = 16 / sizeof(T);

template <class T, class D>
HWY_INLINE void turn(D d, hn::Vec<D> (&x)[kSide<T>]) {
  const auto a = hn::InterleaveLower(d, x[0], x[1]), b = hn::InterleaveUpper(d, x[0], x[1]);
  if constexpr (kSide<T> == 2) {
    x[0] = a;
    x[1] = b;
  } else {
    const hn::Repartition<double, D> pairs;
    const auto e = hn::InterleaveLower(d, x[2], x[3]), f = hn::InterleaveUpper(d, x[2], x[3]);
    x[0] = hn::BitCast(d, hn::InterleaveLower(pairs, hn::BitCast(pairs, a), hn::BitCast(pairs, e)));
    x[1] = hn::BitCast(d, hn::InterleaveUpper(pairs, hn::BitCast(pairs, a), hn::BitCast(pairs, e)));
    x[2] = hn::BitCast(d, hn::InterleaveLower(pairs, hn::BitCast(pairs, b), hn::BitCast(pairs, f)));
    x[3] = hn::BitCast(d, hn::InterleaveUpper(pairs, hn::BitCast(pairs, b), hn::BitCast(pairs, f)));
  }
}

// to[k][R] from R rows with consecutive k. The last square of each k may reach past R; the next k overwrites that.
template <class T, int R>
HWY_INLINE void pack_turned(const T* a, int64_t a_row, int64_t k_count, T* to) {
  const Square<T> d;
  constexpr int kPieces = (R + kSide<T> - 1) / kSide<T>;
  int64_t k = 0;
  for (; k + kSide<T> <= k_count; k += kSide<T>) {
    hn::Vec<Square<T>> x[kPieces][kSide<T>];
#pragma GCC unroll 4
    for (int p = 0; p < kPieces; ++p) {
#pragma GCC unroll 4
      for (int i = 0; i < kSide<T>; ++i) {
        const int r = p * kSide<T> + i;
        x[p][i] = r < R ? hn::LoadU(d, a + r * a_row + k) : hn::Zero(d);
      }
      turn<T>(d, x[p]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < kSide<T>; ++i)
#pragma GCC unroll 4
      for (int p = 0; p < kPieces; ++p) hn::StoreU(x[p][i], d, to + (k + i) * R + p * kSide<T>);
  }
  for (; k < k_count; ++k)
    for (int r = 0; r < R; ++r) to[k * R + r] = a[r * a_row + k];
}

// to[k][R] from R consecutive numbers: squares' rows, the last one shifted back so that it ends at R.
template <class T, int R>
HWY_INLINE void copy_row(const T* a, T* to) {
  const Square<T> d;
  if constexpr (R < kSide<T>) {
    for (int r = 0; r < R; ++r) to[r] = a[r];
  } else {
#pragma GCC unroll 4
    for (int r = 0; r + kSide<T> <= R; r += kSide<T>) hn::StoreU(hn::LoadU(d, a + r), d, to + r);
    if constexpr (R % kSide<T> != 0) hn::StoreU(hn::LoadU(d, a + R - kSide<T>), d, to + R - kSide<T>);
  }
}

// Eight k at a time through all blocks: cache lines of A hold rows of several blocks, and with strides of 4 KB the
// lines of more k than L1 has ways would push each other out.
template <class T, int R>
HWY_INLINE void pack_straight(const T* a, int64_t a_col, int64_t blocks, int64_t k_count, T* to) {
  constexpr int64_t kStep = 8;
  for (int64_t first = 0; first < k_count; first += kStep) {
    const int64_t last = first + kStep < k_count ? first + kStep : k_count;
    for (int64_t i = 0; i < blocks; ++i)
      for (int64_t k = first; k < last; ++k) copy_row<T, R>(a + i * R + k * a_col, to + (i * k_count + k) * R);
  }
}

template <class T, int R>
HWY_NOINLINE void pack_blocks_of(const T* a, int64_t a_row, int64_t a_col, int64_t blocks, int64_t k_count, T* to) {
  if (a_row == 1) return pack_straight<T, R>(a, a_col, blocks, k_count, to);
  for (int64_t i = 0; i < blocks; ++i, a += R * a_row, to += R * k_count) {
    if (a_col == 1) {
      pack_turned<T, R>(a, a_row, k_count, to);
    } else {
      for (int64_t k = 0; k < k_count; ++k)
        for (int r = 0; r < R; ++r) to[k * R + r] = a[r * a_row + k * a_col];
    }
  }
}

template <class T>
void pack_rows(const T* a, int64_t a_row, int64_t a_col, int64_t rows, int64_t k_count, T* packed) {
  const cpu::RowBlocks cut(rows, kTileRows);
  with_rows(cut.small + 1, [&](auto r) { pack_blocks_of<T, r>(a, a_row, a_col, cut.larger, k_count, packed); });
  const int64_t done = cut.larger * (cut.small + 1);
  with_rows(cut.small, [&](auto r) {
    pack_blocks_of<T, r>(a + done * a_row, a_row, a_col, cut.blocks - cut.larger, k_count, packed + done * k_count);
  });
}

// The same squares in vectors of up to 256 bits, two side by side: kSide k of kStrip columns.
template <class T>
using Strip = hn::CappedTag<T, 32 / sizeof(T)>;
template <class T>
constexpr int kStrip = hn::MaxLanes(Strip<T>());

// Columns [0, kStrip) at column stride `col`, kSide k each.
template <class T>
HWY_INLINE void turn_strip(const T* from, int64_t col, T* to, int64_t to_row) {
  const Strip<T> d;
  const Square<T> half;
  hn::Vec<Strip<T>> x[kSide<T>];
#pragma GCC unroll 4
  for (int i = 0; i < kSide<T>; ++i) {
    if constexpr (kStrip<T> == 2 * kSide<T>)
      x[i] = hn::Combine(d, hn::LoadU(half, from + (i + kSide<T>)*col), hn::LoadU(half, from + i * col));
    else
      x[i] = hn::LoadU(d, from + i * col);
  }
  turn<T>(d, x);
#pragma GCC unroll 4
  for (int i = 0; i < kSide<T>; ++i) hn::StoreU(x[i], d, to + i * to_row);
}

// A panel from columns that are consecutive in k, a cache line of each at a time: with strides of 4 KB, the lines of
// more columns than L1 has ways would push each other out.
template <class T>
void pack_panel_turned(const T* source, int64_t col, int64_t k_count, int64_t width, T* panel, int64_t padded) {
  constexpr int64_t kLine = 64 / sizeof(T);
  const int64_t even_width = width / kStrip<T> * kStrip<T>, even_k = k_count / kSide<T> * kSide<T>;
  for (int64_t first = 0; first < even_k; first += kLine) {
    const int64_t last = first + kLine < even_k ? first + kLine : even_k;
    for (int64_t j = 0; j < even_width; j += kStrip<T>)
      for (int64_t k = first; k < last; k += kSide<T>)
        turn_strip(source + j * col + k, col, panel + k * padded + j, padded);
  }
  for (int64_t k = even_width == padded ? even_k : 0; k < k_count; ++k) {
    for (int64_t j = k < even_k ? even_width : 0; j < width; ++j) panel[k * padded + j] = source[j * col + k];
    for (int64_t j = width; j < padded; ++j) panel[k * padded + j] = 0;
  }
}

template <class T>
int64_t padded_width(int64_t width) {
  constexpr int64_t kLanes = hn::MaxLanes(Lanes<T>());
  return width > kLanes ? 2 * kLanes : kLanes;
}

// to[0 .. padded) from `width` consecutive numbers and zeros.
template <class T>
HWY_INLINE void copy_padded(const T* from, int64_t width, T* to, int64_t padded) {
#if HWY_MEM_OPS_MIGHT_FAULT  // a masked load would touch what it hides
  for (int64_t j = 0; j < width; ++j) to[j] = from[j];
  for (int64_t j = width; j < padded; ++j) to[j] = 0;
#else
  const Lanes<T> d;
  constexpr int64_t kLanes = hn::MaxLanes(Lanes<T>());
  hn::StoreU(hn::MaskedLoad(hn::FirstN(d, width < kLanes ? width : kLanes), d, from), d, to);
  if (padded > kLanes) hn::StoreU(hn::MaskedLoad(hn::FirstN(d, width - kLanes), d, from + kLanes), d, to + kLanes);
#endif
}

// Panels side by side from rows of consecutive columns: whole cache lines that follow each other.
template <class T>
void pack_panels_straight(const T* source, int64_t row, int64_t k_count, int64_t columns, T* to, int64_t panel_step) {
  const Lanes<T> d;
  constexpr int64_t kLanes = hn::MaxLanes(Lanes<T>());
  const int64_t whole = columns / (2 * kLanes), rest = columns % (2 * kLanes), padded = padded_width<T>(rest);
  for (int64_t k = 0; k < k_count; ++k, source += row) {
    const T* from = source;
    T* panel = to + 2 * kLanes * k;
    for (int64_t p = 0; p < whole; ++p, from += 2 * kLanes, panel += panel_step) {
      hn::StoreU(hn::LoadU(d, from), d, panel);
      hn::StoreU(hn::LoadU(d, from + kLanes), d, panel + kLanes);
    }
    if (rest > 0) copy_padded(from, rest, to + whole * panel_step + padded * k, padded);
  }
}

template <class T>
void pack_panels(const T* source, int64_t row, int64_t col, int64_t k_count, int64_t columns, T* to,
                 int64_t panel_step) {
  if (col == 1) return pack_panels_straight(source, row, k_count, columns, to, panel_step);
  constexpr int64_t kWide = 2 * hn::MaxLanes(Lanes<T>());
  for (int64_t column = 0; column < columns; column += kWide, source += kWide * col, to += panel_step) {
    const int64_t width = columns - column < kWide ? columns - column : kWide, padded = padded_width<T>(width);
    if (row == 1) {
      pack_panel_turned(source, col, k_count, width, to, padded);
      continue;
    }
    for (int64_t k = 0; k < k_count; ++k) {
      for (int64_t j = 0; j < width; ++j) to[k * padded + j] = source[k * row + j * col];
      for (int64_t j = width; j < padded; ++j) to[k * padded + j] = 0;
    }
  }
}

// Panels as a weight keeps them: no padding.
template <class T>
void pack_weight(const T* plain, T* packed, int64_t out, int64_t in) {
  constexpr int64_t kWide = 2 * hn::MaxLanes(Lanes<T>());
  for (int64_t row = 0; row < out; row += kWide) {
    const int64_t width = out - row < kWide ? out - row : kWide;
    pack_panel_turned(plain + row * in, in, in, width, packed + row * in, width);
  }
}

constexpr cpu::GemmKernels<float> kF32 = {
    hn::MaxLanes(Lanes<float>()), kTileRows,          &sweep<float>, &pack_rows<float>,
    &pack_panels<float>,          &pack_weight<float>};
constexpr cpu::GemmKernels<double> kF64 = {
    hn::MaxLanes(Lanes<double>()), kTileRows,           &sweep<double>, &pack_rows<double>,
    &pack_panels<double>,          &pack_weight<double>};

}  // namespace
}  // namespace outrace::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace outrace::cpu {
template <>
const GemmKernels<float>& gemm_kernels<float>() {
  return OUTRACE_CHOOSE_TARGET(kF32);
}
template <>
const GemmKernels<double>& gemm_kernels<double>() {
  return OUTRACE_CHOOSE_TARGET(kF64);
}
}  // namespace outrace::cpu
#endif
