// Layer norm, RMS norm and their derivatives.
#include "outrace/backend/gpu/axis_cut.h"

namespace outrace::gpu {
namespace {

// A part of a line has whole blocks (moments.cl). Lines are cut where they are few: below, a group each (or several
// lines a group) fills the card.
constexpr int64_t kPart = 32 * kGroup, kFewLines = 256;
constexpr int64_t kWeightPart = 32;  // lines whose weights' gradients an item sums at least
constexpr int64_t kPair = 16;        // bytes of STATS and SUMS

const char* norm_why_not(const Call& call, const Plan& plan, const DeviceFacts&) {
  if (const char* why = whole_why_not(call, call.operands.size())) return why;
  if (call.operand_shapes[0].rank() == 0) return "needs an axis";
  return is_float(stored(call.operands[0], plan)) ? nullptr : "computes floats only";
}

// What every launch of a call takes.
struct Norm {
  const Call& call;
  CallBuilder& b;
  const NormAttrs& attrs = std::get<NormAttrs>(call.attrs);
  int64_t columns = call.operand_shapes[0].back();
  int64_t lines = columns == 0 ? 0 : call.operand_shapes[0].numel() / columns;
  DType type = stored(call.operands[0], b.plan()), compute = compute_of(type);
  int64_t lanes = lanes_for(columns);
  AxisCut cut{lines, columns, kPart, kEnoughGroups};
  bool split = cut.parts > 1 && lines < kFewLines;
  KernelText text{"moments.cl"};
  Arg eps = compute == DType::f64 ? Arg::f64(attrs.eps) : Arg::f32(static_cast<float>(attrs.eps));
  Arg centered = Arg::i32(attrs.centered);

  Norm(const Call& c, CallBuilder& builder) : call(c), b(builder) {
    text.define("NORM", int64_t{1}).define("X", type).define("COMPUTE", compute).define("LANES", lanes);
  }
  // Operand `which`, or the first in the place of one that is not there.
  Arg operand(size_t which) const { return b.array(call.operands[which < call.operands.size() ? which : 0]); }
  Grid element_grid() const { return {.groups = {groups_for(columns), lines, 1}}; }

  // Mean and inverse deviation of every line, in scratch memory.
  Arg stats() {
    const int64_t parts = split ? cut.parts : 1;
    const Arg stats = b.scratch(lines * kPair), found = b.scratch(split ? lines * parts * 2 * kPair : 1);
    b.launch(text, "norm_stats", line_grid(lines * parts, lanes),
             {operand(0), found, stats, Arg::i64(lines), Arg::i64(columns), Arg::i64(parts),
              Arg::i64(split ? cut.length : columns), eps, centered});
    if (split)
      b.launch(text, "norm_stats_join", {.groups = {lines, 1, 1}},
               {found, stats, Arg::i64(columns), Arg::i64(parts), eps});
    return stats;
  }
};

void make_norm(const Call& call, CallBuilder& b) {
  Norm n(call, b);
  if (n.lines == 0) return;
  const size_t given = call.operands.size();
  const Arg weights = Arg::i32(given > 2 ? 3 : given > 1 ? 1 : 0), y = b.whole(call.result);
  if (!n.split)
    return b.launch(n.text, "norm_lines", line_grid(n.lines, n.lanes),
                    {n.operand(0), n.operand(1), n.operand(2), y, Arg::i64(n.lines), Arg::i64(n.columns), n.eps,
                     n.centered, weights});
  const Arg stats = n.stats();
  b.launch(n.text, "norm_apply", n.element_grid(),
           {n.operand(0), n.operand(1), n.operand(2), y, stats, Arg::i64(n.columns), weights});
}

// Operands: x, g, and the weight if there is one.
void make_norm_grad(const Call& call, CallBuilder& b) {
  Norm n(call, b);
  if (n.lines == 0) return;
  const Arg weights = Arg::i32(call.operands.size() > 2), dx = b.whole(call.result);
  const Arg x = n.operand(0), g = n.operand(1), weight = n.operand(2);
  const Arg lines = Arg::i64(n.lines), columns = Arg::i64(n.columns), parts = Arg::i64(n.cut.parts);
  if (!n.split)
    return b.launch(n.text, "norm_grad", line_grid(n.lines, n.lanes),
                    {x, g, weight, dx, lines, columns, n.eps, n.centered, weights});
  const Arg stats = n.stats(), sums = b.scratch(n.lines * (n.cut.parts + 1) * kPair);
  b.launch(n.text, "norm_sums", line_grid(n.lines * n.cut.parts, n.lanes),
           {x, g, weight, stats, sums, columns, parts, Arg::i64(n.cut.length), weights});
  b.launch(n.text, "norm_sums_join", {.groups = {n.lines, 1, 1}}, {sums, lines, columns, parts, n.centered});
  b.launch(n.text, "norm_grad_apply", n.element_grid(),
           {x, g, weight, dx, stats, sums, lines, columns, parts, weights});
}

void make_norm_weight_grad(const Call& call, CallBuilder& b) {
  Norm n(call, b);
  if (n.columns == 0) return;
  const AxisCut cut(n.columns, n.lines, kWeightPart, kEnoughItems);
  const Arg partial = b.scratch(cut.parts * 2 * n.columns * size_of(n.compute));
  const Arg stats = n.stats();
  b.launch(n.text, "norm_weight_sums", {.groups = {groups_for(n.columns * cut.parts), 1, 1}},
           {n.operand(0), n.operand(1), stats, partial, Arg::i64(n.lines), Arg::i64(n.columns), Arg::i64(cut.parts),
            Arg::i64(cut.length)});
  const int64_t results = 2 * n.columns;
  const bool many = results >= kManyLines;
  b.launch(n.text, many ? "norm_weight_join" : "norm_weight_join_team",
           {.groups = {many ? groups_for(results) : results, 1, 1}},
           {partial, b.whole(call.result), Arg::i64(results), Arg::i64(cut.parts)});
}

const KernelRow kRows[] = {
    {&kLayerNorm, "rows", norm_why_not, make_norm},
    {&kLayerNormGrad, "rows", norm_why_not, make_norm_grad},
    {&kLayerNormWeightGrad, "rows", norm_why_not, make_norm_weight_grad},
};

}  // namespace

std::span<const KernelRow> layer_norm_kernels() { return kRows; }

}  // namespace outrace::gpu
