// Convolution and pooling as calls of a plan.
#include "outrace/backend/cpu/conv.h"
#include "outrace/backend/cpu/pooling.h"

namespace outrace::cpu {
namespace {

PoolCall describe(const Call& call, const Plan& plan) {
  return {.windows = std::get<PoolAttrs>(call.attrs),
          .images = call.shape[0],
          .channels = call.shape[3],
          .x = stored(call.operands[0], plan),
          .values = call.dtype};
}

template <size_t operands>
const char* pool_why_not(const Call& call, const Plan& plan) {
  if (const char* why = whole_why_not(call, operands)) return why;
  if (call.op == &kMaxPool || call.op == &kMaxPoolPick) return nullptr;
  return is_float(stored(call.operands[0], plan)) ? nullptr : "computes floats only";
}

class MaxPoolOf final : public ResolvedCall {
 public:
  MaxPoolOf(const Call& call, const Plan& plan)
      : pool_(describe(call, plan)),
        x_(Place::of(call.operands[0], plan)),
        values_(Place::of(call.operands.back(), plan)),
        y_{call.result, 0} {}
  void run(const Frame& f) override { max_pool_pick(pool_, x_.at(f), values_.at(f), y_.at(f)); }

 private:
  PoolCall pool_;
  Place x_, values_, y_;
};

class MaxPoolGradOf final : public ResolvedCall {
 public:
  MaxPoolGradOf(const Call& call, const Plan& plan)
      : pool_(describe(call, plan)),
        x_(Place::of(call.operands[0], plan)),
        g_(Place::of(call.operands[1], plan)),
        dx_{call.result, 0} {}
  void run(const Frame& f) override { max_pool_grad(pool_, x_.at(f), g_.at(f), dx_.at(f)); }

 private:
  PoolCall pool_;
  Place x_, g_, dx_;
};

template <void (*kernel)(const PoolCall&, const void*, void*)>
class AvgPoolOf final : public ResolvedCall {
 public:
  AvgPoolOf(const Call& call, const Plan& plan)
      : pool_(describe(call, plan)), from_(Place::of(call.operands[0], plan)), to_{call.result, 0} {}
  void run(const Frame& f) override { kernel(pool_, from_.at(f), to_.at(f)); }

 private:
  PoolCall pool_;
  Place from_, to_;
};

const KernelRow kRows[] = {
    {&kConv, "im2col", im2col_why_not, make_im2col},
    {&kConvInputGrad, "im2col", im2col_why_not, make_im2col},
    {&kConvWeightGrad, "im2col", im2col_why_not, make_im2col},
    {&kMaxPool, "windows", pool_why_not<1>, make<MaxPoolOf>},
    {&kMaxPoolPick, "windows", pool_why_not<2>, make<MaxPoolOf>},
    {&kMaxPoolGrad, "windows", pool_why_not<2>, make<MaxPoolGradOf>},
    {&kAvgPool, "windows", pool_why_not<1>, make<AvgPoolOf<avg_pool>>},
    {&kAvgPoolGrad, "windows", pool_why_not<1>, make<AvgPoolOf<avg_pool_grad>>},
};

}  // namespace

std::span<const KernelRow> image_kernels() { return kRows; }

}  // namespace outrace::cpu
