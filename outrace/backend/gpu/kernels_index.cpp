// Elements and rows that indices name are read, written, or marked in one_hot.
#include "outrace/backend/gpu/places.h"

namespace outrace::gpu {
namespace {

// From so many parts of a row on, a group copies it.
constexpr int64_t kTeamParts = 128;

// An array seen around an axis.
struct Around {
  int64_t outer = 1, size = 1, inner = 1;
};
Around around(const Shape& s, int64_t axis) {
  Around a;
  for (int i = 0; i < s.rank(); ++i) (i < axis ? a.outer : i == axis ? a.size : a.inner) *= s[i];
  return a;
}

// An array's strides with none along the axis: places that lack only the entry.
Strides beside(const Shape& s, int64_t axis) {
  Strides strides = contiguous_strides(s);
  strides[static_cast<int>(axis)] = 0;
  return strides;
}
int64_t step_of(const Shape& s, int64_t axis) { return contiguous_strides(s)[static_cast<int>(axis)]; }

// ---- reading ----

const char* read_why_not(const Call& call, const Plan& plan, const DeviceFacts&) {
  if (const char* why = whole_why_not(call, 2)) return why;
  return is_index(stored(call.operands[1], plan)) ? nullptr : kIndexTypes;
}

void make_gather(const Call& call, CallBuilder& b) {
  const int64_t axis = std::get<IndexAttrs>(call.attrs).axis, count = call.shape.numel();
  const Shape& array = call.operand_shapes[0];
  if (count == 0) return;
  KernelText text("index_read.cl");
  text.define("MOVED", moved_type(size_of(call.dtype))).define("I", stored(call.operands[1], b.plan()));
  text.define("ELEMENTS", 1).index(std::max(count, array.numel()) + kMovedSlack);
  std::vector<Arg> args{b.array(call.operands[0]), b.array(call.operands[1]), b.whole(call.result)};
  append_index_error(call, 1, axis, array[static_cast<int>(axis)], b, args);
  for (const int64_t v : {count, array[static_cast<int>(axis)], step_of(array, axis)}) args.push_back(Arg::i64(v));
  print_places(text, "PLACE", call.operand_shapes[1], beside(array, axis), args);
  b.launch(text, "gather", moved_grid(count), std::move(args));
}

// index_select, take, embedding.
void make_select(const Call& call, CallBuilder& b) {
  const auto& attrs = std::get<IndexAttrs>(call.attrs);
  const Around a = around(call.operand_shapes[0], attrs.axis);
  const int64_t n = call.operand_shapes[1].numel(), element = size_of(call.dtype);
  if (call.shape.numel() == 0) return launch_index_check(call, 1, attrs.axis, a.size, b);
  const int64_t unit = widest_unit({a.inner * element, call.operands[0].offset * element});
  const int64_t inner = a.inner * element / unit, count = a.outer * n * inner;
  const bool teams = inner >= kTeamParts && a.outer * n < kSmallSpace;
  KernelText text("index_read.cl");
  text.define("MOVED", moved_type(unit)).define("I", stored(call.operands[1], b.plan()));
  text.define("TEAMS", int64_t{teams}).index(std::max(count, a.outer * a.size * inner) + kMovedSlack);
  std::vector<Arg> args{b.array(call.operands[0]), b.array(call.operands[1]), b.whole(call.result)};
  append_index_error(call, 1, attrs.axis, a.size, b, args);
  for (const int64_t v : {count, a.size, attrs.zeros ? attrs.padding : -1}) args.push_back(Arg::i64(v));
  append_divisor(n, args);
  append_divisor(inner, args);
  b.launch(text, "select_rows", teams ? Grid{.groups = {a.outer * n, 1, 1}} : moved_grid(count), std::move(args));
}

const char* one_hot_why_not(const Call& call, const Plan& plan, const DeviceFacts&) {
  if (const char* why = whole_why_not(call, 1)) return why;
  return is_index(stored(call.operands[0], plan)) ? nullptr : kIndexTypes;
}

void make_one_hot(const Call& call, CallBuilder& b) {
  const int64_t count = call.shape.numel(), classes = call.shape.back();
  if (count == 0) return;
  KernelText text("index_read.cl");
  text.define("MOVED", moved_type(size_of(call.dtype))).define("I", stored(call.operands[0], b.plan()));
  text.index(count + kMovedSlack);
  std::vector<Arg> args{b.array(call.operands[0]), b.whole(call.result)};
  append_index_error(call, 0, std::get<IndexAttrs>(call.attrs).axis, classes, b, args);
  for (const int64_t v : {count, bits_of(1, call.dtype)}) args.push_back(Arg::i64(v));
  append_divisor(classes, args);
  b.launch(text, "one_hot", moved_grid(count), std::move(args));
}

// ---- writing ----

const char* scatter_why_not(const Call& call, const Plan& plan, const DeviceFacts&) {
  if (const char* why = whole_why_not(call, call.operands.size() == 3 ? 3 : 2)) return why;
  if (call.operand_shapes[0][static_cast<int>(std::get<IndexAttrs>(call.attrs).axis)] >= kSmallSpace)
    return "takes fewer than 2^31 indices along the axis";
  return is_index(stored(call.operands[0], plan)) ? nullptr : kIndexTypes;
}

void make_scatter(const Call& call, CallBuilder& b) {
  const int64_t axis = std::get<IndexAttrs>(call.attrs).axis;
  const Shape &index = call.operand_shapes[0], &array = call.shape;
  const int64_t count = index.numel(), places = array.numel(), size = array[static_cast<int>(axis)];
  if (places == 0 && count > 0) return launch_index_check(call, 0, axis, size, b);
  if (places == 0) return;
  const Around a = around(index, axis);
  const bool has_base = call.operands.size() == 3;
  KernelText text("scatter.cl");
  text.define("MOVED", moved_type(size_of(call.dtype))).define("I", stored(call.operands[0], b.plan()));
  text.define("HAS_BASE", int64_t{has_base}).index(std::max(count, places) + kMovedSlack);
  const Arg winner = b.scratch(places * 4);
  std::vector<Arg> find{b.array(call.operands[0]), winner};
  append_index_error(call, 0, axis, size, b, find);
  for (const int64_t v : {count, size, step_of(array, axis)}) find.push_back(Arg::i64(v));
  append_divisor(a.size, find);
  append_divisor(a.inner, find);
  print_places(text, "TARGET", index, beside(array, axis), find);
  std::vector<Arg> take{winner,
                        b.array(call.operands[1]),
                        has_base ? b.array(call.operands[2]) : winner,
                        b.whole(call.result),
                        Arg::i64(places),
                        Arg::i64(step_of(index, axis))};
  print_places(text, "SOURCE", array, beside(index, axis), take);
  b.launch(text, "clear_winners", {.groups = {groups_for(places), 1, 1}}, {winner, Arg::i64(places)});
  b.launch(text, "find_winners", {.groups = {groups_for(count), 1, 1}}, std::move(find));
  b.launch(text, "take_winners", moved_grid(places), std::move(take));
}

const KernelRow kRows[] = {
    {&kGather, "elements", read_why_not, make_gather},     {&kIndexSelect, "rows", read_why_not, make_select},
    {&kTake, "rows", read_why_not, make_select},           {&kEmbedding, "rows", read_why_not, make_select},
    {&kScatter, "winners", scatter_why_not, make_scatter}, {&kOneHot, "rows", one_hot_why_not, make_one_hot},
};

}  // namespace

std::span<const KernelRow> index_kernels() { return kRows; }

}  // namespace outrace::gpu
