#include "outrace/backend/cuda/cuda_blas.h"

#include <dlfcn.h>

#include <array>
#include <optional>

#include "outrace/backend/cuda/library_search.h"
#include "outrace/core/env.h"
#include "outrace/core/error.h"

namespace outrace::cuda {
namespace {

using gpu::Activation;
using gpu::Product;

// What NVIDIA advises for its newer cards.
constexpr size_t kMostWorkspace = 32 << 20;
// Addresses are at least so far aligned unless a view begins in the middle of an array.
constexpr uint32_t kAligned = 16;

cudaDataType_t data_type(DType t) {
  switch (t) {
    case DType::f64: return CUDA_R_64F;
    case DType::bf16: return CUDA_R_16BF;
    case DType::f16: return CUDA_R_16F;
    default: return CUDA_R_32F;
  }
}

cublasComputeType_t compute_type(DType t) {
  if (t == DType::f64) return CUBLAS_COMPUTE_64F;
  const bool tf32 = t == DType::f32 && env_int("OUTRACE_TF32", 0, 0, 1) == 1;
  return tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

cublasLtEpilogue_t epilogue_of(const Product& p) {
  const bool bias = p.bias.slot >= 0;
  switch (p.activation) {
    case Activation::relu: return bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
    case Activation::gelu_tanh: return bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
    case Activation::none: break;
  }
  return bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

void* address(const gpu::Arg& a, void* const* addresses) { return static_cast<char*>(addresses[a.slot]) + a.integer; }

bool is_aligned(const void* p) { return reinterpret_cast<uintptr_t>(p) % kAligned == 0; }

// The library counts columns first, so it is asked for the transposed product: c' = b' a'.
class BlasProduct final : public gpu::LibraryCall {
 public:
  BlasProduct(const BlasApi& api, Context& context, cublasLtHandle_t handle, const Product& p)
      : api_(api), context_(context), handle_(handle), p_(p) {
    const cudaDataType_t scale = p.a.dtype == DType::f64 ? CUDA_R_64F : CUDA_R_32F;
    check(api_.create_desc(&desc_, compute_type(p.a.dtype), scale));
    // A matrix whose rows are dense is, read columns first, its transpose.
    const auto operation = [](const Product::Matrix& m) { return m.column == 1 ? CUBLAS_OP_N : CUBLAS_OP_T; };
    set(CUBLASLT_MATMUL_DESC_TRANSA, operation(p.b));
    set(CUBLASLT_MATMUL_DESC_TRANSB, operation(p.a));
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(p));
    left_ = operand_layout(p.b, p.n, p.k);
    right_ = operand_layout(p.a, p.k, p.m);
    result_ = layout(p.c_dtype, p.n, p.m, p.n, p.m * p.n);
  }
  ~BlasProduct() override {
    for (cublasLtMatrixLayout_t l : {left_, right_, result_})
      if (l != nullptr) api_.destroy_layout(l);
    if (desc_ != nullptr) api_.destroy_desc(desc_);
  }

  // False: the library has no algorithm. Arrays begin aligned, so without one for any address only views that begin in
  // between are refused.
  bool choose() {
    if (!find(aligned_, kAligned)) return false;
    if (find(any_, static_cast<uint32_t>(size_of(p_.a.dtype)))) return true;
    any_ = aligned_;
    for (const gpu::Arg* a : {&p_.a.at, &p_.b.at, &p_.c, &p_.bias})
      if (a->integer % kAligned != 0) return false;
    return true;
  }
  size_t workspace_bytes() const { return std::max(aligned_.workspaceSize, any_.workspaceSize); }
  void set_workspace(const gpu::Arg& at) { workspace_ = at; }

  std::vector<int> slots() const override {
    std::vector<int> out{p_.a.at.slot, p_.b.at.slot, p_.c.slot};
    for (const gpu::Arg* optional : {&p_.bias, &workspace_})
      if (optional->slot >= 0) out.push_back(optional->slot);
    return out;
  }

  void enqueue(void* queue, void* const* addresses) override {
    const void *a = address(p_.a.at, addresses), *b = address(p_.b.at, addresses);
    void* c = address(p_.c, addresses);
    bool aligned = is_aligned(a) && is_aligned(b) && is_aligned(c);
    if (p_.bias.slot >= 0) {
      const void* bias = address(p_.bias, addresses);
      set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
      aligned &= is_aligned(bias);
    }
    const cublasLtMatmulHeuristicResult_t& way = aligned ? aligned_ : any_;
    void* workspace = workspace_.slot >= 0 ? address(workspace_, addresses) : nullptr;
    // Numbers of the scale's type; zero has the same bits in both.
    const float one = 1;
    const double wide_one = 1, zero = 0;
    const void* alpha = p_.a.dtype == DType::f64 ? static_cast<const void*>(&wide_one) : &one;
    check(api_.multiply(handle_, desc_, alpha, b, left_, a, right_, &zero, c, result_, c, result_, &way.algo, workspace,
                        way.workspaceSize, static_cast<CUstream>(queue)));
  }

 private:
  void check(cublasStatus_t code) {
    if (code != CUBLAS_STATUS_SUCCESS)
      fail(code == CUBLAS_STATUS_ALLOC_FAILED ? ErrorKind::memory : ErrorKind::device, "[matmul] ", context_.name,
           ": cuBLASLt says ", static_cast<int>(code));
  }

  template <class T>
  void set(cublasLtMatmulDescAttributes_t what, const T& value) {
    check(api_.set_desc(desc_, what, &value, sizeof value));
  }

  cublasLtMatrixLayout_t layout(DType t, int64_t rows, int64_t columns, int64_t ld, int64_t batch_step) {
    cublasLtMatrixLayout_t out = nullptr;
    check(api_.create_layout(&out, data_type(t), static_cast<uint64_t>(rows), static_cast<uint64_t>(columns), ld));
    if (p_.batch > 1) {
      const int32_t count = static_cast<int32_t>(p_.batch);
      check(api_.set_layout(out, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count));
      check(api_.set_layout(out, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &batch_step, sizeof batch_step));
    }
    return out;
  }
  // `rows` and `columns` of the operand as it is multiplied; it lies transposed where its rows are not dense.
  cublasLtMatrixLayout_t operand_layout(const Product::Matrix& m, int64_t rows, int64_t columns) {
    return m.column == 1 ? layout(m.dtype, rows, columns, m.row, m.batch)
                         : layout(m.dtype, columns, rows, m.column, m.batch);
  }

  bool find(cublasLtMatmulHeuristicResult_t& way, uint32_t alignment) {
    cublasLtMatmulPreference_t wish = nullptr;
    if (api_.create_wish(&wish) != CUBLAS_STATUS_SUCCESS) return false;
    api_.set_wish(wish, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &kMostWorkspace, sizeof kMostWorkspace);
    for (const auto which : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                             CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
      api_.set_wish(wish, which, &alignment, sizeof alignment);
    int found = 0;
    const cublasStatus_t code = api_.heuristic(handle_, desc_, left_, right_, result_, result_, wish, 1, &way, &found);
    api_.destroy_wish(wish);
    return code == CUBLAS_STATUS_SUCCESS && found > 0 && way.state == CUBLAS_STATUS_SUCCESS;
  }

  const BlasApi& api_;
  Context& context_;
  cublasLtHandle_t handle_;
  Product p_;
  gpu::Arg workspace_;
  cublasLtMatmulDesc_t desc_ = nullptr;
  cublasLtMatrixLayout_t left_ = nullptr, right_ = nullptr, result_ = nullptr;
  cublasLtMatmulHeuristicResult_t aligned_{}, any_{};
};

}  // namespace

bool open_blas(const std::string& only, BlasApi& table) {
  constexpr const char* kNames[] = {"libcublasLt.so.13", "libcublasLt.so.12"};
  void* library = open_library(kNames, only);
  if (library == nullptr) return false;
  bool whole = true;
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, name));
    whole &= function != nullptr;
  };
#define OUTRACE_FIND(member, function) find(table.member, #function);
  OUTRACE_BLAS_FUNCTIONS(OUTRACE_FIND)
#undef OUTRACE_FIND
  return whole;
}

Blas::Blas(const BlasApi& api, Context& context) : api_(api), context_(context) {
  if (const cublasStatus_t code = api_.create(&handle_); code != CUBLAS_STATUS_SUCCESS)
    fail(ErrorKind::device, "[open] ", context_.name, ": cuBLASLt says ", static_cast<int>(code));
}

std::string Blas::version() const {
  const size_t v = api_.version();
  return cat(static_cast<int64_t>(v / 10000), ".", static_cast<int64_t>(v / 100 % 100));
}

std::shared_ptr<gpu::LibraryCall> Blas::product(const Product& p, const gpu::Scratch& scratch) {
  auto call = std::make_shared<BlasProduct>(api_, context_, handle_, p);
  if (!call->choose()) return nullptr;
  if (call->workspace_bytes() > 0) call->set_workspace(scratch(static_cast<int64_t>(call->workspace_bytes())));
  return call;
}

}  // namespace outrace::cuda
