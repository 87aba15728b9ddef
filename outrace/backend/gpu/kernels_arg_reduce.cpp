// Positions of extremes along one axis.
#include "outrace/backend/gpu/axis_cut.h"

namespace outrace::gpu {
namespace {

// Elements of a part: enough that what it finds is a small part of the traffic.
constexpr int64_t kTeamPart = 16 * kGroup, kItemPart = 32;

const char* arg_why_not(const Call& call, const Plan&, const DeviceFacts&) { return whole_why_not(call, 1); }

void make_arg_reduce(const Call& call, CallBuilder& b) {
  const AxisView v = AxisView::of(call.operand_shapes[0], std::get<AxisAttrs>(call.attrs).axis);
  const int64_t lines = v.lines();
  if (lines == 0) return;
  const DType type = stored(call.operands[0], b.plan()), compute = compute_of(type);
  const bool teams = walked_by_groups(v);
  const AxisCut cut(lines, v.size, teams ? kTeamPart : kItemPart, teams ? kEnoughGroups : kEnoughItems);
  const bool split = cut.parts > 1;

  KernelText text("arg_reduce.cl");
  text.define("X", type).define("COMPUTE", compute).define("INTEGER", int64_t{!is_float(type)});
  text.define("TURN", compute == DType::f32 && cut.length < (int64_t{1} << 31) ? DType::i32 : DType::i64);
  const Arg result = b.whole(call.result);
  const Arg found = b.scratch(split ? lines * cut.parts * size_of(compute) : 1);
  const Arg found_at = b.scratch(split ? lines * cut.parts * 8 : 1);
  b.launch(text, teams ? "arg_reduce" : "arg_reduce_items",
           {.groups = {teams ? lines * cut.parts : groups_for(lines), teams ? 1 : cut.parts, 1}, .lanes = true},
           {b.array(call.operands[0]), result, found, found_at, Arg::i64(lines), Arg::i64(v.size), Arg::i64(v.inner),
            Arg::i64(cut.parts), Arg::i64(cut.length), Arg::i32(call.op == &kArgMin)});
  if (!split) return;
  const bool many = lines >= kManyLines;
  b.launch(text, many ? "arg_join" : "arg_join_team", {.groups = {many ? groups_for(lines) : lines, 1, 1}},
           {found, found_at, result, Arg::i64(lines), Arg::i64(cut.parts)});
}

const KernelRow kRows[] = {
    {&kArgMax, "axis", arg_why_not, make_arg_reduce},
    {&kArgMin, "axis", arg_why_not, make_arg_reduce},
};

}  // namespace

std::span<const KernelRow> arg_reduce_kernels() { return kRows; }

}  // namespace outrace::gpu
