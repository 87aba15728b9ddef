// index_add and scatter_add: each place's terms are added in order of position, whatever the device. Few indices are
// looked through by every place; many lines of scatter_add get an item each; all others are sorted by place first.
#include <bit>

#include "outrace/backend/gpu/places.h"

namespace outrace::gpu {
namespace {

constexpr int64_t kFew = 32;           // indices a line that each place looks through
constexpr int64_t kTile = kGroup * 8;  // positions that one group sorts; index_sort.cl
constexpr int64_t kBins = 16;          // of a pass
// scatter_add gives each line an item from so many lines on, if they are not much longer than they are many.
constexpr int64_t kLines = 256, kLongLines = 16;
// A group adds up a place where there are at least so many terms a place and at most so many places.
constexpr int64_t kTeamTerms = 256, kTeamPlaces = 4096;

// scatter_add of more than one axis: one place an element, so that the source is a row of single terms.
struct Terms {
  bool elements;
  int64_t outer = 1, size = 1, inner = 1, n = 1;
};

Terms terms_of(const Call& call) {
  const int64_t axis = std::get<IndexAttrs>(call.attrs).axis;
  Terms t{.elements = call.op == &kScatterAdd && call.shape.rank() > 1};
  t.n = call.operand_shapes[0].numel();
  if (t.elements) {
    t.size = call.shape.numel();
    return t;
  }
  for (int i = 0; i < call.shape.rank(); ++i) (i < axis ? t.outer : i == axis ? t.size : t.inner) *= call.shape[i];
  return t;
}

const char* add_why_not(const Call& call, const Plan& plan, const DeviceFacts&) {
  if (const char* why = whole_why_not(call, call.operands.size() == 3 ? 3 : 2)) return why;
  const Terms t = terms_of(call);
  if (t.n >= kSmallSpace || t.size >= kSmallSpace) return "takes fewer than 2^31 indices and entries";
  return is_index(stored(call.operands[0], plan)) ? nullptr : kIndexTypes;
}

int64_t entries_of(const Call& call) { return call.shape[static_cast<int>(std::get<IndexAttrs>(call.attrs).axis)]; }

KernelText add_text(const Call& call, CallBuilder& b, bool few) {
  const DType sum = compute_of(call.dtype);
  KernelText text("index_add.cl");
  text.define("T", call.dtype).define("ACC", sum).define("I", stored(call.operands[0], b.plan()));
  text.define("SUM(a, b)", sum == DType::i64 ? "(i64)((u64)(a) + (u64)(b))" : "((a) + (b))");
  text.define("HAS_BASE", int64_t{call.operands.size() == 3}).define("FEW", int64_t{few});
  return text.index(std::max(call.shape.numel(), call.operand_shapes[1].numel()) + kGroup);
}

Arg base_of(const Call& call, CallBuilder& b) { return b.array(call.operands[call.operands.size() == 3 ? 2 : 1]); }

// Whether each place can look through the indices of its line: few, and as many lines as the result has.
bool takes_few(const Call& call) {
  const int axis = static_cast<int>(std::get<IndexAttrs>(call.attrs).axis);
  const Shape& index = call.operand_shapes[0];
  if (!terms_of(call).elements) return index.numel() <= kFew;
  return index[axis] <= kFew && index.with(axis, call.shape[axis]) == call.shape;
}

void make_few(const Call& call, CallBuilder& b) {
  const auto& attrs = std::get<IndexAttrs>(call.attrs);
  const int axis = static_cast<int>(attrs.axis);
  launch_index_check(call, 0, axis, call.shape[axis], b);
  if (call.shape.numel() == 0) return;
  const bool elements = terms_of(call).elements;
  const Shape& index = call.operand_shapes[0];
  const int64_t n = elements ? index[axis] : index.numel();
  const Shape source = call.shape.with(axis, n);
  Strides source_at = contiguous_strides(source), index_at = elements ? source_at : Strides{};
  const int64_t source_step = source_at[axis];
  source_at[axis] = index_at[axis] = 0;
  KernelText text = add_text(call, b, true);
  std::vector<Arg> args{b.array(call.operands[0]), b.array(call.operands[1]), base_of(call, b), b.whole(call.result)};
  for (const int64_t v : {call.shape.numel(), attrs.padding, n, elements ? source_step : 1, source_step})
    args.push_back(Arg::i64(v));
  append_divisor(call.shape[axis], args);
  append_divisor(contiguous_strides(call.shape)[axis], args);
  print_places(text, "INDEX_AT", call.shape, index_at, args);
  print_places(text, "SOURCE_AT", call.shape, source_at, args);
  b.launch(text, "add_few", {.groups = {groups_for(call.shape.numel()), 1, 1}}, std::move(args));
}

bool takes_lines(const Call& call) {
  if (!terms_of(call).elements) return false;
  const int64_t n = call.operand_shapes[0][static_cast<int>(std::get<IndexAttrs>(call.attrs).axis)];
  const int64_t lines = n > 0 ? call.operand_shapes[0].numel() / n : 0;
  return lines >= kLines && n <= kLongLines * lines;
}

void make_lines(const Call& call, CallBuilder& b) {
  const int axis = static_cast<int>(std::get<IndexAttrs>(call.attrs).axis);
  const Shape& index = call.operand_shapes[0];
  const int64_t places = call.shape.numel(), n = index[axis], lines = index.numel() / n;
  const bool in_place = compute_of(call.dtype) == call.dtype;  // the result holds the sums while they grow
  const Arg sums = in_place ? b.whole(call.result) : b.scratch(places * size_of(compute_of(call.dtype)));
  KernelText text = add_text(call, b, false);
  text.define("LINES", 1);
  std::vector<Arg> args{b.array(call.operands[0]), b.array(call.operands[1]), sums};
  append_index_error(call, 0, axis, entries_of(call), b, args);
  const Strides target = contiguous_strides(call.shape), term = contiguous_strides(index);
  for (const int64_t v : {lines, n, entries_of(call), term[axis], target[axis]}) args.push_back(Arg::i64(v));
  print_places(text, "TARGET", index.with(axis, 1), target, args);
  print_places(text, "TERM", index.with(axis, 1), term, args);
  const Grid each_place{.groups = {groups_for(places), 1, 1}};
  b.launch(text, "start_sums", each_place, {base_of(call, b), sums, Arg::i64(places)});
  b.launch(text, "add_lines", {.groups = {groups_for(lines), 1, 1}}, std::move(args));
  if (!in_place) b.launch(text, "store_sums", each_place, {sums, b.whole(call.result), Arg::i64(places)});
}

struct Sorted {
  Arg keys, order, first;
};

Sorted launch_passes(const KernelText& text, Sorted from, int64_t n, int bits, CallBuilder& b) {
  const int64_t tiles = groups_for(n, kTile);
  Sorted to{b.scratch(n * 4), b.scratch(n * 4), from.first};
  const Arg sums = b.scratch(tiles * kBins * 4);
  const Grid grid{.groups = {tiles, 1, 1}};
  for (int shift = 0; shift < bits; shift += 4) {
    b.launch(text, "sort_count", grid, {from.keys, sums, Arg::i64(n), Arg::i32(shift)});
    b.launch(text, "sort_sums", {.groups = {1, 1, 1}}, {sums, Arg::i64(tiles * kBins)});
    b.launch(text, "sort_place", grid, {from.keys, from.order, sums, to.keys, to.order, Arg::i64(n), Arg::i32(shift)});
    std::swap(from, to);
  }
  return from;
}

// The positions of the call's indices sorted by the place they name, and where each place's begin.
Sorted launch_sort(const Call& call, const Terms& t, CallBuilder& b) {
  const int axis = static_cast<int>(std::get<IndexAttrs>(call.attrs).axis);
  Sorted from{b.scratch(t.n * 4), b.scratch(t.n * 4), b.scratch((t.size + 1) * 4)};
  const Arg places = Arg::i64(t.size);
  const int bits = std::bit_width(static_cast<uint64_t>(t.size));
  KernelText text("index_sort.cl");
  text.define("I", stored(call.operands[0], b.plan())).index(std::max(t.n, t.size) + kGroup);
  std::vector<Arg> key_args;
  if (t.elements) {
    Strides strides = contiguous_strides(call.shape);
    key_args.push_back(Arg::i64(strides[axis]));
    strides[axis] = 0;
    print_places(text, "TARGET", call.operand_shapes[0], strides, key_args);
    text.define("KEY(i, entry)", "(TARGET(i) + (INDEX)(entry) * (INDEX)step)");
    text.define("KEY_PARAMS", ", i64 step TARGET_PARAMS").define("KEY_ARGS", ", step TARGET_ARGS");
  } else {
    text.define("KEY(i, entry)", "(entry)").define("KEY_PARAMS", "").define("KEY_ARGS", "");
  }
  std::vector<Arg> args{b.array(call.operands[0])};
  append_index_error(call, 0, axis, entries_of(call), b, args);
  args.insert(args.end(), {from.keys, from.order, Arg::i64(t.n), Arg::i64(entries_of(call)), places});
  if (t.n <= kTile) args.push_back(Arg::i64(bits));
  args.insert(args.end(), key_args.begin(), key_args.end());
  if (t.n <= kTile) {
    b.launch(text, "sort_tile", {.groups = {1, 1, 1}}, std::move(args));
  } else {
    b.launch(text, "sort_keys", {.groups = {groups_for(t.n), 1, 1}}, std::move(args));
    from = launch_passes(text, from, t.n, bits, b);
  }
  b.launch(text, "find_first", {.groups = {groups_for(t.size + 1), 1, 1}},
           {from.keys, from.first, Arg::i64(t.n), places});
  return from;
}

void make_add(const Call& call, CallBuilder& b) {
  const auto& attrs = std::get<IndexAttrs>(call.attrs);
  if (takes_few(call)) return make_few(call, b);
  const Terms t = terms_of(call);
  const int64_t places = call.shape.numel();
  if (places == 0) return launch_index_check(call, 0, attrs.axis, entries_of(call), b);
  if (takes_lines(call)) return make_lines(call, b);
  const Sorted sorted = launch_sort(call, t, b);
  std::vector<Arg> args{sorted.first, sorted.order, b.array(call.operands[1]), base_of(call, b), b.whole(call.result)};
  for (const int64_t v : {places, attrs.padding, t.n}) args.push_back(Arg::i64(v));
  append_divisor(t.size, args);
  append_divisor(t.inner, args);
  const bool teams = t.n / t.size >= kTeamTerms && places <= kTeamPlaces;
  b.launch(add_text(call, b, false), teams ? "add_sorted_team" : "add_sorted",
           {.groups = {teams ? places : groups_for(places), 1, 1}}, std::move(args));
}

const KernelRow kRows[] = {
    {&kScatterAdd, "sorted", add_why_not, make_add},
    {&kIndexAdd, "sorted", add_why_not, make_add},
};

}  // namespace

std::span<const KernelRow> index_add_kernels() { return kRows; }

}  // namespace outrace::gpu
