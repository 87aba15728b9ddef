#include "outrace/backend/cpu/matmul.h"

#include <algorithm>

#include "outrace/backend/cpu/kernel_rows.h"
#include "outrace/backend/cpu/matmul_tail.h"
#include "outrace/core/aligned.h"
#include "outrace/core/error.h"
#include "outrace/core/thread.h"

namespace outrace::cpu {
namespace {

bool is_packed(const View& view, const Plan& plan) { return plan.values[view.value].layout == Layout::panel; }

// The product as gemm() takes it; a packed weight that cannot be read as such (see make_own_matmul) counts as plain.
template <class T>
GemmCall<T> describe(const Call& call, const Plan& plan) {
  const View &a = call.operands[0], &b = call.operands[1];
  const Shape &a_shape = call.operand_shapes[0], &b_shape = call.operand_shapes[1];
  GemmCall<T> g;
  g.batch = a_shape[0];
  g.m = a_shape[1];
  g.k = a_shape[2];
  g.n = b_shape[2];
  g.a_batch = a.strides[0];
  g.a_row = a.strides[1];
  g.a_col = a.strides[2];
  g.b_batch = b.strides[0];
  g.b_row = b.strides[1];
  g.b_col = b.strides[2];
  g.c_batch = g.m * g.n;
  if (call.layout == Layout::panel)
    g.form = GemmForm::packed_grad;
  else if (is_packed(b, plan))
    g.form = std::get<MatmulAttrs>(call.attrs).transpose_b ? GemmForm::packed_weight : GemmForm::packed_input;
  g.store_c = call.result >= 0;
  return g;
}

std::unique_ptr<TileKernel> compile_tail(const Call& call) {
  return call.epilogue.empty() ? nullptr : TileKernel::compile(call.epilogue);
}

template <class T>
class GemmCallOf final : public ResolvedCall {
 public:
  using Kernel = void (*)(const GemmCall<T>&, const GemmPointers<T>&);

  GemmCallOf(const Call& call, const Plan& plan, Kernel kernel)
      : kernel_(kernel),
        gemm_(describe<T>(call, plan)),
        a_(Place::of(call.operands[0], plan)),
        b_(Place::of(call.operands[1], plan)),
        c_{call.result, 0},
        tail_(compile_tail(call)) {
    if (tail_) gemm_.epilogue = run_tail<T>;
    if (gemm_.form == GemmForm::packed_grad && is_packed(call.operands[1], plan)) unpack(call);
  }

  void run(const Frame& frame) override {
    const T* b = static_cast<const T*>(b_.at(frame));
    if (unpacked_) {
      unpack_weight(b, unpacked_.get(), weight_rows_, weight_columns_);
      b = unpacked_.get();
    }
    const Tail tail{tail_.get(), frame.values, frame.scalars, gemm_.c_batch};
    kernel_(gemm_, {static_cast<const T*>(a_.at(frame)), b, static_cast<T*>(c_.at(frame)), &tail});
  }

  std::string detail() const override { return tail_ ? tail_->description() : ""; }

 private:
  // The product of something with a packed weight, stored packed itself: gemm() packs one side only, so the weight is
  // unpacked first.
  void unpack(const Call& call) {
    const bool transposed = std::get<MatmulAttrs>(call.attrs).transpose_b;
    weight_rows_ = transposed ? gemm_.n : gemm_.k;
    weight_columns_ = transposed ? gemm_.k : gemm_.n;
    gemm_.b_row = transposed ? 1 : weight_columns_;
    gemm_.b_col = transposed ? weight_columns_ : 1;
    unpacked_ = aligned_array<T>(weight_rows_ * weight_columns_);
  }

  Kernel kernel_;
  GemmCall<T> gemm_;
  Place a_, b_, c_;
  std::unique_ptr<TileKernel> tail_;
  AlignedArray<T> unpacked_;
  int64_t weight_rows_ = 0, weight_columns_ = 0;
};

// ---- oneDNN ----

// The epilogue takes this many elements a task, some 20 us.
constexpr int64_t kTailTask = 64 << 10;

class OnednnCall final : public ResolvedCall {
 public:
  OnednnCall(const Call& call, const Plan& plan)
      : gemm_(describe<float>(call, plan)),
        a_(Place::of(call.operands[0], plan)),
        b_(Place::of(call.operands[1], plan)),
        c_{call.result, 0},
        tail_(compile_tail(call)) {
    if (!gemm_.store_c) result_ = aligned_array<float>(gemm_.batch * gemm_.c_batch);
    gemm_.store_c = true;
  }

  void run(const Frame& frame) override {
    float* c = result_ ? result_.get() : static_cast<float*>(c_.at(frame));
    dnnl_gemm(gemm_, {static_cast<const float*>(a_.at(frame)), static_cast<const float*>(b_.at(frame)), c, nullptr});
    if (!tail_) return;
    const int64_t count = gemm_.batch * gemm_.c_batch;
    parallel_for((count + kTailTask - 1) / kTailTask, [&](int64_t task) {
      const int64_t first = task * kTailTask;
      tail_->run(frame.values, frame.scalars, c + first, first, std::min(kTailTask, count - first));
    });
  }

  std::string detail() const override { return tail_ ? tail_->description() : ""; }

 private:
  GemmCall<float> gemm_;
  Place a_, b_, c_;
  std::unique_ptr<TileKernel> tail_;
  AlignedArray<float> result_;
};

}  // namespace

const char* matmul_operands_why_not(const Call& call) {
  if (call.operands.size() != 2) return "a product has two operands";
  if (call.operands[0].value < 0 || call.operands[1].value < 0) return "an operand is a scalar without memory";
  return nullptr;
}

const char* onednn_matmul_why_not(const Call& call, const Plan& plan) {
  if (call.dtype != DType::f32) return "computes f32 only";
  if (const char* why = matmul_operands_why_not(call)) return why;
  GemmCall<float> g = describe<float>(call, plan);
  g.store_c = true;
  if (const char* why = dnnl_gemm_why_not(g)) return why;
  // GFLOP/s of one Zen 3 core (AVX2), ours and oneDNN's: 2048^3 89 and 41, 1024^3 with a transposed weight 89 and 79,
  // 512 x 3072 x 768 88 and 83, 64 x 1000 x 512 87 and 97. A rule that takes oneDNN for some sizes must go by size
  // alone and never by what follows: fusion must not change the order of summation.
  if (!is_preferred("matmul", "onednn"))
    return "our own kernel is as fast (OUTRACE_KERNELS=matmul:onednn takes this one)";
  return nullptr;
}

std::unique_ptr<ResolvedCall> make_onednn_matmul(const Call& call, const Plan& plan) {
  return std::make_unique<OnednnCall>(call, plan);
}

const char* own_matmul_why_not(const Call& call, const Plan&) {
  if (call.dtype != DType::f32 && call.dtype != DType::f64) return "computes f32 and f64 only";
  return matmul_operands_why_not(call);
}

std::unique_ptr<ResolvedCall> make_own_matmul(const Call& call, const Plan& plan) {
  if (call.dtype == DType::f64) return std::make_unique<GemmCallOf<double>>(call, plan, gemm<double>);
  return std::make_unique<GemmCallOf<float>>(call, plan, gemm<float>);
}

std::unique_ptr<ResolvedCall> make_reference_matmul(const Call& call, const Plan& plan) {
  if (call.dtype == DType::f64) return std::make_unique<GemmCallOf<double>>(call, plan, gemm_reference<double>);
  return std::make_unique<GemmCallOf<float>>(call, plan, gemm_reference<float>);
}

namespace {
const KernelRow kRows[] = {
    {&kMatmul, "onednn", onednn_matmul_why_not, make_onednn_matmul},
    {&kMatmul, "own", own_matmul_why_not, make_own_matmul},
    {&kMatmul, "widened", widened_matmul_why_not, make_widened_matmul},
    {&kMatmul, "integer", integer_matmul_why_not, make_integer_matmul},
    {&kMatmul, "reference", own_matmul_why_not, make_reference_matmul},
};
}  // namespace

std::span<const KernelRow> matmul_kernels() { return kRows; }

}  // namespace outrace::cpu
