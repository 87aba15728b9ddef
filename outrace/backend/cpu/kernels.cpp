#include "outrace/backend/cpu/kernels.h"

#include <algorithm>
#include <vector>

#include "outrace/backend/cpu/fill.h"
#include "outrace/backend/cpu/matmul.h"
#include "outrace/backend/cpu/reduce.h"
#include "outrace/backend/cpu/relayout.h"
#include "outrace/backend/cpu/rows.h"
#include "outrace/backend/cpu/tile.h"
#include "outrace/core/env.h"
#include "outrace/core/error.h"
#include "outrace/ops/op_def.h"

namespace outrace::cpu {
namespace {

DType stored(const View& view, const Plan& plan) { return plan.values[view.value].dtype; }

// ---- tile programs alone ----

class TileCall final : public ResolvedCall {
 public:
  TileCall(const Call& call, const Plan&) : kernel_(TileKernel::compile(call.epilogue)) {}
  void run(const Frame& f) override { kernel_->run_all(f.values, f.scalars); }
  std::string detail() const override { return kernel_->description(); }

 private:
  std::unique_ptr<TileKernel> kernel_;
};

const char* always(const Call&, const Plan&) { return nullptr; }

// ---- reductions ----

DType sum_type(DType t) { return t == DType::f64 ? DType::f64 : is_float(t) ? DType::f32 : DType::i64; }

DType reduced_type(const Call& call, const Plan& plan) {
  return call.prologue.empty() ? stored(call.operands[0], plan) : call.prologue.compute;
}

ReduceKind kind_of(const OpDef* op) {
  return op == &kSum ? ReduceKind::sum : op == &kMean ? ReduceKind::mean : ReduceKind::max;
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

// ---- ops that read and write whole arrays ----

const char* whole_why_not(const Call& call, size_t operands) {
  if (call.operands.size() != operands) return "an operand is missing, or a scalar without memory";
  for (const View& v : call.operands)
    if (v.value < 0) return "an operand is a scalar without memory";
  if (call.result < 0 || !call.epilogue.empty()) return "stores its result, and nothing follows";
  return nullptr;
}

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

const char* random_why_not(const Call& call, const Plan&) {
  if (call.scalars.size() != 2) return "needs a seed and a serial";
  if (const char* why = whole_why_not(call, 0)) return why;
  const bool integers = std::get<RandomAttrs>(call.attrs).distribution == Distribution::integer;
  return integers || is_float(call.dtype) ? nullptr : "uniform and normal numbers are floats";
}

class RandomCall final : public ResolvedCall {
 public:
  RandomCall(const Call& call, const Plan&)
      : attrs_(std::get<RandomAttrs>(call.attrs)),
        dtype_(call.dtype),
        count_(call.shape.numel()),
        seed_(call.scalars[0]),
        serial_(call.scalars[1]),
        result_{call.result, 0} {}
  void run(const Frame& f) override {
    const RandomState state{static_cast<uint64_t>(f.scalars[seed_].integer),
                            static_cast<uint64_t>(f.scalars[serial_].integer)};
    fill_random(attrs_, state, dtype_, result_.at(f), count_);
  }

 private:
  RandomAttrs attrs_;
  DType dtype_;
  int64_t count_;
  int seed_, serial_;
  Place result_;
};

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

template <class C>
std::unique_ptr<ResolvedCall> make(const Call& call, const Plan& plan) {
  return std::make_unique<C>(call, plan);
}

const KernelRow kRows[] = {
    {nullptr, "tiles", always, make<TileCall>},
    {&kMatmul, "onednn", onednn_matmul_why_not, make_onednn_matmul},
    {&kMatmul, "own", own_matmul_why_not, make_own_matmul},
    {&kMatmul, "widened", widened_matmul_why_not, make_widened_matmul},
    {&kMatmul, "integer", integer_matmul_why_not, make_integer_matmul},
    {&kMatmul, "reference", own_matmul_why_not, make_reference_matmul},
    {&kSum, "fold", reduction_why_not, make<ReductionCall>},
    {&kMean, "fold", reduction_why_not, make<ReductionCall>},
    {&kMax, "fold", reduction_why_not, make<ReductionCall>},
    {&kSoftmax, "rows", softmax_why_not, make<SoftmaxCall>},
    {&kLogSoftmax, "rows", softmax_why_not, make<SoftmaxCall>},
    {&kCrossEntropy, "rows", loss_why_not, make<LossCall>},
    {&kCrossEntropyGrad, "rows", loss_why_not, make<LossGradientCall>},
    {&kRandom, "philox", random_why_not, make<RandomCall>},
    {&kPad, "pad", pad_why_not, make<PadCall>},
    {&kRelayout, "panels", relayout_why_not, make<RelayoutCall>},
};

std::string_view op_name(const KernelRow& row) { return row.op != nullptr ? row.op->name : "elementwise"; }

std::string row_name(const KernelRow& row) { return cat(op_name(row), ":", row.name); }

std::string& preferred() {
  static auto* rows = new std::string;  // ",matmul:reference,"
  return *rows;
}

// Commas around each, so that a name is found whole.
std::string checked(std::string_view text, std::string_view source) {
  std::string out = ",";
  while (!text.empty()) {
    const std::string_view name = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), name.size() + 1));
    const bool known =
        std::any_of(std::begin(kRows), std::end(kRows), [&](const KernelRow& r) { return row_name(r) == name; });
    if (!known) {
      std::string all;
      for (const KernelRow& r : kRows) all += (all.empty() ? "" : ", ") + row_name(r);
      fail(ErrorKind::option, "[kernels] ", source, " names no kernel of the CPU: '", name, "'; there are ", all);
    }
    out += cat(name, ",");
  }
  return out;
}

void read_environment() {
  static const bool once = [] {
    preferred() = checked(env_string("OUTRACE_KERNELS"), "OUTRACE_KERNELS");
    return true;
  }();
  static_cast<void>(once);
}

}  // namespace

std::span<const KernelRow> kernel_rows() { return kRows; }

void prefer_kernels(std::string_view rows) {
  read_environment();
  preferred() = checked(rows, "the choice");
}

bool is_preferred(std::string_view op, std::string_view kernel) {
  read_environment();
  return preferred().size() > 1 && preferred().find(cat(",", op, ":", kernel, ",")) != std::string::npos;
}

const KernelRow& choose_kernel(const Call& call, const Plan& plan, std::string* passed_over) {
  for (const KernelRow& row : kRows)
    if (row.op == call.op && is_preferred(op_name(row), row.name) && row.why_not(call, plan) == nullptr) return row;
  std::string reasons;
  for (const KernelRow& row : kRows) {
    if (row.op != call.op) continue;
    const char* why = row.why_not(call, plan);
    if (why == nullptr) {
      if (passed_over != nullptr) *passed_over = reasons;
      return row;
    }
    reasons += cat(reasons.empty() ? "" : "; ", row.name, ": ", why);
  }
  fail(ErrorKind::device, "[", call.label, "] the CPU has no kernel for ", name_of(call.dtype), " ", call.shape,
       reasons.empty() ? "" : "; ", reasons);
}

}  // namespace outrace::cpu
