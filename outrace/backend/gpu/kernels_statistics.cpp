// Variance along an axis, and counts.
#include "outrace/backend/gpu/axis_cut.h"

namespace outrace::gpu {
namespace {

// A part of a line has whole blocks (moments.cl).
constexpr int64_t kTeamPart = 32 * kGroup, kItemPart = 32, kFewItems = 16 * 1024;
constexpr int64_t kLongest = 8;  // bytes of a number of the compute type

const char* variance_why_not(const Call& call, const Plan&, const DeviceFacts&) {
  if (const char* why = whole_why_not(call, 1)) return why;
  return is_float(call.dtype) ? nullptr : "computes floats only";
}

void make_variance(const Call& call, CallBuilder& b) {
  const auto& attrs = std::get<VarianceAttrs>(call.attrs);
  const AxisView v = AxisView::of(call.operand_shapes[0], attrs.axis);
  const int64_t lines = v.lines();
  if (lines == 0) return;
  const bool teams = v.inner == 1;
  const AxisCut cut(lines, v.size, teams ? kTeamPart : kItemPart, teams ? kEnoughGroups : kFewItems);
  const int64_t lanes = lanes_for(v.size);

  KernelText text("moments.cl");
  text.define("VARIANCE", int64_t{1}).define("X", call.dtype).define("COMPUTE", compute_of(call.dtype)).define("LANES", lanes);
  // Groups walk all of `length`: that of a line which is one part is its own.
  const int64_t length = teams && cut.parts == 1 ? v.size : cut.length;
  const int64_t all = lines * cut.parts, free = v.size - attrs.correction;
  const Arg found = b.scratch(cut.parts > 1 ? all * 4 * kLongest : 1), y = b.whole(call.result);
  std::vector<Arg> args = {b.array(call.operands[0]), y, found};
  for (const int64_t n : {lines, v.size, v.inner, cut.parts, length, free}) args.push_back(Arg::i64(n));
  b.launch(text, teams ? "variance" : "variance_items",
           {.groups = {groups_for(all, teams ? kGroup / lanes : kGroup), 1, 1}}, std::move(args));
  if (cut.parts > 1)
    b.launch(text, "variance_join", {.groups = {lines, 1, 1}}, {found, y, Arg::i64(cut.parts), Arg::i64(free)});
}

const KernelRow kRows[] = {
    {&kVariance, "moments", variance_why_not, make_variance},
};

}  // namespace

std::span<const KernelRow> statistics_kernels() { return kRows; }

}  // namespace outrace::gpu
