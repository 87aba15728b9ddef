// What the files that hold kernel rows share (kernels_*.cpp).
#pragma once
#include <memory>

#include "outrace/backend/call_facts.h"
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
std::span<const KernelRow> image_kernels();       // kernels_conv.cpp
std::span<const KernelRow> random_kernels();      // kernels_random.cpp
std::span<const KernelRow> index_kernels();       // kernels_index.cpp

template <class C>
std::unique_ptr<ResolvedCall> make(const Call& call, const Plan& plan) {
  return std::make_unique<C>(call, plan);
}

}  // namespace outrace::cpu
