// Products of types that are computed in another: operands converted to dense arrays first, results converted as they
// leave.
#include <algorithm>

#include "outrace/backend/cpu/matmul.h"
#include "outrace/backend/cpu/matmul_tail.h"
#include "outrace/core/aligned.h"
#include "outrace/core/thread.h"

namespace outrace::cpu {
namespace {

// An operand copied to dense memory in the type W of the arithmetic.
template <class W>
class Widened {
 public:
  Widened(const View& view, const Shape& shape, const Plan& plan)
      : place_{view.value, 0}, batch_stride_(view.strides[0] == 0 ? 0 : shape[1] * shape[2]) {
    const Shape stored{batch_stride_ == 0 ? 1 : shape[0], shape[1], shape[2]};
    TileLoad load;
    load.dtype = plan.values[view.value].dtype;
    load.view = {0, view.offset, view.strides};
    TileProgram program;
    program.compute = dtype_of<W>();
    program.space = stored;
    program.loads.push_back(load);
    program.stores.push_back({0, {1, 0, contiguous_strides(stored)}, program.compute});
    copy_ = TileKernel::compile(program);
    memory_ = aligned_array<W>(stored.numel());
  }

  const W* read(const Frame& frame) {
    void* values[] = {place_.at(frame), memory_.get()};
    copy_->run_all(values, frame.scalars);
    return memory_.get();
  }
  int64_t batch_stride() const { return batch_stride_; }

 private:
  Place place_;
  int64_t batch_stride_;
  std::unique_ptr<TileKernel> copy_;
  AlignedArray<W> memory_;
};

// Stores results of type W as `dtype`.
template <class W>
std::unique_ptr<TileKernel> compile_narrowing(DType dtype, int64_t count) {
  TileLoad load;
  load.kind = TileLoad::Kind::producer;
  load.dtype = dtype_of<W>();
  TileProgram program;
  program.compute = dtype_of<W>();
  program.space = Shape{count};
  program.loads.push_back(load);
  program.stores.push_back({0, {0, 0, contiguous_strides(program.space)}, dtype});
  return TileKernel::compile(program);
}

class WidenedCall final : public ResolvedCall {
 public:
  WidenedCall(const Call& call, const Plan& plan)
      : a_(call.operands[0], call.operand_shapes[0], plan),
        b_(call.operands[1], call.operand_shapes[1], plan),
        c_{call.result, 0},
        narrow_(compile_narrowing<float>(call.dtype, call.shape.numel())) {
    gemm_.batch = call.operand_shapes[0][0];
    gemm_.m = call.operand_shapes[0][1];
    gemm_.n = call.operand_shapes[1][2];
    gemm_.k = call.operand_shapes[0][2];
    gemm_.a_batch = a_.batch_stride();
    gemm_.a_row = gemm_.k;
    gemm_.a_col = gemm_.b_col = 1;
    gemm_.b_batch = b_.batch_stride();
    gemm_.b_row = gemm_.n;
    gemm_.c_batch = gemm_.m * gemm_.n;
    gemm_.store_c = false;
    gemm_.epilogue = run_tail<float>;
  }

  void run(const Frame& frame) override {
    void* result = c_.at(frame);
    const Tail tail{narrow_.get(), &result, frame.scalars, gemm_.c_batch};
    gemm(gemm_, {a_.read(frame), b_.read(frame), nullptr, &tail});
  }

 private:
  GemmCall<float> gemm_;
  Widened<float> a_, b_;
  Place c_;
  std::unique_ptr<TileKernel> narrow_;
};

class IntegerCall final : public ResolvedCall {
 public:
  IntegerCall(const Call& call, const Plan& plan)
      : batch_(call.operand_shapes[0][0]),
        m_(call.operand_shapes[0][1]),
        n_(call.operand_shapes[1][2]),
        k_(call.operand_shapes[0][2]),
        a_(call.operands[0], call.operand_shapes[0], plan),
        b_(call.operands[1], call.operand_shapes[1], plan),
        c_{call.result, 0},
        narrow_(compile_narrowing<int64_t>(call.dtype, call.shape.numel())) {
    sums_ = aligned_array<int64_t>(batch_ * m_ * n_);
  }

  void run(const Frame& frame) override {
    const int64_t *a = a_.read(frame), *b = b_.read(frame);
    void* result = c_.at(frame);
    parallel_for(batch_ * m_, [&](int64_t row) {
      const int64_t batch = row / m_;
      int64_t* sums = sums_.get() + row * n_;
      std::fill_n(sums, n_, 0);
      for (int64_t k = 0; k < k_; ++k) {
        const int64_t x = a[batch * a_.batch_stride() + row % m_ * k_ + k];
        const int64_t* z = b + batch * b_.batch_stride() + k * n_;
        for (int64_t j = 0; j < n_; ++j) sums[j] = wrapping_multiply_add(x, z[j], sums[j]);
      }
      narrow_->run(&result, frame.scalars, sums, row * n_, n_);
    });
  }

 private:
  static int64_t wrapping_multiply_add(int64_t x, int64_t z, int64_t sum) {
    return static_cast<int64_t>(static_cast<uint64_t>(sum) + static_cast<uint64_t>(x) * static_cast<uint64_t>(z));
  }

  int64_t batch_, m_, n_, k_;
  Widened<int64_t> a_, b_;
  Place c_;
  std::unique_ptr<TileKernel> narrow_;
  AlignedArray<int64_t> sums_;
};

// What Widened reads and compile_narrowing writes: plain arrays, no epilogue.
const char* converted_why_not(const Call& call, const Plan& plan) {
  if (const char* why = matmul_operands_why_not(call)) return why;
  if (call.layout == Layout::panel || plan.values[call.operands[1].value].layout == Layout::panel)
    return "packed weights are f32 or f64";
  if (!call.epilogue.empty() || call.result < 0) return "stores its result, and nothing follows";
  return nullptr;
}

}  // namespace

const char* widened_matmul_why_not(const Call& call, const Plan& plan) {
  if (call.dtype != DType::bf16 && call.dtype != DType::f16) return "computes bf16 and f16 only";
  return converted_why_not(call, plan);
}

std::unique_ptr<ResolvedCall> make_widened_matmul(const Call& call, const Plan& plan) {
  return std::make_unique<WidenedCall>(call, plan);
}

const char* integer_matmul_why_not(const Call& call, const Plan& plan) {
  if (is_float(call.dtype)) return "computes integers only";
  return converted_why_not(call, plan);
}

std::unique_ptr<ResolvedCall> make_integer_matmul(const Call& call, const Plan& plan) {
  return std::make_unique<IntegerCall>(call, plan);
}

}  // namespace outrace::cpu
