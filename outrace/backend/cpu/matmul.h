// Matrix products of plans: which form of backend/cpu/gemm.h a call has, and what follows it.
#pragma once
#include "outrace/backend/cpu/kernels.h"

namespace outrace::cpu {

// Letters in these files: a product is C[batch, M, N] = A[batch, M, K] * B[batch, K, N].

// Null if both operands have memory.
const char* matmul_operands_why_not(const Call& call);

// oneDNN's sgemm, the epilogue as a second pass over the result.
const char* onednn_matmul_why_not(const Call& call, const Plan& plan);
std::unique_ptr<ResolvedCall> make_onednn_matmul(const Call& call, const Plan& plan);

// Our own kernel: f32 and f64, plain and packed.
const char* own_matmul_why_not(const Call& call, const Plan& plan);
std::unique_ptr<ResolvedCall> make_own_matmul(const Call& call, const Plan& plan);

// bf16 and f16: the operands widened to f32, our own kernel, the result narrowed once.
const char* widened_matmul_why_not(const Call& call, const Plan& plan);
std::unique_ptr<ResolvedCall> make_widened_matmul(const Call& call, const Plan& plan);

// Integers and bool, summed in i64; overflow wraps around.
const char* integer_matmul_why_not(const Call& call, const Plan& plan);
std::unique_ptr<ResolvedCall> make_integer_matmul(const Call& call, const Plan& plan);

// gemm_reference, for tests: what own takes.
std::unique_ptr<ResolvedCall> make_reference_matmul(const Call& call, const Plan& plan);

}  // namespace outrace::cpu
