// How a reduction is cut. The axes are collapsed to outer (kept) x rows (reduced) x width (kept) x depth (reduced);
// outer and rows may each be several groups of axes that take turns in memory. The tree of one result, for every cut
// into tasks the same:
//   depth  blocks of kFoldBlock elements, joined pairwise;
//   rows   blocks of kRowBlock rows added in order, joined pairwise.
// Pairwise means as a binary counter does it: aligned pairs, pairs of pairs, ... and at the end what is left, from the
// right. A part of 2^k aligned blocks is a node of that tree, so parts can be computed by different threads and joined
// in the same way.
#include "outrace/backend/cpu/reduce.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>

#include "outrace/backend/cpu/reduce_kernels.h"
#include "outrace/backend/cpu/thread_memory.h"
#include "outrace/core/error.h"
#include "outrace/core/thread.h"

namespace outrace::cpu {
namespace {

constexpr int64_t kRowBlock = 32;
constexpr int64_t kStrip = 1024;  // columns a task works on together: 4 KB of partial sums, one page
static_assert(kStrip <= kTileSize && kFoldBlock <= kTileSize);
// Elements that are worth a task of their own: 256 KB, some 10 us, where waking the threads takes 1 to 5.
constexpr int64_t kTaskElements = 64 * 1024;
constexpr int64_t kMostTasks = 128;  // more are not split further; they feed 64 threads
// Narrower rows are read several as one, so that vectors are full: w columns as f * w with f a power of two.
constexpr int64_t kFoldedWidth = 128;

// Counts through groups of axes, the last one fastest.
struct Odometer {
  int rank = 0;
  std::array<int64_t, kMaxRank> size{}, stride{};
  int64_t count = 1;

  void push_front(int64_t n, int64_t step) {
    for (int i = rank++; i > 0; --i) size[i] = size[i - 1], stride[i] = stride[i - 1];
    size[0] = n;
    stride[0] = step;
    count *= n;
  }
  int64_t offset(int64_t index) const {
    int64_t sum = 0;
    for (int i = rank - 1; i > 0; --i, index /= size[i + 1]) sum += index % size[i] * stride[i];
    return rank > 0 ? sum + index * stride[0] : 0;
  }
};

struct Collapsed {
  Odometer outer, rows;
  int64_t width = 1, depth = 1;
};

Collapsed collapse(const Shape& space, int64_t axes) {
  Collapsed c;
  int64_t step = 1;  // elements of one index of the axis
  // Groups of neighbouring axes of one sort, from the last; the first may be depth, the next width.
  for (int axis = space.rank() - 1, group = 0; axis >= 0;) {
    const bool reduced = axes >> axis & 1;
    int64_t size = 1;
    for (; axis >= 0 && (space[axis] == 1 || (axes >> axis & 1) == reduced); --axis) size *= space[axis];
    if (size == 1) continue;
    if (group == 0 && reduced)
      c.depth = size;
    else if (c.width == 1 && !reduced && c.rows.rank == 0)
      c.width = size;
    else
      (reduced ? c.rows : c.outer).push_front(size, step);
    step *= size;
    ++group;
  }
  return c;
}

// Joins parts as a binary counter does. Parts lie in slots; the callback joins slot i + 1 into slot i.
class PairwiseSlots {
 public:
  int top() const { return top_; }  // the slot of the next part
  template <class Join>
  void push(Join&& join) {
    ++top_;
    for (uint64_t c = ++count_; (c & 1) == 0; c >>= 1) join(--top_ - 1);
  }
  template <class Join>
  void finish(Join&& join) {
    for (; top_ > 1; --top_) join(top_ - 2);
  }

 private:
  int top_ = 0;
  uint64_t count_ = 0;
};
constexpr int slots_for(int64_t parts) { return std::bit_width(static_cast<uint64_t>(parts)) + 1; }

struct TaskSlots;  // a task's memory
struct Partials;   // results that tasks share

Fold fold_of(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::max: return Fold::max;
    case ReduceKind::min: return Fold::min;
    case ReduceKind::prod: return Fold::prod;
    default: return Fold::sum;
  }
}

bool is_extreme(ReduceKind kind) { return kind == ReduceKind::max || kind == ReduceKind::min; }

template <class T>
class ReducerOf final : public Reducer {
 public:
  explicit ReducerOf(const ReduceCall& call);
  void run(void* const* values, const ScalarValue* scalars, const void* input, void* output) const override;

 private:
  struct Run;   // the pointers of one execution
  class Tiles;  // what a task has evaluated of the prologue

  void plan_tasks();
  void fill_empty(const Run& run) const;
  void run_task(const Run& run, int64_t task) const;
  void run_joins(const Run& run, int64_t task) const;
  void run_depth_task(const Run& run, int64_t task) const;
  // rows first .. last of one outer index, columns column .. + width, into slot 0 of `slots`.
  void fold_rows(Tiles& tiles, int64_t outer, int64_t first, int64_t last, int64_t column, int64_t width, T* result,
                 T* slots) const;
  void fold_depth(Tiles& tiles, int64_t index, int64_t width, T* result) const;
  T fold_blocks(Tiles& tiles, int64_t index, int64_t elements) const;
  void unfold(Tiles& tiles, int64_t outer, T* folded, T* result) const;
  void finish(const Run& run, int64_t index, int64_t count, T* results) const;
  T* result_place(const Run& run, int64_t index, T* otherwise) const {
    return direct_output_ ? static_cast<T*>(run.output) + index : otherwise;
  }
  void join(const T* from, T* into, int64_t width) const { kernels_.columns(from, 0, 1, width, into, false); }

  ReduceCall call_;
  const FoldKernels<T>& kernels_;
  std::unique_ptr<TileKernel> widen_;   // reads what is not dense or not of the type T, as a prologue
  std::unique_ptr<TileKernel> narrow_;  // converts results for storage
  const TileKernel* prologue_ = nullptr;
  bool direct_output_ = false;
  Collapsed c_;
  int64_t elements_ = 0;                      // one result's
  int64_t results_ = 0;                       // all
  int64_t fold_ = 1;                          // rows read as one
  int64_t left_rows_ = 0;                     // rows that do not fill one of those
  bool in_order_ = false;                     // outer, rows and width follow each other in memory
  int64_t strip_ = 1, strips_ = 1;            // columns of a task
  int64_t outer_step_ = 1, outer_parts_ = 1;  // outer indices of a task
  int64_t row_step_ = 1, row_parts_ = 1;      // rows of a task
  int64_t depth_step_ = 1, depth_parts_ = 1;  // elements of depth of a task; above one part only without rows
  int64_t slots_ = 1;                         // strips of scratch for the pairwise sum of a task's row blocks
};

template <class T>
struct ReducerOf<T>::Run {
  void* const* values;
  const ScalarValue* scalars;
  const T* input;  // null: tiles
  void* const* prologue_values;
  void* output;
  T* partials = nullptr;
};

// Elements of the space by index. Without a prologue a pointer into the input; with one, a tile that reaches ahead as
// far as the task will read without a gap, so that short rows share a tile.
template <class T>
class ReducerOf<T>::Tiles {
 public:
  Tiles(const TileKernel* prologue, const Run& run) : prologue_(prologue), run_(run) {}

  bool whole() const { return run_.input != nullptr; }
  // At least `need` elements (at most kTileSize) from `index` on; the task reads on until `end`.
  const T* read(int64_t index, int64_t need, int64_t end) {
    if (whole()) return run_.input + index;
    if (index < begin_ || index + need > end_) {
      const int64_t length = std::max(need, std::min(end - index, kTileSize) / need * need);
      tile_ = static_cast<const T*>(prologue_->evaluate(run_.prologue_values, run_.scalars, nullptr, index, length));
      begin_ = index;
      end_ = index + length;
    }
    return tile_ + (index - begin_);
  }
  // How many elements from `index` on are there after a read.
  int64_t ready(int64_t index) const { return whole() ? std::numeric_limits<int64_t>::max() : end_ - index; }
  // Other tile programs have run on this thread.
  void forget() { end_ = begin_ = 0; }
  // The task reads without a gap until this index, or, if 0, until the end of each run of rows.
  int64_t end = 0;

 private:
  const TileKernel* prologue_;
  const Run& run_;
  const T* tile_ = nullptr;
  int64_t begin_ = 0, end_ = 0;
};

template <class T>
ReducerOf<T>::ReducerOf(const ReduceCall& call)
    : call_(call), kernels_(fold_kernels<T>(fold_of(call.kind))), prologue_(call.prologue) {
  constexpr DType type = dtype_of<T>();
  OUTRACE_ASSERT(call.kind != ReduceKind::mean || is_float(type), "mean of integers");
  if (prologue_ == nullptr && (call.input != type || !is_contiguous(call.view.strides, call.space))) {
    TileProgram program;
    program.compute = type;
    program.space = call.space;
    TileLoad& load = program.loads.emplace_back();
    load.dtype = call.input;
    load.view = call.view;
    load.view.value = 0;
    program.result = 0;
    widen_ = TileKernel::compile(program);
    prologue_ = widen_.get();
  }
  results_ = elements_ = 1;
  for (int i = 0; i < call.space.rank(); ++i) (call.axes >> i & 1 ? elements_ : results_) *= call.space[i];
  direct_output_ = call.store && call.output == type;
  if (call.store && !direct_output_) {
    TileProgram program;
    program.compute = type;
    program.space = Shape{results_};
    TileLoad& load = program.loads.emplace_back();
    load.kind = TileLoad::Kind::producer;
    load.dtype = type;
    program.stores.push_back({.reg = 0, .view = {.value = 0, .strides = {1}}, .dtype = call.output});
    narrow_ = TileKernel::compile(program);
  }
  OUTRACE_ASSERT(!is_extreme(call.kind) || elements_ > 0 || results_ == 0, "an extreme of nothing");
  if (call.space.numel() > 0) plan_tasks();
}

template <class T>
void ReducerOf<T>::plan_tasks() {
  c_ = collapse(call_.space, call_.axes);
  in_order_ = c_.outer.rank <= 1 && c_.rows.rank <= 1;
  const int64_t outer = c_.outer.count;
  if (c_.depth == 1 && c_.rows.rank == 1) {
    int64_t fold = 1;
    while (2 * fold * c_.width <= kFoldedWidth && 2 * fold <= c_.rows.count) fold *= 2;
    fold_ = fold;
    left_rows_ = c_.rows.count % fold;
    c_.rows.count = c_.rows.size[0] = c_.rows.count / fold;
    c_.rows.stride[0] *= fold;
    c_.width *= fold;
  }
  const int64_t rows = c_.rows.count;
  // A strip of a row is at least a tile, for the prologue's sake, and at most what makes a task with all rows.
  strip_ = std::min(c_.width, kStrip);
  if (c_.depth > 1) {
    const int64_t enough = std::max(ceil_div(kTaskElements, rows * c_.depth), ceil_div(kStrip, c_.depth));
    strip_ = std::min(strip_, enough);
  }
  strips_ = ceil_div(c_.width, strip_);
  const int64_t task = strip_ * rows * c_.depth;
  if (strips_ == 1) outer_step_ = std::clamp<int64_t>(kTaskElements / task, 1, outer);
  outer_parts_ = ceil_div(outer, outer_step_);
  row_step_ = rows;
  depth_step_ = c_.depth;
  if (rows == 1) {
    depth_step_ = kFoldBlock;
    const auto parts = [&] { return ceil_div(c_.depth, depth_step_); };
    while (depth_step_ < c_.depth && (depth_step_ < kTaskElements || c_.width * parts() > kMostTasks)) depth_step_ *= 2;
    depth_parts_ = parts();
  } else if (outer_step_ == 1) {
    row_step_ = kRowBlock;
    const auto parts = [&] { return ceil_div(rows, row_step_); };
    while (row_step_ < rows &&
           (row_step_ * strip_ * c_.depth < kTaskElements || outer * strips_ * parts() > kMostTasks))
      row_step_ *= 2;
    row_step_ = std::min(row_step_, rows);
    row_parts_ = parts();
  }
  slots_ = slots_for(ceil_div(row_step_, kRowBlock));
}

template <class T>
void ReducerOf<T>::run(void* const* values, const ScalarValue* scalars, const void* input, void* output) const {
  if (results_ == 0) return;
  void* widened[] = {const_cast<void*>(input)};
  Run run{values, scalars, nullptr, widen_ ? widened : values, output};
  if (prologue_ == nullptr) run.input = static_cast<const T*>(input) + call_.view.offset;
  if (elements_ == 0) return fill_empty(run);
  if (depth_parts_ > 1) {
    run.partials = thread_memory<Partials, T>(c_.width * depth_parts_);
    parallel_for(c_.width * depth_parts_, [&](int64_t task) { run_depth_task(run, task); });
    // One result a column; there are at most kMostTasks.
    T* results = result_place(run, 0, thread_memory<TaskSlots, T>(c_.width));
    for (int64_t j = 0; j < c_.width; ++j) {
      T slots[64];
      slots[0] = T{0};
      PairwiseSlots pairs;
      const auto join_slots = [&](int slot) { join(slots + slot + 1, slots + slot, 1); };
      for (int64_t part = 0; part < depth_parts_; ++part) {
        slots[pairs.top()] = run.partials[j * depth_parts_ + part];
        pairs.push(join_slots);
      }
      pairs.finish(join_slots);
      results[j] = slots[0];
    }
    return finish(run, 0, c_.width, results);
  }
  if (row_parts_ > 1) run.partials = thread_memory<Partials, T>(c_.outer.count * row_parts_ * c_.width);
  parallel_for(outer_parts_ * row_parts_ * strips_, [&](int64_t task) { run_task(run, task); });
  if (row_parts_ > 1) parallel_for(c_.outer.count * strips_, [&](int64_t task) { run_joins(run, task); });
}

template <class T>
void ReducerOf<T>::fill_empty(const Run& run) const {
  for (int64_t i = 0; i < results_; i += kStrip) {
    const int64_t count = std::min(kStrip, results_ - i);
    T* results = result_place(run, i, thread_memory<TaskSlots, T>(kStrip));
    std::fill_n(results, count, call_.kind == ReduceKind::prod ? T{1} : T{0});
    finish(run, i, count, results);  // a mean becomes 0 / 0
  }
}

// Task order: outer, rows, strips; with one row part and few columns a task has several outer indices.
template <class T>
void ReducerOf<T>::run_task(const Run& run, int64_t task) const {
  const int64_t strip = task % strips_, row_part = task / strips_ % row_parts_;
  const int64_t outer_part = task / strips_ / row_parts_;
  const int64_t column = strip * strip_, width = std::min(strip_, c_.width - column);
  const int64_t first = row_part * row_step_, last = std::min(first + row_step_, c_.rows.count);
  // Results, slots, what depth leaves of one row or the sum of rows read as one.
  T* memory = thread_memory<TaskSlots, T>(kStrip + (slots_ + 1) * strip_);
  T* work = memory + kStrip;
  Tiles tiles(prologue_, run);
  if (row_parts_ > 1) {
    T* partial = run.partials + (outer_part * row_parts_ + row_part) * c_.width + column;
    if (in_order_ && strips_ == 1) tiles.end = c_.outer.offset(outer_part) + last * c_.width * c_.depth;
    return fold_rows(tiles, outer_part, first, last, column, width, partial, work);
  }
  const int64_t outer_first = outer_part * outer_step_;
  const int64_t outer_last = std::min(outer_first + outer_step_, c_.outer.count);
  const int64_t plain_width = c_.width / fold_;  // of the results
  const int64_t together = strips_ > 1 ? 1 : std::max<int64_t>(1, kStrip / plain_width);
  if (in_order_ && strips_ == 1) tiles.end = outer_last * elements_ * plain_width;
  for (int64_t o = outer_first; o < outer_last; o += together) {
    const int64_t until = std::min(o + together, outer_last);
    const int64_t index = o * plain_width + column;
    T* results = result_place(run, index, memory);
    for (int64_t i = o; i < until; ++i) {
      T* result = results + (i - o) * plain_width;
      T* folded = fold_ == 1 ? result : work + slots_ * strip_;
      fold_rows(tiles, i, first, last, column, width, folded, work);
      if (fold_ > 1) unfold(tiles, i, folded, result);
    }
    finish(run, index, strips_ > 1 ? width : (until - o) * plain_width, results);
    tiles.forget();
  }
}

template <class T>
void ReducerOf<T>::run_joins(const Run& run, int64_t task) const {
  const int64_t strip = task % strips_, outer = task / strips_;
  const int64_t column = strip * strip_, width = std::min(strip_, c_.width - column);
  T* memory = thread_memory<TaskSlots, T>(kStrip + (slots_for(row_parts_) + 1) * strip_);
  T* slots = memory + kStrip;
  PairwiseSlots pairs;
  const auto join_slots = [&](int slot) { join(slots + (slot + 1) * strip_, slots + slot * strip_, width); };
  for (int64_t part = 0; part < row_parts_; ++part) {
    const T* partial = run.partials + (outer * row_parts_ + part) * c_.width + column;
    std::copy_n(partial, width, slots + pairs.top() * strip_);
    pairs.push(join_slots);
  }
  pairs.finish(join_slots);
  const int64_t plain_width = c_.width / fold_;
  const int64_t index = outer * plain_width + column;
  T* results = result_place(run, index, memory);
  Tiles tiles(prologue_, run);
  if (fold_ > 1)
    unfold(tiles, outer, slots, results);
  else
    std::copy_n(slots, width, results);
  finish(run, index, fold_ > 1 ? plain_width : width, results);
}

template <class T>
void ReducerOf<T>::run_depth_task(const Run& run, int64_t task) const {
  const int64_t row = task / depth_parts_, part = task % depth_parts_;
  const int64_t begin = part * depth_step_, end = std::min(begin + depth_step_, c_.depth);
  Tiles tiles(prologue_, run);
  run.partials[task] = fold_blocks(tiles, row * c_.depth + begin, end - begin);
}

template <class T>
void ReducerOf<T>::fold_rows(Tiles& tiles, int64_t outer, int64_t first, int64_t last, int64_t column, int64_t width,
                             T* result, T* slots) const {
  const int64_t unit = c_.width * c_.depth;  // elements of a whole row
  const int64_t origin = c_.outer.offset(outer) + column * c_.depth;
  if (c_.rows.count == 1) {
    if (c_.depth > 1) return fold_depth(tiles, origin, width, result);
    return kernels_.columns(tiles.read(origin, width, origin + width), unit, 1, width, result, true);
  }
  // Rows of the fastest group lie at one distance; others take turns with kept axes.
  const int64_t run_rows = c_.rows.size[c_.rows.rank - 1], stride = c_.rows.stride[c_.rows.rank - 1];
  T* row = slots + slots_ * strip_;
  PairwiseSlots pairs;
  const auto slot = [&](int i) { return i == 0 ? result : slots + (i - 1) * strip_; };
  const auto join_slots = [&](int i) { join(slot(i + 1), slot(i), width); };
  for (int64_t block = first; block < last; block += kRowBlock) {
    const int64_t block_end = std::min(block + kRowBlock, last);
    T* acc = slot(pairs.top());
    for (int64_t r = block; r < block_end;) {
      const int64_t run = std::min(block_end - r, run_rows - r % run_rows);
      int64_t index = origin + c_.rows.offset(r);
      int64_t end = tiles.end;
      if (end == 0 && strips_ == 1 && stride == unit) end = index + (run_rows - r % run_rows) * unit;
      for (int64_t left = run; left > 0;) {
        int64_t taken = 1;
        if (c_.depth > 1) {
          fold_depth(tiles, index, width, r == block && left == run ? acc : row);
          if (r != block || left != run) join(row, acc, width);
        } else {
          const T* x = tiles.read(index, width, std::max(end, index + width));
          if (tiles.whole())
            taken = left;
          else if (stride == width)
            taken = std::min(left, tiles.ready(index) / width);
          kernels_.columns(x, stride, taken, width, acc, r == block && left == run);
        }
        index += taken * stride;
        left -= taken;
      }
      r += run;
    }
    pairs.push(join_slots);
  }
  pairs.finish(join_slots);
}

// `width` rows of depth elements each, back to back from `index` on.
template <class T>
void ReducerOf<T>::fold_depth(Tiles& tiles, int64_t index, int64_t width, T* result) const {
  if (c_.depth > kFoldBlock) {
    for (int64_t j = 0; j < width; ++j) result[j] = fold_blocks(tiles, index + j * c_.depth, c_.depth);
    return;
  }
  const int64_t end = std::max(tiles.end, index + width * c_.depth);
  for (int64_t j = 0; j < width;) {
    const T* x = tiles.read(index + j * c_.depth, c_.depth, end);
    const int64_t count = std::min(width - j, tiles.ready(index + j * c_.depth) / c_.depth);
    kernels_.rows(x, c_.depth, count, result + j);
    j += count;
  }
}

template <class T>
T ReducerOf<T>::fold_blocks(Tiles& tiles, int64_t index, int64_t elements) const {
  T slots[64];
  slots[0] = T{0};
  PairwiseSlots pairs;
  const auto join_slots = [&](int slot) { join(slots + slot + 1, slots + slot, 1); };
  for (int64_t i = 0; i < elements; i += kFoldBlock) {
    const int64_t count = std::min(kFoldBlock, elements - i);
    kernels_.rows(tiles.read(index + i, count, index + elements), count, 1, slots + pairs.top());
    pairs.push(join_slots);
  }
  pairs.finish(join_slots);
  return slots[0];
}

// From the sum of rows read fold_ as one: adds the rows that were left over, then halves until one row remains.
template <class T>
void ReducerOf<T>::unfold(Tiles& tiles, int64_t outer, T* folded, T* result) const {
  if (left_rows_ > 0) {
    const int64_t left = left_rows_ * (c_.width / fold_);
    const int64_t index = c_.outer.offset(outer) + c_.rows.count * c_.width;
    join(tiles.read(index, left, std::max(tiles.end, index + left)), folded, left);
  }
  int64_t width = c_.width;
  for (int64_t fold = fold_; fold > 1; fold /= 2) {
    width /= 2;
    join(folded + width, folded, width);
  }
  std::copy_n(folded, width, result);
}

template <class T>
void ReducerOf<T>::finish(const Run& run, int64_t index, int64_t count, T* results) const {
  if constexpr (std::is_floating_point_v<T>) {
    if (call_.kind == ReduceKind::mean) {
      const T elements = static_cast<T>(elements_);
      for (int64_t i = 0; i < count; ++i) results[i] /= elements;
    }
  }
  if (narrow_) narrow_->run(&run.output, run.scalars, results, index, count);
  if (call_.epilogue) call_.epilogue->run(run.values, run.scalars, results, index, count);
}

}  // namespace

std::unique_ptr<Reducer> Reducer::prepare(const ReduceCall& call) {
  switch (call.input) {
    case DType::f64: return std::make_unique<ReducerOf<double>>(call);
    case DType::f32:
    case DType::bf16:
    case DType::f16: return std::make_unique<ReducerOf<float>>(call);
    default: return std::make_unique<ReducerOf<int64_t>>(call);
  }
}

}  // namespace outrace::cpu
