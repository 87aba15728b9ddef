// What the files that hold kernel rows share (kernels_*.cpp).
#pragma once
#include <memory>

#include "outrace/backend/cpu/kernels.h"
#include "outrace/ops/op_def.h"

namespace outrace::cpu {

// The rows of each family, best first within an op.
std::span<const KernelRow> matmul_kernels();      // matmul.cpp
std::span<const KernelRow> reduce_kernels();      // kernels_reduce.cpp
std::span<const KernelRow> axis_kernels();        // kernels_axis.cpp
std::span<const KernelRow> statistics_kernels();  // kernels_statistics.cpp
std::span<const KernelRow> row_op_kernels();      // kernels_rows.cpp
std::span<const KernelRow> movement_kernels();    // kernels_move.cpp
std::span<const KernelRow> layer_norm_kernels();  // kernels_norm.cpp
std::span<const KernelRow> random_kernels();      // kernels_random.cpp
std::span<const KernelRow> index_kernels();       // kernels_index.cpp

inline DType stored(const View& view, const Plan& plan) { return plan.values[view.value].dtype; }

// Why a kernel that reads `operands` whole arrays and writes one cannot take the call; null if it can.
inline const char* whole_why_not(const Call& call, size_t operands) {
  if (call.operands.size() != operands) return "an operand is missing, or a scalar without memory";
  for (const View& v : call.operands)
    if (v.value < 0) return "an operand is a scalar without memory";
  if (call.result < 0 || !call.epilogue.empty()) return "stores its result, and nothing follows";
  return nullptr;
}

template <class C>
std::unique_ptr<ResolvedCall> make(const Call& call, const Plan& plan) {
  return std::make_unique<C>(call, plan);
}

}  // namespace outrace::cpu
