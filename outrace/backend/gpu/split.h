// Fused programs that read or write more arrays than one kernel takes, in pieces.
#pragma once
#include "outrace/backend/gpu/kernel_rows.h"

namespace outrace::gpu {

// Arrays of one kernel: 16 bytes of parameters each and their strides stay within the 1024 that every device takes.
constexpr int kMostArrays = 24;

int count_arrays(const TileProgram& program);

// The same as programs to be run one after another, each with at most kMostArrays. Results that pass from one to the
// next lie in scratch memory; what the program stores is stored last, as it may lie where other pieces read.
std::vector<TileProgram> split_program(const TileProgram& program, CallBuilder& b);

// row.make(call), with a prologue or an epilogue that does not fit in the producer's kernel as programs of their own.
void make_call(const KernelRow& row, const Call& call, CallBuilder& b);

// Launches a program without a producer (kernels_elementwise.cpp).
void launch_program(const TileProgram& program, CallBuilder& b);

}  // namespace outrace::gpu
