// Softmax and the losses as calls of a plan.
#include "outrace/backend/cpu/kernel_rows.h"
#include "outrace/backend/cpu/rows.h"

namespace outrace::cpu {
namespace {

const char* softmax_why_not(const Call& call, const Plan&) {
  if (const char* why = whole_why_not(call, 1)) return why;
  if (call.shape.rank() == 0) return "needs an axis";
  return is_float(call.dtype) ? nullptr : "computes floats only";
}

class SoftmaxCall final : public ResolvedCall {
 public:
  SoftmaxCall(const Call& call, const Plan& plan)
      : kernel_(call.op == &kSoftmax ? softmax : log_softmax),
        x_(Place::of(call.operands[0], plan)),
        y_{call.result, 0},
        dtype_(call.dtype),
        columns_(call.shape.back()),
        rows_(columns_ == 0 ? 0 : call.shape.numel() / columns_) {}
  void run(const Frame& f) override { kernel_(dtype_, x_.at(f), y_.at(f), rows_, columns_); }

 private:
  void (*kernel_)(DType, const void*, void*, int64_t, int64_t);
  Place x_, y_;
  DType dtype_;
  int64_t columns_, rows_;
};

const char* logsumexp_why_not(const Call& call, const Plan&) {
  if (const char* why = whole_why_not(call, 1)) return why;
  if (call.operand_shapes[0].back() == 0) return "needs something to add up";
  return is_float(call.dtype) ? nullptr : "computes floats only";
}

class LogSumExpCall final : public ResolvedCall {
 public:
  LogSumExpCall(const Call& call, const Plan& plan)
      : x_(Place::of(call.operands[0], plan)),
        y_{call.result, 0},
        dtype_(call.dtype),
        columns_(call.operand_shapes[0].back()),
        rows_(call.shape.numel()) {}
  void run(const Frame& f) override { logsumexp(dtype_, x_.at(f), y_.at(f), rows_, columns_); }

 private:
  Place x_, y_;
  DType dtype_;
  int64_t columns_, rows_;
};

const char* loss_why_not(const Call& call, const Plan& plan) {
  if (const char* why = whole_why_not(call, call.op == &kCrossEntropy ? 2 : 3)) return why;
  if (!is_float(stored(call.operands[0], plan))) return "logits are floats";
  if (call.operand_shapes[0].rank() != 2) return "logits are [rows, classes]";
  const DType targets = stored(call.operands[1], plan);
  return targets == DType::i64 || targets == DType::i32 ? nullptr : "targets are class numbers, i64 or i32";
}

CrossEntropyCall describe_loss(const Call& call, const Plan& plan) {
  return {.dtype = stored(call.operands[0], plan),
          .target_dtype = stored(call.operands[1], plan),
          .rows = call.operand_shapes[0][0],
          .classes = call.operand_shapes[0][1],
          .attrs = std::get<CrossEntropyAttrs>(call.attrs)};
}

class LossCall final : public ResolvedCall {
 public:
  LossCall(const Call& call, const Plan& plan)
      : loss_(describe_loss(call, plan)),
        logits_(Place::of(call.operands[0], plan)),
        targets_(Place::of(call.operands[1], plan)),
        result_{call.result, 0} {}
  void run(const Frame& f) override { cross_entropy(loss_, logits_.at(f), targets_.at(f), result_.at(f)); }

 private:
  CrossEntropyCall loss_;
  Place logits_, targets_, result_;
};

class LossGradientCall final : public ResolvedCall {
 public:
  LossGradientCall(const Call& call, const Plan& plan)
      : loss_(describe_loss(call, plan)),
        logits_(Place::of(call.operands[0], plan)),
        targets_(Place::of(call.operands[1], plan)),
        g_(Place::of(call.operands[2], plan)),
        result_{call.result, 0} {}
  void run(const Frame& f) override {
    cross_entropy_grad(loss_, logits_.at(f), targets_.at(f), g_.at(f), result_.at(f));
  }

 private:
  CrossEntropyCall loss_;
  Place logits_, targets_, g_, result_;
};

const KernelRow kRows[] = {
    {&kSoftmax, "rows", softmax_why_not, make<SoftmaxCall>},
    {&kLogSoftmax, "rows", softmax_why_not, make<SoftmaxCall>},
    {&kLogSumExp, "rows", logsumexp_why_not, make<LogSumExpCall>},
    {&kCrossEntropy, "rows", loss_why_not, make<LossCall>},
    {&kCrossEntropyGrad, "rows", loss_why_not, make<LossGradientCall>},
};

}  // namespace

std::span<const KernelRow> row_op_kernels() { return kRows; }

}  // namespace outrace::cpu
