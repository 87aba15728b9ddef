// Layer norm, RMS norm and their derivatives as calls of a plan.
#include "outrace/backend/cpu/kernel_rows.h"
#include "outrace/backend/cpu/norm.h"

namespace outrace::cpu {
namespace {

const char* norm_why_not(const Call& call, const Plan& plan) {
  if (const char* why = whole_why_not(call, call.operands.size())) return why;
  if (call.operand_shapes[0].rank() == 0) return "needs an axis";
  return is_float(stored(call.operands[0], plan)) ? nullptr : "computes floats only";
}

NormCall describe(const Call& call, const Plan& plan) {
  const auto& attrs = std::get<NormAttrs>(call.attrs);
  const Shape& x = call.operand_shapes[0];
  const int64_t columns = x.back();
  return {.dtype = stored(call.operands[0], plan),
          .rows = columns == 0 ? 0 : x.numel() / columns,
          .columns = columns,
          .eps = attrs.eps,
          .centered = attrs.centered};
}

class NormOf final : public ResolvedCall {
 public:
  NormOf(const Call& call, const Plan& plan)
      : norm_(describe(call, plan)), x_(Place::of(call.operands[0], plan)), y_{call.result, 0} {
    if (call.operands.size() > 1) weight_ = Place::of(call.operands[1], plan);
    if (call.operands.size() > 2) bias_ = Place::of(call.operands[2], plan);
  }
  void run(const Frame& f) override { norm(norm_, x_.at(f), weight_.at(f), bias_.at(f), y_.at(f)); }

 private:
  NormCall norm_;
  Place x_, y_, weight_, bias_;
};

// Operands: x, g, and the weight if there is one.
class NormGradOf final : public ResolvedCall {
 public:
  NormGradOf(const Call& call, const Plan& plan)
      : norm_(describe(call, plan)),
        x_(Place::of(call.operands[0], plan)),
        g_(Place::of(call.operands[1], plan)),
        dx_{call.result, 0} {
    if (call.operands.size() > 2) weight_ = Place::of(call.operands[2], plan);
  }
  void run(const Frame& f) override { norm_backward(norm_, x_.at(f), weight_.at(f), g_.at(f), dx_.at(f)); }

 private:
  NormCall norm_;
  Place x_, g_, dx_, weight_;
};

class NormWeightGradOf final : public ResolvedCall {
 public:
  NormWeightGradOf(const Call& call, const Plan& plan)
      : norm_(describe(call, plan)),
        x_(Place::of(call.operands[0], plan)),
        g_(Place::of(call.operands[1], plan)),
        out_{call.result, 0} {}
  void run(const Frame& f) override { norm_weight_grad(norm_, x_.at(f), g_.at(f), out_.at(f)); }

 private:
  NormCall norm_;
  Place x_, g_, out_;
};

const KernelRow kRows[] = {
    {&kLayerNorm, "rows", norm_why_not, make<NormOf>},
    {&kLayerNormGrad, "rows", norm_why_not, make<NormGradOf>},
    {&kLayerNormWeightGrad, "rows", norm_why_not, make<NormWeightGradOf>},
};

}  // namespace

std::span<const KernelRow> layer_norm_kernels() { return kRows; }

}  // namespace outrace::cpu
