// Order along the last axis: argsort, and the first k of an order.
#include <utility>

#include "outrace/backend/gpu/axis_cut.h"

namespace outrace::gpu {
namespace {

// Rows up to here count for each element what comes before it.
constexpr int64_t kRanked = 128;
// Positions below this share a word with keys of up to 32 bits.
constexpr int64_t kNarrowRow = (int64_t{1} << 32) - 1;

const char* order_why_not(const Call& call, const Plan&, const DeviceFacts&) { return whole_why_not(call, 1); }

// Rows in some memory: x, or entries that a pass left.
struct Source {
  Arg memory;
  int64_t count;
  int kind;  // of sort_tiles
};
// Where the last pass writes: ranks skip to keep - 1 as positions, or the first `count` entries.
struct Target {
  bool positions = true;
  int64_t skip = 0, keep = 0;
  Arg entries = {};
  int64_t count = 0;
};

class Order {
 public:
  Order(const Call& call, CallBuilder& b, bool descending)
      : b_(b), text_("sort.cl"), descending_(descending), result_(b.whole(call.result)) {
    const DType type = stored(call.operands[0], b.plan());
    const Shape& shape = call.operand_shapes[0];
    count_ = shape.back();
    rows_ = count_ == 0 ? 0 : shape.numel() / count_;
    wide_ = size_of(type) == 8 || count_ > kNarrowRow;
    tile_ = (wide_ ? 4 : 8) * kGroup;
    x_ = b.array(call.operands[0]);
    const bool is_signed = type == DType::i64 || type == DType::i32;
    text_.define("X", type).define("KEY_BITS", int64_t{8} * size_of(type)).define("WIDE", int64_t{wide_});
    text_.define("KIND", int64_t{is_float(type) ? 2 : is_signed ? 1 : 0});
    text_.define("INFINITE", type == DType::f64    ? "((u64)0x7ff << 52)"
                             : type == DType::f32  ? "((u64)0x7f800000)"
                             : type == DType::bf16 ? "((u64)0x7f80)"
                                                   : "((u64)0x7c00)");
  }

  int64_t rows() const { return rows_; }
  int64_t count() const { return count_; }
  int64_t tile() const { return tile_; }
  Source whole() const { return {x_, count_, 0}; }
  Arg entries(int64_t each) { return b_.scratch(rows_ * each * (wide_ ? 16 : 8)); }

  void rank(int64_t skip, int64_t keep) {
    b_.launch(text_, "rank_rows", {.groups = {groups_for(rows_ * count_), 1, 1}},
              {x_, result_, Arg::i64(rows_), Arg::i64(count_), Arg::i64(skip), Arg::i64(keep), Arg::i32(descending_)});
  }

  // The first `stride` entries of every tile.
  void sort_tiles(const Source& from, int64_t stride, const Target& to) {
    const int64_t tiles = groups_for(from.count, tile_);
    b_.launch(text_, "sort_tiles", {.groups = {rows_ * tiles, 1, 1}},
              {x_, from.memory, to.positions ? from.memory : to.entries, result_, Arg::i64(from.count), Arg::i64(tiles),
               Arg::i64(stride), Arg::i64(to.count), Arg::i64(to.skip), Arg::i64(to.keep), Arg::i32(from.kind),
               Arg::i32(to.positions), Arg::i32(descending_)});
  }

  void sort(const Source& from, const Target& to) {
    const int64_t n = from.count, tiles = groups_for(n, tile_);
    if (tiles == 1) return sort_tiles(from, to.positions ? tile_ : to.count, to);
    Arg runs = entries(n), other = entries(n);
    sort_tiles(from, tile_, {.positions = false, .entries = runs, .count = n});
    for (int64_t run = tile_; run < n; run *= 2) {
      const bool last = 2 * run >= n;
      const Target pass = last ? to : Target{.positions = false, .entries = other, .count = n};
      b_.launch(text_, "merge_runs", {.groups = {rows_ * tiles, 1, 1}},
                {runs, pass.positions ? other : pass.entries, result_, Arg::i64(n), Arg::i64(tiles), Arg::i64(run),
                 Arg::i64(pass.count), Arg::i64(pass.skip), Arg::i64(pass.keep), Arg::i32(pass.positions)});
      std::swap(runs, other);
    }
  }

  // Candidates: the first k of every tile, again and again, until they are one tile.
  Source candidates(int64_t k) {
    Source left = whole();
    while (left.count > tile_) {
      const int64_t fewer = groups_for(left.count, tile_) * k;
      const Arg kept = entries(fewer);
      sort_tiles(left, k, {.positions = false, .entries = kept, .count = fewer});
      left = {kept, fewer, 1};
    }
    return left;
  }

 private:
  CallBuilder& b_;
  KernelText text_;
  bool descending_, wide_ = false;
  int64_t rows_ = 0, count_ = 0, tile_ = 0;
  Arg x_, result_;
};

void make_argsort(const Call& call, CallBuilder& b) {
  Order order(call, b, std::get<SortAttrs>(call.attrs).descending);
  if (order.rows() == 0) return;
  if (order.count() <= kRanked) return order.rank(0, order.count());
  order.sort(order.whole(), {.keep = order.count()});
}

void make_top_k(const Call& call, CallBuilder& b) {
  const auto& a = std::get<TopKAttrs>(call.attrs);
  Order order(call, b, a.largest);
  if (order.rows() == 0 || a.k == 0) return;
  const bool by_position = a.selection == Selection::by_position;
  const int64_t skip = a.selection == Selection::only_kth ? a.k - 1 : 0;
  if (order.count() <= kRanked && !by_position) return order.rank(skip, a.k);
  // A few of each tile; where that would leave too many, all are sorted.
  const Source from = a.k <= order.tile() / 4 ? order.candidates(a.k) : order.whole();
  if (!by_position) return order.sort(from, {.skip = skip, .keep = a.k});
  const Arg kept = order.entries(a.k);
  order.sort(from, {.positions = false, .entries = kept, .count = a.k});
  order.sort({kept, a.k, 2}, {.keep = a.k});
}

const KernelRow kRows[] = {
    {&kArgsort, "merge", order_why_not, make_argsort},
    {&kTopK, "merge", order_why_not, make_top_k},
};

}  // namespace

std::span<const KernelRow> order_kernels() { return kRows; }

}  // namespace outrace::gpu
