// Variance and counts as calls of a plan.
#include "outrace/backend/cpu/histogram.h"
#include "outrace/backend/cpu/kernel_rows.h"
#include "outrace/backend/cpu/variance.h"

namespace outrace::cpu {
namespace {

const char* variance_why_not(const Call& call, const Plan&) {
  if (const char* why = whole_why_not(call, 1)) return why;
  return is_float(call.dtype) ? nullptr : "computes floats only";
}

class VarianceCall final : public ResolvedCall {
 public:
  VarianceCall(const Call& call, const Plan& plan)
      : dtype_(call.dtype),
        attrs_(std::get<VarianceAttrs>(call.attrs)),
        view_(AxisView::of(call.operand_shapes[0], attrs_.axis)),
        x_(Place::of(call.operands[0], plan)),
        result_{call.result, 0} {}
  void run(const Frame& f) override { variance(dtype_, x_.at(f), view_, attrs_.correction, result_.at(f)); }

 private:
  DType dtype_;
  VarianceAttrs attrs_;
  AxisView view_;
  Place x_, result_;
};

const char* count_why_not(const Call& call, const Plan& plan) {
  if (const char* why = whole_why_not(call, 1)) return why;
  return call.op == &kHistogram || stored(call.operands[0], plan) == DType::i64 ? nullptr : "counts i64";
}

class CountCall final : public ResolvedCall {
 public:
  CountCall(const Call& call, const Plan& plan)
      : by_edges_(call.op == &kHistogram),
        dtype_(stored(call.operands[0], plan)),
        attrs_(std::get<HistogramAttrs>(call.attrs)),
        count_(call.operand_shapes[0].numel()),
        x_(Place::of(call.operands[0], plan)),
        result_{call.result, 0} {}
  void run(const Frame& f) override {
    int64_t* counts = static_cast<int64_t*>(result_.at(f));
    if (by_edges_)
      histogram(dtype_, x_.at(f), count_, attrs_, counts);
    else
      bincount(static_cast<const int64_t*>(x_.at(f)), count_, attrs_.bins, counts);
  }

 private:
  bool by_edges_;
  DType dtype_;
  HistogramAttrs attrs_;
  int64_t count_;
  Place x_, result_;
};

const KernelRow kRows[] = {
    {&kVariance, "moments", variance_why_not, make<VarianceCall>},
    {&kHistogram, "counts", count_why_not, make<CountCall>},
    {&kBincount, "counts", count_why_not, make<CountCall>},
};

}  // namespace

std::span<const KernelRow> statistics_kernels() { return kRows; }

}  // namespace outrace::cpu
