// Matrix products by cuBLASLt.
#pragma once
#include <cublasLt.h>

#include <memory>
#include <string>

#include "outrace/backend/cuda/cuda_context.h"
#include "outrace/backend/gpu/product.h"

namespace outrace::cuda {

// clang-format off
#define OUTRACE_BLAS_FUNCTIONS(X)                                                                          \
  X(create, cublasLtCreate) X(version, cublasLtGetVersion) X(multiply, cublasLtMatmul)                     \
  X(heuristic, cublasLtMatmulAlgoGetHeuristic)                                                             \
  X(create_desc, cublasLtMatmulDescCreate) X(set_desc, cublasLtMatmulDescSetAttribute)                     \
  X(destroy_desc, cublasLtMatmulDescDestroy)                                                               \
  X(create_layout, cublasLtMatrixLayoutCreate) X(set_layout, cublasLtMatrixLayoutSetAttribute)             \
  X(destroy_layout, cublasLtMatrixLayoutDestroy)                                                           \
  X(create_wish, cublasLtMatmulPreferenceCreate) X(set_wish, cublasLtMatmulPreferenceSetAttribute)         \
  X(destroy_wish, cublasLtMatmulPreferenceDestroy)
// clang-format on

struct BlasApi {
#define OUTRACE_BLAS_MEMBER(member, function) decltype(&function) member = nullptr;
  OUTRACE_BLAS_FUNCTIONS(OUTRACE_BLAS_MEMBER)
#undef OUTRACE_BLAS_MEMBER
};

// False where it is missing, which is no fault: our own kernels multiply as well.
bool open_blas(const std::string& only, BlasApi& api);

class Blas {
 public:
  Blas(const BlasApi& api, Context& context);
  std::string version() const;
  // The product as a call; null if the library has no way to do it.
  std::shared_ptr<gpu::LibraryCall> product(const gpu::Product& product, const gpu::Scratch& scratch);

 private:
  const BlasApi& api_;
  Context& context_;
  cublasLtHandle_t handle_ = nullptr;
};

}  // namespace outrace::cuda
