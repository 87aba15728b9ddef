// Scans along one axis: sums, products, recurrences, positions of extremes so far.
#include "outrace/backend/gpu/axis_cut.h"

namespace outrace::gpu {
namespace {

// What a group takes of a line at once, an item eight neighbours; a part of a line has whole tiles.
constexpr int64_t kTile = 8 * kGroup, kItemPart = 32;
// A second pass over x pays only where there are few lines.
constexpr int64_t kFewGroups = 512, kFewItems = 16 * 1024;
constexpr int64_t kCarryBytes = 16;  // of the largest VALUE

const char* scan_why_not(const Call& call, const Plan&, const DeviceFacts&) {
  if (const char* why = whole_why_not(call, call.op == &kRecurrence ? 2 : 1)) return why;
  if (call.op == &kCumArgMax || call.op == &kCumArgMin || is_float(call.dtype)) return nullptr;
  if (call.op == &kRecurrence) return "computes floats only";
  return call.dtype == DType::i64 ? nullptr : "scans floats and i64";
}

int64_t kind_of(const OpDef* op) { return op == &kCumsum ? 0 : op == &kCumprod ? 1 : op == &kRecurrence ? 2 : 3; }

void make_scan(const Call& call, CallBuilder& b) {
  const auto& attrs = std::get<ScanAttrs>(call.attrs);
  const AxisView v = AxisView::of(call.shape, attrs.axis);
  const int64_t lines = v.lines();
  if (lines == 0 || v.size == 0) return;
  const bool teams = walked_by_groups(v);
  const AxisCut cut(lines, v.size, teams ? kTile : kItemPart, teams ? kFewGroups : kFewItems);
  const bool recurrence = call.op == &kRecurrence;
  const View& terms = call.operands[recurrence ? 1 : 0];
  const DType type = stored(terms, b.plan());

  KernelText text("scan.cl");
  text.define("X", type).define("Y", call.dtype).define("COMPUTE", compute_of(type));
  text.define("FLOAT", b.facts().has_f64 ? DType::f64 : DType::f32);
  text.define("KIND", kind_of(call.op)).define("INTEGER", int64_t{!is_float(type)});

  const Arg carries = b.scratch(cut.parts > 1 ? lines * cut.parts * kCarryBytes : kCarryBytes);
  std::vector<Arg> args = {b.array(terms), b.array(call.operands[0]), b.whole(call.result), carries};
  const int64_t start = attrs.reverse ? (v.size - 1) * v.inner : 0, step = attrs.reverse ? -v.inner : v.inner;
  for (const int64_t n : {lines, v.size, v.inner, cut.parts, cut.length, start, step}) args.push_back(Arg::i64(n));
  args.push_back(Arg::i32(attrs.exclusive || call.op == &kCumArgMin));
  const Grid grid{.groups = {teams ? lines * cut.parts : groups_for(lines * cut.parts), 1, 1}};
  if (cut.parts > 1) {
    b.launch(text, teams ? "scan_totals" : "scan_totals_items", grid, args);
    const bool many = lines >= kManyLines;
    b.launch(text, many ? "scan_carries" : "scan_carries_team", {.groups = {many ? groups_for(lines) : lines, 1, 1}},
             {carries, Arg::i64(lines), Arg::i64(cut.parts)});
  }
  b.launch(text, teams ? "scan" : "scan_items", grid, std::move(args));
}

const KernelRow kRows[] = {
    {&kCumsum, "axis", scan_why_not, make_scan},     {&kCumprod, "axis", scan_why_not, make_scan},
    {&kRecurrence, "axis", scan_why_not, make_scan}, {&kCumArgMax, "axis", scan_why_not, make_scan},
    {&kCumArgMin, "axis", scan_why_not, make_scan},
};

}  // namespace

std::span<const KernelRow> scan_kernels() { return kRows; }

}  // namespace outrace::gpu
