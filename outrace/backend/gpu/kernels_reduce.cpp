// Reductions over any axes, with what is read and what follows fused in.
#include <algorithm>

#include "outrace/backend/gpu/axes.h"
#include "outrace/backend/gpu/kernel_rows.h"

namespace outrace::gpu {
namespace {

// A group works on a row from this length on: below it, most of its items would have nothing to read.
constexpr int64_t kTeamRow = 128;
// Enough items (or groups) to fill a large card; more segments only add partial sums.
constexpr int64_t kEnoughItems = 64 * 1024, kEnoughGroups = 1024;
// Elements a segment keeps at least, so that partial sums stay a small part of the traffic.
constexpr int64_t kItemSegment = 128, kTeamSegment = 16 * kGroup;
// From so many results on, an item each folds the partial sums.
constexpr int64_t kManyResults = 256;

DType reduced_type(const Call& call, const Plan& plan) {
  return compute_of(call.prologue.empty() ? stored(call.operands[0], plan) : call.prologue.compute);
}

const char* reduce_why_not(const Call& call, const Plan& plan, const DeviceFacts&) {
  if (call.operands.size() != 1) return "reduces one operand";
  if (call.prologue.empty() && call.operands[0].value < 0) return "the operand is a scalar without memory";
  const DType type = reduced_type(call, plan);
  if (type != compute_of(call.dtype)) return "the result has the type of the sum (f32, f64 or i64) or a narrower one";
  if (type == DType::i64 && call.op == &kMean) return "a mean of integers has no exact type";
  if (!call.epilogue.empty() && call.epilogue.compute != type) return "what follows computes in another type";
  const int64_t axes = std::get<ReduceAttrs>(call.attrs).axes;
  for (const bool reduced : {false, true})
    if (axes_of(call.operand_shapes[0], axes, reduced).size() > 4) return "takes at most 4 runs of axes";
  return nullptr;
}

void define_reduction(KernelText& text, const OpDef* op, DType type) {
  const std::string t(type_name(type));
  if (op == &kMax || op == &kMin) {
    const double low = type == DType::i64 ? -0x1p63 : -HUGE_VAL;
    const std::string bound =
        type == DType::i64 && op == &kMin ? "I64_LARGEST" : print_literal(op == &kMin ? -low : low, type);
    text.define("REDUCE(a, b)", (op == &kMax ? "max_" : "min_") + t + "(a, b)").define("IDENTITY", bound);
  } else if (op == &kProd) {
    text.define("REDUCE(a, b)", type == DType::i64 ? "(i64)((u64)(a) * (u64)(b))" : "((a) * (b))");
    text.define("IDENTITY", print_literal(1, type));
  } else {
    text.define("REDUCE(a, b)", type == DType::i64 ? "(i64)((u64)(a) + (u64)(b))" : "((a) + (b))");
    text.define("IDENTITY", print_literal(0, type));
  }
  text.define("FINISH(v)", op == &kMean ? "((v) / (COMPUTE)count)" : "(v)");
}

void make_reduction(const Call& call, CallBuilder& b) {
  const DType type = reduced_type(call, b.plan());
  const Shape& space = call.operand_shapes[0];
  const int64_t axes = std::get<ReduceAttrs>(call.attrs).axes;
  const std::vector<Axis> kept = axes_of(space, axes, false), reduced = axes_of(space, axes, true);
  const int64_t results = count_of(kept), count = count_of(reduced);
  if (results == 0) return;

  const bool teams = reduced.back().stride == 1 && count >= kTeamRow;
  const int64_t enough = teams ? kEnoughGroups : kEnoughItems, least = teams ? kTeamSegment : kItemSegment;
  int64_t segments = std::clamp<int64_t>(enough / results, 1, std::max<int64_t>(1, count / least));
  segments = std::min<int64_t>(segments, 1024);
  const int64_t length = groups_for(std::max<int64_t>(count, 1), segments);
  segments = groups_for(std::max<int64_t>(count, 1), length);

  KernelText text("reduce.cl");
  text.define("COMPUTE", type).define("TEAMS", teams).define("SPLIT", segments > 1);
  text.define("KEPT_AXES", static_cast<int64_t>(kept.size()))
      .define("REDUCED_AXES", static_cast<int64_t>(reduced.size()));
  text.define("KEPT_DENSE", int64_t{kept.size() == 1 && kept[0].stride == 1});
  define_reduction(text, call.op, type);
  text.index(space.numel() + kGroup * 64);
  text.prologue(call.prologue.empty() ? read_operand(call, 0, b.plan(), type) : call.prologue, b.plan());
  text.epilogue(finish(call, type), b.plan());

  std::vector<Arg> args;
  const Arg partial = segments > 1 ? b.scratch(segments * results * size_of(type)) : Arg();
  if (segments > 1) args.push_back(partial);
  for (const int64_t v : {results, count, segments, length}) args.push_back(Arg::i64(v));
  append_axes(kept, args);
  append_axes(reduced, args);
  b.launch(text, "reduce", {.groups = {teams ? results : groups_for(results), segments, 1}, .lanes = true},
           std::move(args), segments > 1 ? CallBuilder::prologue : CallBuilder::both);
  if (segments == 1) return;
  const std::vector<Arg> second = {partial, Arg::i64(results), Arg::i64(segments), Arg::i64(count)};
  if (results >= kManyResults)
    b.launch(text, "reduce_partial", {.groups = {groups_for(results), 1, 1}, .lanes = true}, second,
             CallBuilder::epilogue);
  else
    b.launch(text, "reduce_partial_team", {.groups = {results, 1, 1}, .lanes = true}, second, CallBuilder::epilogue);
}

const KernelRow kRows[] = {
    {&kSum, "fold", reduce_why_not, make_reduction},  {&kMean, "fold", reduce_why_not, make_reduction},
    {&kMax, "fold", reduce_why_not, make_reduction},  {&kMin, "fold", reduce_why_not, make_reduction},
    {&kProd, "fold", reduce_why_not, make_reduction},
};

}  // namespace

std::span<const KernelRow> reduce_kernels() { return kRows; }

}  // namespace outrace::gpu
