// Variance along an axis, and counts.
#include <algorithm>

#include "outrace/backend/gpu/axis_cut.h"
#include "outrace/core/error.h"

namespace outrace::gpu {
namespace {

// A part of a line has whole blocks (moments.cl).
constexpr int64_t kTeamPart = 32 * kGroup, kItemPart = 32, kFewItems = 16 * 1024;
constexpr int64_t kLongest = 8;  // bytes of a number of the compute type

const char* variance_why_not(const Call& call, const Plan&, const DeviceFacts&) {
  if (const char* why = whole_why_not(call, 1)) return why;
  return is_float(call.dtype) ? nullptr : "computes floats only";
}

void launch_variance(const Call& call, const AxisView& v, int64_t correction, bool means, CallBuilder& b) {
  const int64_t lines = v.lines();
  if (lines == 0) return;
  const bool teams = v.inner == 1;
  const AxisCut cut(lines, v.size, teams ? kTeamPart : kItemPart, teams ? kEnoughGroups : kFewItems);
  const int64_t lanes = lanes_for(v.size);

  KernelText text("moments.cl");
  text.define("VARIANCE", int64_t{1})
      .define("MEANS", int64_t{means})
      .define("X", call.dtype)
      .define("COMPUTE", compute_of(call.dtype))
      .define("LANES", lanes);
  // Groups walk all of `length`: that of a line which is one part is its own.
  const int64_t length = teams && cut.parts == 1 ? v.size : cut.length;
  const int64_t all = lines * cut.parts, free = v.size - correction;
  const Arg found = b.scratch(cut.parts > 1 ? all * 4 * kLongest : 1), y = b.whole(call.result);
  std::vector<Arg> args = {b.array(call.operands[0]), y, found};
  for (const int64_t n : {lines, v.size, v.inner, cut.parts, length, free}) args.push_back(Arg::i64(n));
  b.launch(text, teams ? "variance" : "variance_items",
           teams ? line_grid(all, lanes) : Grid{.groups = {groups_for(lines), cut.parts, 1}, .lanes = true},
           std::move(args));
  if (cut.parts > 1)
    b.launch(text, "variance_join", {.groups = {lines, 1, 1}}, {found, y, Arg::i64(cut.parts), Arg::i64(free)});
}

void make_variance(const Call& call, CallBuilder& b) {
  const auto& attrs = std::get<VarianceAttrs>(call.attrs);
  launch_variance(call, AxisView::of(call.operand_shapes[0], attrs.axis), attrs.correction, false, b);
}

void make_batch_moments(const Call& call, CallBuilder& b) {
  launch_variance(call, AxisView::of(call.operand_shapes[0], 0), 0, true, b);
}

// ---- sums of batch norm's derivative: parts of the rows, then their sums ----

constexpr int64_t kSumRows = 64, kMostSumParts = 256;

const char* sums_why_not(const Call& call, const Plan& plan, const DeviceFacts&) {
  if (const char* why = whole_why_not(call, 3)) return why;
  for (const View& v : call.operands)
    if (stored(v, plan) != call.dtype) return "computes arrays of one dtype";
  return is_float(call.dtype) ? nullptr : "computes floats only";
}

void make_batch_norm_sums(const Call& call, CallBuilder& b) {
  const int64_t rows = call.operand_shapes[1][0], columns = call.operand_shapes[1][1];
  if (columns == 0) return;
  const int64_t length = std::max(kSumRows, ceil_div(rows, kMostSumParts)),
                parts = std::max<int64_t>(1, ceil_div(rows, length));
  KernelText text("batch_sums.cl");
  text.define("X", call.dtype).define("COMPUTE", compute_of(call.dtype));
  const Arg found = b.scratch(2 * parts * columns * kLongest);
  const Grid grid{.groups = {groups_for(columns), parts, 1}, .lanes = true};
  b.launch(text, "batch_sums_parts", grid,
           {b.array(call.operands[0]), b.array(call.operands[1]), b.array(call.operands[2]), found, Arg::i64(rows),
            Arg::i64(columns), Arg::i64(length)});
  b.launch(text, "batch_sums_join", {.groups = {groups_for(columns), 1, 1}},
           {found, b.whole(call.result), Arg::i64(columns), Arg::i64(parts)});
}

// Elements a group counts, and elements that 32-bit counters take.
constexpr int64_t kCounted = 64 * kGroup, kMostCounted = int64_t{1} << 31;

const char* count_why_not(const Call& call, const Plan& plan, const DeviceFacts&) {
  if (const char* why = whole_why_not(call, 1)) return why;
  return call.op == &kHistogram || stored(call.operands[0], plan) == DType::i64 ? nullptr : "counts i64";
}

void make_count(const Call& call, CallBuilder& b) {
  const auto& a = std::get<HistogramAttrs>(call.attrs);
  const DType type = stored(call.operands[0], b.plan());
  const bool by_edges = call.op == &kHistogram;
  KernelText text("count.cl");
  text.define("X", type).define("COMPUTE", compute_of(type)).define("BY_EDGES", int64_t{by_edges});
  text.define("FLOAT", b.facts().has_f64 ? DType::f64 : DType::f32);
  const auto number = [&](double v) { return b.facts().has_f64 ? Arg::f64(v) : Arg::f32(static_cast<float>(v)); };
  const double bins = static_cast<double>(a.bins), width = a.high / bins - a.low / bins;
  const Arg status = by_edges ? b.array(call.operands[0]) : b.status_buffer();
  const Arg error = by_edges ? Arg::i32(0) : b.error([most = a.bins - 1](int64_t value, int64_t at) {
    return cat("[bincount] an element must lie between 0 and ", most, "; element ", at, " is ", value);
  });
  const Arg counters = b.scratch(std::max<int64_t>(a.bins, 1) * 4), result = b.whole(call.result);
  const int64_t count = call.operand_shapes[0].numel();
  const Grid bin_grid{.groups = {groups_for(a.bins), 1, 1}};
  for (int64_t begin = 0; begin == 0 || begin < count; begin += kMostCounted) {
    const int64_t end = std::min(begin + kMostCounted, count);
    b.launch(text, "count_clear", bin_grid, {counters, Arg::i64(a.bins)});
    b.launch(text, "count", {.groups = {groups_for(end - begin, kCounted), 1, 1}},
             {b.array(call.operands[0]), counters, status, error, Arg::i64(begin), Arg::i64(end), Arg::i64(kCounted),
              Arg::i64(a.bins), number(a.low), number(a.high), number(width), number(1 / width)});
    b.launch(text, "count_add", bin_grid, {counters, result, Arg::i64(a.bins), Arg::i32(begin > 0)});
  }
}

const KernelRow kRows[] = {
    {&kVariance, "moments", variance_why_not, make_variance},
    {&kBatchMoments, "moments", variance_why_not, make_batch_moments},
    {&kBatchNormSums, "parts", sums_why_not, make_batch_norm_sums},
    {&kHistogram, "counts", count_why_not, make_count},
    {&kBincount, "counts", count_why_not, make_count},
};

}  // namespace

std::span<const KernelRow> statistics_kernels() { return kRows; }

}  // namespace outrace::gpu
