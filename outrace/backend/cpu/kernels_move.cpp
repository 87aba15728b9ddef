// Ops that move elements, as calls of a plan.
#include "outrace/backend/cpu/concat.h"
#include "outrace/backend/cpu/fill.h"
#include "outrace/backend/cpu/kernel_rows.h"
#include "outrace/backend/cpu/relayout.h"

namespace outrace::cpu {
namespace {

const char* pad_why_not(const Call& call, const Plan&) { return whole_why_not(call, 1); }

class PadCall final : public ResolvedCall {
 public:
  PadCall(const Call& call, const Plan& plan)
      : attrs_(std::get<SliceAttrs>(call.attrs)),
        dtype_(call.dtype),
        from_(call.operand_shapes[0]),
        to_(call.shape),
        x_(Place::of(call.operands[0], plan)),
        result_{call.result, 0} {}
  void run(const Frame& f) override { pad(dtype_, x_.at(f), from_, attrs_, result_.at(f), to_); }

 private:
  SliceAttrs attrs_;
  DType dtype_;
  Shape from_, to_;
  Place x_, result_;
};

// x windows [outer axes, count, inner axes, length].
class FoldWindowsCall final : public ResolvedCall {
 public:
  FoldWindowsCall(const Call& call, const Plan& plan) : x_(Place::of(call.operands[0], plan)), result_{call.result, 0} {
    const auto& attrs = std::get<UnfoldAttrs>(call.attrs);
    const int axis = static_cast<int>(attrs.axis);
    const Shape& windows = call.operand_shapes[0];
    fold_ = {.dtype = call.dtype,
             .outer = 1,
             .size = call.shape[axis],
             .inner = 1,
             .count = windows[axis],
             .length = windows.back(),
             .step = attrs.step};
    for (int i = 0; i < axis; ++i) fold_.outer *= call.shape[i];
    for (int i = axis + 1; i < call.shape.rank(); ++i) fold_.inner *= call.shape[i];
  }
  void run(const Frame& f) override { fold(fold_, x_.at(f), result_.at(f)); }

 private:
  FoldCall fold_;
  Place x_, result_;
};

const char* relayout_why_not(const Call& call, const Plan&) {
  if (const char* why = whole_why_not(call, 1)) return why;
  return relayout_refusal(call.dtype, call.shape);
}

class RelayoutCall final : public ResolvedCall {
 public:
  RelayoutCall(const Call& call, const Plan& plan)
      : from_layout_(plan.values[call.operands[0].value].layout),
        to_layout_(call.layout),
        dtype_(call.dtype),
        shape_(call.shape),
        from_(Place::of(call.operands[0], plan)),
        to_{call.result, 0} {}
  void run(const Frame& f) override { relayout(to_.at(f), to_layout_, from_.at(f), from_layout_, dtype_, shape_); }

 private:
  Layout from_layout_, to_layout_;
  DType dtype_;
  Shape shape_;
  Place from_, to_;
};

const KernelRow kRows[] = {
    {&kPad, "pad", pad_why_not, make<PadCall>},
    {&kFold, "windows", pad_why_not, make<FoldWindowsCall>},
    {&kRelayout, "panels", relayout_why_not, make<RelayoutCall>},
};

}  // namespace

std::span<const KernelRow> movement_kernels() { return kRows; }

}  // namespace outrace::cpu
