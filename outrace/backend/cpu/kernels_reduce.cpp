// Reductions as calls of a plan.
#include "outrace/backend/cpu/kernel_rows.h"
#include "outrace/backend/cpu/reduce.h"
#include "outrace/backend/cpu/tile.h"

namespace outrace::cpu {
namespace {

DType sum_type(DType t) { return t == DType::f64 ? DType::f64 : is_float(t) ? DType::f32 : DType::i64; }

DType reduced_type(const Call& call, const Plan& plan) {
  return call.prologue.empty() ? stored(call.operands[0], plan) : call.prologue.compute;
}

ReduceKind kind_of(const OpDef* op) {
  return op == &kSum    ? ReduceKind::sum
         : op == &kMean ? ReduceKind::mean
         : op == &kMax  ? ReduceKind::max
         : op == &kMin  ? ReduceKind::min
                        : ReduceKind::prod;
}

const char* reduction_why_not(const Call& call, const Plan& plan) {
  if (call.operands.size() != 1) return "reduces one operand";
  if (call.prologue.empty() && call.operands[0].value < 0) return "the operand is a scalar without memory";
  const DType type = reduced_type(call, plan);
  if (sum_type(type) != sum_type(call.dtype))
    return "the result has the type of the sum (f32, f64 or i64) or a narrower one";
  if (!is_float(type) && kind_of(call.op) == ReduceKind::mean) return "a mean of integers has no exact type";
  if (!call.epilogue.empty() && call.epilogue.compute != sum_type(type))
    return "what follows computes in another type than the sum";
  return nullptr;
}

class ReductionCall final : public ResolvedCall {
 public:
  ReductionCall(const Call& call, const Plan& plan)
      : input_(Place{call.operands[0].value, 0}), output_{call.result, 0} {
    ReduceCall r;
    r.kind = kind_of(call.op);
    r.space = call.operand_shapes[0];
    r.axes = std::get<ReduceAttrs>(call.attrs).axes;
    r.input = reduced_type(call, plan);
    if (!call.prologue.empty()) {
      prologue_ = TileKernel::compile(call.prologue);
      r.prologue = prologue_.get();
    }
    r.view = call.operands[0];
    r.store = call.result >= 0;
    r.output = call.dtype;
    if (!call.epilogue.empty()) {
      epilogue_ = TileKernel::compile(call.epilogue);
      r.epilogue = epilogue_.get();
    }
    reducer_ = Reducer::prepare(r);
  }
  void run(const Frame& f) override { reducer_->run(f.values, f.scalars, input_.at(f), output_.at(f)); }
  std::string detail() const override {
    const std::string before = prologue_ ? prologue_->description() : "",
                      after = epilogue_ ? epilogue_->description() : "";
    return before + (before.empty() || after.empty() ? "" : ", ") + after;
  }

 private:
  Place input_, output_;
  std::unique_ptr<TileKernel> prologue_, epilogue_;
  std::unique_ptr<Reducer> reducer_;
};

const KernelRow kRows[] = {
    {&kSum, "fold", reduction_why_not, make<ReductionCall>},  {&kMean, "fold", reduction_why_not, make<ReductionCall>},
    {&kMax, "fold", reduction_why_not, make<ReductionCall>},  {&kMin, "fold", reduction_why_not, make<ReductionCall>},
    {&kProd, "fold", reduction_why_not, make<ReductionCall>},
};

}  // namespace

std::span<const KernelRow> reduce_kernels() { return kRows; }

}  // namespace outrace::cpu
