// One rectangle of C on one thread: how it is cut for the caches and handed to the epilogue. A part of gemm.cpp.
//
//   group       columns that share what is copied of A, and rows that share what is copied of B
//   chunk       of K
//   left block  rows whose part of A stays in L2
//   panel       W columns; its part of B stays in L1 while all rows of the left block pass
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "outrace/backend/cpu/gemm.h"
#include "outrace/backend/cpu/gemm_kernels.h"
#include "outrace/core/aligned.h"

namespace outrace::cpu {

// Up to 1000 or so a panel's whole K runs best (102 of 103.7 GFLOP/s on Zen 3); beyond, 512 x 16 f32 are a 32 KB panel,
// as large as L1. 512 is a multiple of every W, so that a chunk of a weight read as [out, in] starts with a panel.
constexpr int64_t kWholeK = 1024, kChunkK = 512;
inline int64_t chunk_of(int64_t k) { return k <= kWholeK ? k : kChunkK; }

// A's part of one left block shall stay in L2 beside the panel and C.
constexpr int64_t kLeftBytes = 256 << 10;
// Columns of a group: each number of A that is fetched or copied is used for so many. The segments of an epilogue are
// as long.
constexpr int64_t kGroupColumns = 512;
// The most bytes of unfinished sums that wait in scratch for the next chunk of K: a few reads and writes a chunk, so L3
// will do.
constexpr int64_t kSumBytes = 1 << 20;
// A row-major A is copied for more rows than this; any other from the first tile on; where at least so many columns use
// the copy.
constexpr int64_t kPackRows = 128, kPackColumns = 256;
// Up to so many rows, reading B where it lies beats a copy (f32, K 512: 93 against 82 GFLOP/s with 24 rows, even with
// 64).
constexpr int64_t kDirectRows = 48;
// Panels copied at a time: 256 consecutive bytes of each row of B are fetched together.
constexpr int64_t kPanelsCopied = 4;

// `total` cut into parts of about `size`, as even as multiples of `step` allow. About: a remainder of a few rows would
// fetch the panels once more for little.
inline int64_t even_part(int64_t total, int64_t size, int64_t step) {
  const int64_t parts = std::max<int64_t>(1, (total + size / 2) / size), even = (total + parts - 1) / parts;
  return (even + step - 1) / step * step;
}

// Memory of a thread that lives as long as it does, so that no call allocates after the first of its size.
template <int slot>
struct Scratch {
  AlignedArray<std::byte> bytes;
  int64_t size = 0;

  template <class T>
  static T* get(int64_t count) {
    static thread_local Scratch mine;
    const int64_t wanted = count * static_cast<int64_t>(sizeof(T));
    if (wanted > mine.size) {
      mine.bytes.reset();
      mine.size = 0;
      mine.bytes = aligned_array<std::byte>(wanted);
      mine.size = wanted;
    }
    return reinterpret_cast<T*>(mine.bytes.get());
  }
};
using LeftScratch = Scratch<0>;
using PanelScratch = Scratch<1>;
using ResultScratch = Scratch<2>;

enum class Right : uint8_t {
  strided,  // any matrix
  weight,   // a packed weight, its panels used where they lie
  turned,   // a packed weight [out = K, in = columns]
};

// What the loops compute: C[rows, columns] = A[rows, K] * B[K, columns], the columns in panels.
template <class T>
struct Product {
  int64_t rows, columns, k;
  const T* a;
  int64_t a_row, a_col;
  const T* b;
  int64_t b_row, b_col;
  Right right;
  bool packed_c;  // C leaves as the panels [rows][W] that it is computed in
  T* c;           // null: only the epilogue sees it
};

struct Rectangle {
  int64_t row, rows, panel, panels;
};

// One rectangle of C on one thread.
template <class T>
class RectangleTask {
 public:
  RectangleTask(const GemmCall<T>& call, const void* context, const Product<T>& p, int64_t batch)
      : kernels_(gemm_kernels<T>()),
        call_(call),
        context_(context),
        p_(p),
        batch_(batch),
        chunk_(chunk_of(p.k)),
        wide_(2 * kernels_.lanes),
        one_chunk_(p.k <= chunk_) {}

  void run(const Rectangle& area) {
    constexpr int64_t kSize = sizeof(T);
    const int64_t panels = even_part(area.panels, kGroupColumns / wide_, 1);
    const bool keeps_sums = p_.c == nullptr && !one_chunk_;
    const int64_t rows =
        keeps_sums ? even_part(area.rows, kSumBytes / (panels * wide_ * kSize), kernels_.tile_rows) : area.rows;
    left_rows_ = even_part(rows, kLeftBytes / (std::max<int64_t>(chunk_, 1) * kSize), kernels_.tile_rows);
    packed_a_ = p_.k > 0 && panels * wide_ >= kPackColumns && area.rows > (p_.a_col == 1 ? kPackRows : 2);
    direct_b_ = p_.right == Right::strided && p_.b_col == 1 && pays_to_read_in_place(area.rows);
    for (int64_t row = 0; row < area.rows; row += rows)
      for (int64_t panel = 0; panel < area.panels; panel += panels)
        group({area.row + row, std::min(rows, area.rows - row), area.panel + panel,
               std::min(panels, area.panels - panel)});
  }

 private:
  // With strides of whole KB the rows of B fall into few sets of L1, and only the first tile finds them there.
  bool pays_to_read_in_place(int64_t rows) const {
    return rows <= (p_.b_row * static_cast<int64_t>(sizeof(T)) % 1024 == 0 ? kernels_.tile_rows : kDirectRows);
  }

  // Rows and panels that share one set of right panels; all chunks of K.
  void group(const Rectangle& g) {
    int64_t k = 0;
    do {
      const int64_t count = std::min(chunk_, p_.k - k);
      for (int64_t row = 0; row < g.rows; row += left_rows_)
        left_block(g, row, std::min(left_rows_, g.rows - row), k, count);
      k += count;
    } while (k < p_.k);
  }

  // Rows of the group whose part of A stays in L2.
  void left_block(const Rectangle& g, int64_t row, int64_t rows, int64_t k, int64_t count) {
    const int64_t first_column = g.panel * wide_, columns = std::min(g.panels * wide_, p_.columns - first_column);
    const bool last = k + count == p_.k;
    GemmSweep<T> s;
    s.a = p_.a + (g.row + row) * p_.a_row + k * p_.a_col;
    s.a_row = p_.a_row;
    s.a_col = p_.a_col;
    s.packed_a = packed_a_;
    s.k = count;
    s.add = k > 0;
    if (packed_a_) {
      T* packed = LeftScratch::get<T>(rows * count + kernels_.tile_rows);
      kernels_.pack_rows(s.a, s.a_row, s.a_col, rows, count, packed);
      s.a = packed;
    }
    T* c = nullptr;
    int64_t c_row = p_.columns;
    if (p_.c != nullptr) {
      c = p_.packed_c ? p_.c : p_.c + (g.row + row) * p_.columns + first_column;
    } else if (p_.packed_c) {
      c = ResultScratch::get<T>(one_chunk_ ? kGemmBlock : g.rows * columns);
    } else {
      c = ResultScratch::get<T>((one_chunk_ ? left_rows_ : g.rows) * columns) + (one_chunk_ ? 0 : row * columns);
      c_row = columns;
    }
    for (int64_t panel = g.panel; panel < g.panel + g.panels;) {
      s.width = std::min(wide_, p_.columns - panel * wide_);
      s.vectors = padded(s.width) == wide_ ? 2 : 1;
      set_panel(s, g, panel, row == 0, k);
      if (p_.packed_c) {
        packed_panel(s, g, panel, row, rows, c, last);
        ++panel;
        continue;
      }
      const int together = panels_at_once(rows);
      if (together > 1 && panel + together <= g.panel + g.panels && (panel + together) * wide_ <= p_.columns) {
        s.vectors = 2 * together;
        s.width = together * wide_;
      }
      s.rows = rows;
      s.c = c + (panel - g.panel) * wide_;
      s.c_row = c_row;
      kernels_.sweep(s);
      panel += (s.vectors + 1) / 2;
    }
    if (p_.packed_c || !last || call_.epilogue == nullptr) return;
    const int64_t block = std::max<int64_t>(1, kGemmBlock / columns);
    for (int64_t r = 0; r < rows; r += block)
      call_.epilogue(context_, {c + r * c_row, c_row, (g.row + row + r) * p_.columns + first_column, p_.columns,
                                std::min(block, rows - r), columns, batch_});
  }

  int64_t block_rows(int64_t width) const { return kGemmBlock / width / kernels_.tile_rows * kernels_.tile_rows; }

  // Rows of one panel of a packed result, in blocks that lie consecutively in it.
  void packed_panel(GemmSweep<T>& s, const Rectangle& g, int64_t panel, int64_t row, int64_t rows, T* c, bool last) {
    const int64_t step = call_.epilogue != nullptr ? block_rows(s.width) : rows;
    const T* a = s.a;
    const int64_t start = panel * wide_ * p_.rows + (g.row + row) * s.width;
    s.c_row = s.width;
    for (int64_t r = 0; r < rows; r += step) {
      s.rows = std::min(step, rows - r);
      s.a = a + r * (s.packed_a ? s.k : s.a_row);
      const int64_t index = start + r * s.width;
      if (p_.c != nullptr)
        s.c = c + index;
      else
        s.c = one_chunk_ ? c : c + (panel - g.panel) * wide_ * g.rows + (row + r) * s.width;
      kernels_.sweep(s);
      if (last && call_.epilogue != nullptr)
        call_.epilogue(context_, {s.c, s.rows * s.width, index, s.rows * s.width, 1, s.rows * s.width, batch_});
    }
    s.a = a;
  }

  // Where the panel of s lies: in place if it can be read as it is, else in a copy, made for the group's first rows and
  // kept for the others.
  void set_panel(GemmSweep<T>& s, const Rectangle& g, int64_t panel, bool first, int64_t k) {
    const int64_t column = panel * wide_;
    const bool in_place = p_.right == Right::weight || direct_b_;
    s.panel_row = padded(s.width);
    if (s.width == s.panel_row && p_.right == Right::weight) {
      s.panel = p_.b + column * p_.k + k * s.width;
      s.panel_step = wide_ * p_.k;
      return;
    }
    if (s.width == s.panel_row && direct_b_) {
      s.panel = p_.b + k * p_.b_row + column * p_.b_col;
      s.panel_row = p_.b_row;
      s.panel_step = wide_;
      return;
    }
    const bool keep = g.rows > left_rows_;
    const int64_t together = in_place ? 1 : std::min(kPanelsCopied, g.panels);
    const int64_t slots = keep && !in_place ? g.panels : together, slot = (panel - g.panel) % slots;
    s.panel_step = s.k * wide_;
    T* to = PanelScratch::get<T>(slots * s.panel_step) + slot * s.panel_step;
    s.panel = to;
    if (first && slot % together == 0) copy_panels(panel, std::min(together, g.panel + g.panels - panel), k, s.k, to);
  }

  void copy_panels(int64_t panel, int64_t panels, int64_t k, int64_t count, T* to) {
    const int64_t column = panel * wide_, columns = std::min(panels * wide_, p_.columns - column), step = count * wide_;
    if (p_.right == Right::weight)  // a last, narrow panel
      return kernels_.pack_panels(p_.b + column * p_.k + k * columns, columns, 1, count, columns, to, step);
    if (p_.right == Right::strided)
      return kernels_.pack_panels(p_.b + k * p_.b_row + column * p_.b_col, p_.b_row, p_.b_col, count, columns, to,
                                  step);
    for (int64_t done = 0; done < count; done += wide_) {
      const int64_t out = k + done, lanes = std::min(wide_, p_.k - out);  // a panel of the weight: [in][lanes]
      for (int64_t c = 0; c < columns; c += wide_) {
        const int64_t width = std::min(wide_, columns - c);
        kernels_.pack_panels(p_.b + out * p_.columns + (column + c) * lanes, 1, lanes, std::min(lanes, count - done),
                             width, to + c / wide_ * step + done * padded(width), step);
      }
    }
  }

  int64_t padded(int64_t width) const { return width > kernels_.lanes ? wide_ : kernels_.lanes; }

  const GemmKernels<T>& kernels_;
  const GemmCall<T>& call_;
  const void* context_;
  const Product<T>& p_;
  const int64_t batch_, chunk_, wide_;
  const bool one_chunk_;
  bool packed_a_ = false, direct_b_ = false;
  int64_t left_rows_ = 0;
};

}  // namespace outrace::cpu
