// Tile programs without a producer: fused elementwise ops, casts, copies. And relayout, which between plain arrays is
// a copy.
#include "outrace/backend/gpu/split.h"

namespace outrace::gpu {
namespace {

// Elements a work-item takes, a group apart. One: more groups hide a card's latency as well, and PoCL makes vector code
// of items only where none loops (8 ms instead of 16 for the exponentials of 4 million numbers).
constexpr int64_t kEach = 1;
// From this length on, the rows of arrays that are no dense runs are shared out whole: no division an element.
constexpr int64_t kLongRow = 128;

const char* always(const Call&, const Plan&, const DeviceFacts&) { return nullptr; }

void launch_one(const TileProgram& program, CallBuilder& b) {
  const int64_t count = program.space.numel();
  if (count == 0) return;
  KernelText text("elementwise.cl");
  text.define("COMPUTE", program.compute).define("EACH", kEach).index(count + kEach * kGroup);
  text.epilogue(program, b.plan());
  const int64_t inner = text.epilogue_inner();
  text.define("ROWS", int64_t{inner >= kLongRow});
  if (inner >= kLongRow) {
    const int64_t pieces = groups_for(inner, kGroup * kEach);
    return b.launch(text, "elementwise", {.groups = {pieces * (count / inner), 1, 1}},
                    {Arg::i64(inner), Arg::i64(pieces)}, CallBuilder::epilogue);
  }
  b.launch(text, "elementwise", {.groups = {groups_for(count, kGroup * kEach), 1, 1}}, {Arg::i64(count)},
           CallBuilder::epilogue);
}

void make_elementwise(const Call& call, CallBuilder& b) { launch_program(call.epilogue, b); }

const char* relayout_why_not(const Call& call, const Plan& plan, const DeviceFacts&) {
  if (const char* why = whole_why_not(call, 1)) return why;
  if (call.layout != Layout::plain || plan.values[call.operands[0].value].layout != Layout::plain)
    return "packed weights are the CPU's";
  return nullptr;
}

void make_relayout(const Call& call, CallBuilder& b) {
  TileProgram copy = read_operand(call, 0, b.plan(), compute_of(call.dtype));
  copy.stores.push_back({0, {call.result, 0, contiguous_strides(call.shape)}, call.dtype});
  launch_program(copy, b);
}

const KernelRow kRows[] = {
    {nullptr, "fused", always, make_elementwise},
    {&kRelayout, "copy", relayout_why_not, make_relayout},
};

}  // namespace

void launch_program(const TileProgram& program, CallBuilder& b) {
  for (const TileProgram& piece : split_program(program, b)) launch_one(piece, b);
}

std::span<const KernelRow> elementwise_kernels() { return kRows; }

}  // namespace outrace::gpu
