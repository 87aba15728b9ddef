// The innermost loops of gemm.cpp, chosen per instruction set. Nothing here knows of forms, threads or epilogues.
#pragma once
#include <cstdint>

namespace outrace::cpu {

// The most elements of one GemmBlock: 6 KB of f32, so that the tile, and the weight and two moments that Adam reads
// beside it, are in L1 together.
constexpr int64_t kGemmBlock = 1536;

// Letters: R rows, K the summed axis, W the columns of one panel. C[R, W] = A[R, K] * panel[K, W].
template <class T>
struct GemmSweep {
  const T* a;
  int64_t a_row, a_col;  // element strides of A; with packed_a they are unused and A is what pack_rows wrote
  bool packed_a;
  int64_t rows, k;
  const T* panel;      // [k][vectors * lanes], readable in full
  int64_t panel_row;   // from one k to the next
  int64_t panel_step;  // from one panel to the next, when several are taken at once
  int vectors;         // 1, 2, or 2 * panels_at_once(rows)
  T* c;
  int64_t c_row;
  int64_t width;  // columns of C to write, at most vectors * lanes
  bool add;       // C += instead of C =
};

// A tile of one or two rows has too few sums to keep two FMA units of latency 4 busy, unless it spans several panels.
inline int panels_at_once(int64_t rows) { return rows == 1 ? 4 : rows == 2 ? 2 : 1; }

template <class T>
struct GemmKernels {
  int64_t lanes;  // numbers in a vector; a panel has two vectors
  int64_t tile_rows;
  void (*sweep)(const GemmSweep<T>& s);
  // A[rows, k] into blocks of at most tile_rows rows, each [k][rows of the block]: the blocks of sweep. May write up to
  // tile_rows numbers behind the last block.
  void (*pack_rows)(const T* a, int64_t a_row, int64_t a_col, int64_t rows, int64_t k, T* packed);
  // Element (i, j) at source + i * row + j * col into panels [k][W], panel_step apart; the last one is [k][lanes] if
  // that is enough, with zeros behind its columns.
  void (*pack_panels)(const T* source, int64_t row, int64_t col, int64_t k, int64_t columns, T* to, int64_t panel_step);
  void (*pack_weight)(const T* plain, T* packed, int64_t out, int64_t in);
};

template <class T>
const GemmKernels<T>& gemm_kernels();
template <>
const GemmKernels<float>& gemm_kernels<float>();
template <>
const GemmKernels<double>& gemm_kernels<double>();

// The rows [first, first + count) of block `index` when `rows` are cut into blocks of at most tile_rows, as evenly as
// possible: 64 rows in tiles of 6 are nine blocks of 6 and two of 5.
struct RowBlocks {
  int64_t blocks, small, larger;  // the first `larger` blocks have small + 1 rows
  RowBlocks(int64_t rows, int64_t tile_rows)
      : blocks((rows + tile_rows - 1) / tile_rows), small(blocks ? rows / blocks : 0), larger(rows - blocks * small) {}
};

}  // namespace outrace::cpu
