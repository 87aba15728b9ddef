// Runs compiled tile programs.
#include "outrace/backend/cpu/tile.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "outrace/backend/cpu/tile_code.h"
#include "outrace/core/aligned.h"
#include "outrace/core/error.h"
#include "outrace/core/thread.h"

namespace outrace::cpu {
namespace {

// A thread's scratch: cells, uniform values and slots of the program that ran last.
struct Scratch {
  char* memory = nullptr;
  int64_t bytes = 0;
  uint64_t owner = 0;  // the program whose fixed cells are in place
};
// Without a destructor, so that reading it costs no check whether it was constructed. grow_scratch owns the memory.
constinit thread_local Scratch thread_scratch;

[[gnu::noinline]] void grow_scratch(int64_t bytes) {
  thread_local AlignedArray<char> memory;
  memory = aligned_array<char>(bytes);
  thread_scratch = {.memory = memory.get(), .bytes = bytes, .owner = 0};
}

// One run of a program over some part of its space, on one thread.
class TileRun {
 public:
  TileRun(const TileCode& code, void* const* values, const ScalarValue* scalars, int64_t most_elements)
      : code_(code), values_(values), move_(*code.move) {
    if (thread_scratch.bytes < code.scratch_bytes) [[unlikely]]
      grow_scratch(code.scratch_bytes);
    Scratch& scratch = thread_scratch;
    cells_ = reinterpret_cast<char**>(scratch.memory);
    if (scratch.owner != code.id) place_fixed_cells(scratch);
    compute_uniforms(scalars, std::min(most_elements, code.tile_size));
  }

  // Results of these dense stores (bit k: the k-th) go past the caches.
  void stream(uint64_t stores) { streamed_ = stores; }

  void seek(int64_t index, const void* producer) {
    set_position(index);
    for (const TileCode::Dense& d : code_.dense_loads) cells_[d.cell] = address(d, index);
    for (const TileCode::Dense& d : code_.dense_stores) cells_[d.cell] = address(d, index);
    if (code_.producer_cell >= 0) cells_[code_.producer_cell] = const_cast<char*>(static_cast<const char*>(producer));
  }

  // To the row behind the one just run, without all that seek() and load steps do; false if it takes that.
  bool seek_next_row(const TileRows& rows) {
    if (rows.length > code_.tile_size) return false;  // then cells moved along the row
    const int inner = code_.rank - 1;
    if (!code_.strided.empty()) {
      const bool pointing = code_.loads_may_point && at_[inner] + rows.length <= code_.space[inner];
      if (!pointing || inner == 0 || rows.index_stride != code_.space[inner]) return false;
      if (++at_[inner - 1] == code_.space[inner - 1]) return false;
      for (const TileCode::Strided& s : code_.strided) cells_[s.cell] += s.strides[inner - 1] << s.size_log2;
    }
    for (const TileCode::Dense& d : code_.dense_loads) cells_[d.cell] += rows.index_stride * d.element_bytes;
    for (const TileCode::Dense& d : code_.dense_stores) cells_[d.cell] += rows.index_stride * d.element_bytes;
    if (code_.producer_cell >= 0) cells_[code_.producer_cell] += rows.producer_stride * code_.compute_bytes;
    return true;
  }
  void run_next_row(int64_t length) {
    for (const TileCode::Step& step : code_.steps)
      if (step.kind == TileCode::Step::Kind::compute) step.fn(cells_, step.operands.data(), length);
  }

  // The next `length` elements after seek(). keep_result: the result's tiles are put one behind another.
  void advance(int64_t length, bool keep_result) {
    while (length > 0) {
      const int64_t n = piece(length);
      run_tile(n);
      length -= n;
      if (length == 0) break;
      move_position(n);
      for (const TileCode::Dense& d : code_.dense_loads) cells_[d.cell] += n * d.element_bytes;
      for (const TileCode::Dense& d : code_.dense_stores) cells_[d.cell] += n * d.element_bytes;
      if (code_.producer_cell >= 0) cells_[code_.producer_cell] += n * code_.compute_bytes;
      if (keep_result) cells_[code_.result_cell] += n * code_.compute_bytes;
    }
  }

  // A block of `rows` along block_axis and `length` along the last axis, whose first element is `index`.
  void block(int64_t index, int64_t rows, int64_t length) {
    set_position(index);
    rows_ = rows;
    run_steps(rows * length, length);
    rows_ = 0;
  }

  const void* evaluate(int64_t length) {
    char* result = cells_[code_.result_cell];
    advance(length, code_.result == TileCode::Result::buffer);
    cells_[code_.result_cell] = result;
    for (const TileCode::Step& step : code_.result_steps) step.fn(cells_, step.operands.data(), length);
    return result;
  }

 private:
  void place_fixed_cells(Scratch& scratch) {
    scratch.owner = code_.id;
    char** cell = cells_;
    for (const int64_t offset : code_.scratch_cells) *cell++ = scratch.memory + offset;
    for (const int64_t& constant : code_.constants)
      *cell++ = const_cast<char*>(reinterpret_cast<const char*>(&constant));
  }

  void compute_uniforms(const ScalarValue* scalars, int64_t tile) {
    for (const TileCode::Scalar& s : code_.scalars) set_scalar(cells_[s.cell], scalars[s.scalar], s.integer);
    for (const TileCode::Dense& d : code_.uniform_loads) cells_[d.cell] = address(d, 0);
    for (const TileCode::Step& step : code_.uniform_steps) step.fn(cells_, step.operands.data(), 1);
    for (const TileCode::Step& step : code_.splat_steps) step.fn(cells_, step.operands.data(), tile);
  }

  void set_scalar(char* cell, ScalarValue value, bool integer) const {
    const auto put = [cell](auto x) { std::memcpy(cell, &x, sizeof x); };
    switch (code_.compute) {
      case DType::f32: return put(integer ? static_cast<float>(value.integer) : static_cast<float>(value.real));
      case DType::f64: return put(integer ? static_cast<double>(value.integer) : value.real);
      default: return put(integer ? value.integer : static_cast<int64_t>(value.real));
    }
  }

  char* address(const TileCode::Dense& d, int64_t index) const {
    return static_cast<char*>(values_[d.value]) + d.offset_bytes + index * d.element_bytes;
  }

  // How many of the next `length` elements the next tile takes.
  int64_t piece(int64_t length) const {
    if (!code_.cut_rows) return std::min(length, code_.tile_size);
    const int64_t left = std::min(length, code_.space[code_.rank - 1] - at_[code_.rank - 1]);
    if (left <= code_.tile_size) return left;
    // Tiles of a row are of about one size, in whole cache lines.
    constexpr int64_t kLine = 64;
    const int64_t tiles = (left + code_.tile_size - 1) / code_.tile_size;
    return std::min(code_.tile_size, ((left + tiles - 1) / tiles + kLine - 1) / kLine * kLine);
  }

  void run_tile(int64_t n) {
    if (streamed_ != 0) [[unlikely]]
      return run_streamed(n);
    run_steps(n, n);
  }

  // Like run_steps, but streamed results are written to slots and go from there to their arrays.
  void run_streamed(int64_t n) {
    const size_t stores = std::min<size_t>(code_.dense_stores.size(), 64);
    for (size_t k = 0; k < stores; ++k)
      if (streamed_ >> k & 1) std::swap(cells_[code_.dense_stores[k].cell], cells_[code_.stream_slots[k]]);
    run_steps(n, n);
    for (size_t k = 0; k < stores; ++k) {
      if (!(streamed_ >> k & 1)) continue;
      const TileCode::Dense& d = code_.dense_stores[k];
      std::swap(cells_[d.cell], cells_[code_.stream_slots[k]]);
      move_.stream(cells_[d.cell], cells_[code_.stream_slots[k]], n * d.element_bytes);
    }
  }

  void run_steps(int64_t n, int64_t length) {
    for (const TileCode::Step& step : code_.steps) {
      if (step.kind == TileCode::Step::Kind::compute) [[likely]] {
        step.fn(cells_, step.operands.data(), n);
      } else if (step.kind == TileCode::Step::Kind::load) {
        load(code_.strided[static_cast<size_t>(step.strided)], n, length);
      } else {
        store(code_.strided[static_cast<size_t>(step.strided)], n, length);
      }
    }
  }

  // Cell of the array that has elements as stored: the slot itself, or the staging slot.
  int16_t raw_cell(const TileCode::Strided& s) const { return s.convert != nullptr ? code_.staging_cell : s.slot; }

  void load(const TileCode::Strided& s, int64_t n, int64_t length) {
    char* array = static_cast<char*>(values_[s.value]);
    if (s.may_point) {
      if (n <= code_.space[code_.rank - 1] - at_[code_.rank - 1]) {
        cells_[s.cell] = array + (offset_of(s, at_) << s.size_log2);
        return;
      }
      cells_[s.cell] = cells_[s.slot];
    }
    const int16_t raw = raw_cell(s);
    char* slot = cells_[raw];
    walk(s, n, length, [&](int64_t offset, int64_t done, TileRectangle r) {
      move_.copy_rectangle[s.size_log2](slot + (done << s.size_log2), array + (offset << s.size_log2),
                                        {.rows = r.rows,
                                         .columns = r.columns,
                                         .from_row = r.from_row,
                                         .from_column = r.from_column,
                                         .to_row = r.columns,
                                         .to_column = 1});
    });
    if (s.convert != nullptr) convert(s.convert, s.slot, raw, n);
  }

  void store(const TileCode::Strided& s, int64_t n, int64_t length) {
    char* array = static_cast<char*>(values_[s.value]);
    const int16_t raw = s.convert != nullptr ? code_.staging_cell : s.cell;
    if (s.convert != nullptr) convert(s.convert, raw, s.cell, n);
    const char* slot = cells_[raw];
    walk(s, n, length, [&](int64_t offset, int64_t done, TileRectangle r) {
      move_.copy_rectangle[s.size_log2](array + (offset << s.size_log2), slot + (done << s.size_log2),
                                        {.rows = r.rows,
                                         .columns = r.columns,
                                         .from_row = r.columns,
                                         .from_column = 1,
                                         .to_row = r.from_row,
                                         .to_column = r.from_column});
    });
  }

  void convert(TileFn fn, int16_t to, int16_t from, int64_t n) {
    const int16_t operands[] = {to, from};
    fn(cells_, operands, n);
  }

  // The place of the next element on each axis; only strided arrays ask for it.
  void set_position(int64_t index) {
    if (code_.strided.empty()) return;
    for (int axis = code_.rank - 1; axis > 0; --axis) {
      const int64_t next = index / code_.space[axis];
      at_[axis] = index - next * code_.space[axis];
      index = next;
    }
    at_[0] = index;
  }
  void move_position(int64_t n) {
    if (code_.strided.empty()) return;
    at_[code_.rank - 1] += n;
    for (int axis = code_.rank - 1; axis > 0 && at_[axis] >= code_.space[axis]; --axis) {
      const int64_t carry = at_[axis] / code_.space[axis];
      at_[axis] -= carry * code_.space[axis];
      at_[axis - 1] += carry;
    }
  }
  int64_t offset_of(const TileCode::Strided& s, const std::array<int64_t, kMaxRank>& at) const {
    int64_t offset = s.offset;
    for (int axis = 0; axis < code_.rank; ++axis) offset += at[axis] * s.strides[axis];
    return offset;
  }

  // Calls visit(where in the array, elements before, rectangle) for the rectangles that make up the tile; from_row and
  // from_column are the array's strides.
  template <class Visit>
  void walk(const TileCode::Strided& s, int64_t n, int64_t length, Visit&& visit) const {
    std::array<int64_t, kMaxRank> at = at_;
    int64_t offset = offset_of(s, at);
    const int inner = code_.rank - 1;
    if (rows_ > 0) {
      visit(offset, 0,
            {.rows = rows_,
             .columns = length,
             .from_row = s.strides[code_.block_axis],
             .from_column = s.strides[inner],
             .to_row = 0,
             .to_column = 0});
      return;
    }
    for (int64_t done = 0; done < n;) {
      TileRectangle r{.rows = 1,
                      .columns = std::min(n - done, code_.space[inner] - at[inner]),
                      .from_row = 0,
                      .from_column = s.strides[inner],
                      .to_row = 0,
                      .to_column = 0};
      if (inner > 0 && r.columns == code_.space[inner]) {  // whole rows
        r.rows = std::min((n - done) / r.columns, code_.space[inner - 1] - at[inner - 1]);
        r.from_row = s.strides[inner - 1];
      }
      visit(offset, done, r);
      done += r.rows * r.columns;
      at[inner] += r.columns;
      if (inner == 0 || at[inner] < code_.space[inner]) continue;  // the tile ends here
      at[inner] = 0;
      at[inner - 1] += r.rows;
      for (int axis = inner - 1; axis > 0 && at[axis] == code_.space[axis]; --axis) {
        at[axis] = 0;
        ++at[axis - 1];
      }
      offset = offset_of(s, at);
    }
  }

  const TileCode& code_;
  void* const* values_;
  const TileMoveKernels& move_;
  char** cells_ = nullptr;
  std::array<int64_t, kMaxRank> at_{};
  int64_t rows_ = 0;  // of a block; 0: the tile is a run of elements
  uint64_t streamed_ = 0;
};

// Tasks of run_all: 16 K elements take 3 us or more, a task's share of a parallel_for under 1.
constexpr int64_t kTaskElements = 16 * 1024;

// Stores that would push much else out of the last cache are streamed, unless they overwrite what was just read.
uint64_t stores_to_stream(const TileCode& code, void* const* values) {
  uint64_t stores = 0;
  for (size_t k = 0; k < std::min<size_t>(code.dense_stores.size(), 64); ++k) {
    const TileCode::Dense& d = code.dense_stores[k];
    bool in_place = false;
    for (const TileCode::Dense& load : code.dense_loads)
      in_place |= static_cast<char*>(values[load.value]) + load.offset_bytes ==
                  static_cast<char*>(values[d.value]) + d.offset_bytes;
    if (!in_place && code.numel * d.element_bytes > code.stream_bytes) stores |= uint64_t{1} << k;
  }
  return stores;
}

void run_linear(const TileCode& code, void* const* values, const ScalarValue* scalars) {
  const uint64_t streamed = stores_to_stream(code, values);
  parallel_for((code.numel + kTaskElements - 1) / kTaskElements, [&](int64_t task) {
    const int64_t first = task * kTaskElements;
    const int64_t length = std::min(kTaskElements, code.numel - first);
    TileRun run(code, values, scalars, length);
    run.stream(streamed);
    run.seek(first, nullptr);
    run.advance(length, false);
    if (streamed != 0) code.move->fence();
  });
}

// Blocks of one tile each, side by side in squares: a square touches few enough pages of either array for the TLB.
// A 4000 x 4000 transpose with squares of 64: 5.5 GB/s, 256: 6.0, 512: 5.9.
void run_blocks(const TileCode& code, void* const* values, const ScalarValue* scalars) {
  constexpr int64_t kSquare = 256;
  const int inner = code.rank - 1, axis = code.block_axis;
  const int64_t rows = code.space[axis], columns = code.space[inner];
  const int64_t block_rows = std::min<int64_t>(rows, code.tile_size >= 1024 ? 32 : code.tile_size >= 256 ? 16 : 8);
  const int64_t block_columns = std::max<int64_t>(1, code.tile_size / block_rows);
  std::array<int64_t, kMaxRank> stride{};
  stride[inner] = 1;
  for (int i = inner - 1; i >= 0; --i) stride[i] = stride[i + 1] * code.space[i + 1];

  const int64_t down = (rows + kSquare - 1) / kSquare, across = (columns + kSquare - 1) / kSquare;
  const int64_t squares = code.numel / (rows * columns) * down * across;
  const int64_t squares_per_task =
      std::max<int64_t>(1, kTaskElements / (std::min(kSquare, rows) * std::min(kSquare, columns)));
  parallel_for((squares + squares_per_task - 1) / squares_per_task, [&](int64_t task) {
    TileRun run(code, values, scalars, code.tile_size);
    for (int64_t square = task * squares_per_task; square < std::min(squares, (task + 1) * squares_per_task);
         ++square) {
      const int64_t first_column = square % across * kSquare, last_column = std::min(columns, first_column + kSquare);
      const int64_t first_row = square / across % down * kSquare, last_row = std::min(rows, first_row + kSquare);
      int64_t start = 0;  // of the matrix that the square is part of
      int64_t rest = square / across / down;
      for (int i = inner - 1; i >= 0; --i) {
        if (i == axis) continue;
        start += rest % code.space[i] * stride[i];
        rest /= code.space[i];
      }
      for (int64_t column = first_column; column < last_column; column += block_columns)
        for (int64_t row = first_row; row < last_row; row += block_rows)
          run.block(start + row * stride[axis] + column, std::min(block_rows, last_row - row),
                    std::min(block_columns, last_column - column));
    }
  });
}

}  // namespace

TileKernel::TileKernel(std::unique_ptr<const TileCode> code) : code_(std::move(code)) {}
TileKernel::~TileKernel() = default;

std::unique_ptr<TileKernel> TileKernel::compile(const TileProgram& program, const TileOptions& options) {
  return std::unique_ptr<TileKernel>(new TileKernel(compile_tile(program, options)));
}

const std::string& TileKernel::description() const { return code_->description; }

void TileKernel::run(void* const* values, const ScalarValue* scalars, const void* producer, int64_t index,
                     int64_t length) const {
  run_rows(values, scalars, {.index = index, .length = length, .producer = producer});
}

void TileKernel::run_rows(void* const* values, const ScalarValue* scalars, const TileRows& rows) const {
  TileRun run(*code_, values, scalars, rows.length);
  const char* producer = static_cast<const char*>(rows.producer);
  for (int64_t row = 0; row < rows.rows; ++row) {
    if (row > 0 && run.seek_next_row(rows)) {
      run.run_next_row(rows.length);
      continue;
    }
    run.seek(rows.index + row * rows.index_stride, producer + row * rows.producer_stride * code_->compute_bytes);
    run.advance(rows.length, false);
  }
}

const void* TileKernel::evaluate(void* const* values, const ScalarValue* scalars, const void* producer, int64_t index,
                                 int64_t length) const {
  OUTRACE_ASSERT(code_->result != TileCode::Result::none && length <= kTileSize, code_->description, " ", length);
  TileRun run(*code_, values, scalars, length);
  run.seek(index, producer);
  return run.evaluate(length);
}

void TileKernel::run_all(void* const* values, const ScalarValue* scalars) const {
  if (code_->numel == 0) return;
  if (code_->block_axis >= 0)
    run_blocks(*code_, values, scalars);
  else
    run_linear(*code_, values, scalars);
}

}  // namespace outrace::cpu
