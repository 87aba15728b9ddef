// Ops along one axis as calls of a plan: positions of extremes, picking, scans, order.
#include "outrace/backend/cpu/arg_reduce.h"
#include "outrace/backend/cpu/kernel_rows.h"
#include "outrace/backend/cpu/scan.h"
#include "outrace/backend/cpu/sort.h"

namespace outrace::cpu {
namespace {

const char* one_operand(const Call& call, const Plan&) { return whole_why_not(call, 1); }

class ArgExtremeCall final : public ResolvedCall {
 public:
  ArgExtremeCall(const Call& call, const Plan& plan)
      : largest_(call.op == &kArgMax),
        dtype_(stored(call.operands[0], plan)),
        view_(AxisView::of(call.operand_shapes[0], std::get<AxisAttrs>(call.attrs).axis)),
        x_(Place::of(call.operands[0], plan)),
        result_{call.result, 0} {}
  void run(const Frame& f) override {
    arg_extreme(largest_, dtype_, x_.at(f), view_, static_cast<int64_t*>(result_.at(f)));
  }

 private:
  bool largest_;
  DType dtype_;
  AxisView view_;
  Place x_, result_;
};

class RunningArgExtremeCall final : public ResolvedCall {
 public:
  RunningArgExtremeCall(const Call& call, const Plan& plan)
      : largest_(call.op == &kCumArgMax),
        dtype_(stored(call.operands[0], plan)),
        view_(AxisView::of(call.shape, std::get<ScanAttrs>(call.attrs).axis)),
        x_(Place::of(call.operands[0], plan)),
        result_{call.result, 0} {}
  void run(const Frame& f) override {
    running_arg_extreme(largest_, dtype_, x_.at(f), view_, static_cast<int64_t*>(result_.at(f)));
  }

 private:
  bool largest_;
  DType dtype_;
  AxisView view_;
  Place x_, result_;
};

const char* scan_why_not(const Call& call, const Plan&) {
  if (const char* why = whole_why_not(call, 1)) return why;
  return is_float(call.dtype) || call.dtype == DType::i64 ? nullptr : "scans floats and i64";
}

class ScanCall final : public ResolvedCall {
 public:
  ScanCall(const Call& call, const Plan& plan)
      : kind_(call.op == &kCumsum ? ScanKind::sum : ScanKind::prod),
        dtype_(call.dtype),
        attrs_(std::get<ScanAttrs>(call.attrs)),
        view_(AxisView::of(call.shape, attrs_.axis)),
        x_(Place::of(call.operands[0], plan)),
        result_{call.result, 0} {}
  void run(const Frame& f) override { scan(kind_, dtype_, attrs_, x_.at(f), view_, result_.at(f)); }

 private:
  ScanKind kind_;
  DType dtype_;
  ScanAttrs attrs_;
  AxisView view_;
  Place x_, result_;
};

const char* recurrence_why_not(const Call& call, const Plan&) {
  if (const char* why = whole_why_not(call, 2)) return why;
  return is_float(call.dtype) ? nullptr : "computes floats only";
}

class RecurrenceCall final : public ResolvedCall {
 public:
  RecurrenceCall(const Call& call, const Plan& plan)
      : dtype_(call.dtype),
        attrs_(std::get<ScanAttrs>(call.attrs)),
        view_(AxisView::of(call.shape, attrs_.axis)),
        a_(Place::of(call.operands[0], plan)),
        b_(Place::of(call.operands[1], plan)),
        result_{call.result, 0} {}
  void run(const Frame& f) override {
    linear_recurrence(dtype_, attrs_.reverse, a_.at(f), b_.at(f), view_, result_.at(f));
  }

 private:
  DType dtype_;
  ScanAttrs attrs_;
  AxisView view_;
  Place a_, b_, result_;
};

// argsort and topk.
class OrderCall final : public ResolvedCall {
 public:
  OrderCall(const Call& call, const Plan& plan)
      : attrs_(call.attrs),
        dtype_(stored(call.operands[0], plan)),
        size_(call.operand_shapes[0].back()),
        rows_(size_ == 0 ? 0 : call.operand_shapes[0].numel() / size_),
        x_(Place::of(call.operands[0], plan)),
        result_{call.result, 0} {}
  void run(const Frame& f) override {
    int64_t* out = static_cast<int64_t*>(result_.at(f));
    if (const auto* sort = std::get_if<SortAttrs>(&attrs_))
      argsort(dtype_, sort->descending, x_.at(f), rows_, size_, out);
    else
      top_k(dtype_, std::get<TopKAttrs>(attrs_), x_.at(f), rows_, size_, out);
  }

 private:
  Attrs attrs_;
  DType dtype_;
  int64_t size_, rows_;
  Place x_, result_;
};

const KernelRow kRows[] = {
    {&kArgMax, "axis", one_operand, make<ArgExtremeCall>},
    {&kArgMin, "axis", one_operand, make<ArgExtremeCall>},
    {&kCumArgMax, "axis", one_operand, make<RunningArgExtremeCall>},
    {&kCumArgMin, "axis", one_operand, make<RunningArgExtremeCall>},
    {&kCumsum, "axis", scan_why_not, make<ScanCall>},
    {&kCumprod, "axis", scan_why_not, make<ScanCall>},
    {&kRecurrence, "axis", recurrence_why_not, make<RecurrenceCall>},
    {&kArgsort, "radix", one_operand, make<OrderCall>},
    {&kTopK, "select", one_operand, make<OrderCall>},
};

}  // namespace

std::span<const KernelRow> axis_kernels() { return kRows; }

}  // namespace outrace::cpu
