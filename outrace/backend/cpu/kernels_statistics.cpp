// Variance and counts as calls of a plan.
#include <cstring>

#include "outrace/backend/cpu/batch_sums.h"
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

// x [rows, columns]; over no rows all is 0.
class BatchMomentsCall final : public ResolvedCall {
 public:
  BatchMomentsCall(const Call& call, const Plan& plan)
      : dtype_(call.dtype),
        view_(AxisView::of(call.operand_shapes[0], 0)),
        x_(Place::of(call.operands[0], plan)),
        result_{call.result, 0} {}
  void run(const Frame& f) override {
    char* means = static_cast<char*>(result_.at(f));
    const int64_t bytes = view_.inner * size_of(dtype_);
    if (view_.size == 0)
      std::memset(means, 0, static_cast<size_t>(2 * bytes));
    else
      variance(dtype_, x_.at(f), view_, 0, means + bytes, means);
  }

 private:
  DType dtype_;
  AxisView view_;
  Place x_, result_;
};

const char* sums_why_not(const Call& call, const Plan& plan) {
  if (const char* why = whole_why_not(call, 3)) return why;
  for (const View& v : call.operands)
    if (stored(v, plan) != call.dtype) return "computes arrays of one dtype";
  return is_float(call.dtype) ? nullptr : "computes floats only";
}

class BatchNormSumsCall final : public ResolvedCall {
 public:
  BatchNormSumsCall(const Call& call, const Plan& plan)
      : dtype_(call.dtype),
        x_shape_(call.operand_shapes[1]),
        g_(Place::of(call.operands[0], plan)),
        x_(Place::of(call.operands[1], plan)),
        mean_(Place::of(call.operands[2], plan)),
        result_{call.result, 0} {}
  void run(const Frame& f) override {
    batch_norm_sums(dtype_, x_shape_[0], x_shape_[1], g_.at(f), x_.at(f), mean_.at(f), result_.at(f));
  }

 private:
  DType dtype_;
  Shape x_shape_;
  Place g_, x_, mean_, result_;
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
    {&kBatchMoments, "moments", variance_why_not, make<BatchMomentsCall>},
    {&kBatchNormSums, "blocks", sums_why_not, make<BatchNormSumsCall>},
    {&kHistogram, "counts", count_why_not, make<CountCall>},
    {&kBincount, "counts", count_why_not, make<CountCall>},
};

}  // namespace

std::span<const KernelRow> statistics_kernels() { return kRows; }

}  // namespace outrace::cpu
