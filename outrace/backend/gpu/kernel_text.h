// The text of a family's kernels, completed: definitions, and fused programs printed in front of it.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "outrace/backend/gpu/driver.h"
#include "outrace/graph/plan.h"

namespace outrace::gpu {

// A tile program printed as a function, with macros NAME_PARAMS (of the kernel), NAME_ARRAYS (at its start) and
// NAME(i) or NAME(i, value), NAME_AT(i, outer, inner) or
// NAME_AT(i, outer, inner, value); see docs/gpu-kernels.md. `args` stand in the order of NAME_PARAMS.
struct PrintedProgram {
  std::string text;
  std::vector<Arg> args;
  int arrays = 0;
  int64_t inner = 0;  // size of the last axis that NAME_AT takes apart from the others; 0: it looks at i alone
};
// `indices_fit`: element numbers are u32 and axes are taken apart by multiplication.
PrintedProgram print_program(std::string_view name, const TileProgram& program, const Plan& plan, bool indices_fit);

// "add" as a C expression of compute type `compute` over the operands' texts.
std::string print_op(Ew op, DType compute, const std::string& x, const std::string& z, const std::string& w);
// A literal of the compute type, exact.
std::string print_literal(double value, DType compute);

// The dialect's names of types: "f32", "bf16", "b8" (bool).
std::string_view type_name(DType t);

// Element numbers below this are u32 in the texts: div_by() is exact below 2^31.
constexpr int64_t kSmallSpace = int64_t{1} << 31;

class KernelText {
 public:
  explicit KernelText(const char* file);  // "reduce.cl" of gpu/kernels

  KernelText& define(std::string_view name, std::string_view value);
  KernelText& define(std::string_view name, int64_t value);
  KernelText& define(std::string_view name, DType type) { return define(name, type_name(type)); }
  // Element numbers of every space the text walks are below `count`: defines INDEX, which is i64 (a u32 that may wrap
  // around keeps compilers for CPUs from seeing that neighbours lie side by side), and DIVIDE(n, d, magic), which
  // multiplies in u32 where the numbers fit. Before prologue() and epilogue().
  KernelText& index(int64_t count);
  KernelText& prologue(const TileProgram& program, const Plan& plan);  // PROLOGUE(i), of type COMPUTE
  KernelText& epilogue(const TileProgram& program, const Plan& plan);  // EPILOGUE(i, value)
  // Whether EPILOGUE_AT may be called with outer = i / size, inner = i % size: spares a division an element.
  bool epilogue_takes(int64_t size) const { return epilogue_inner_ == 0 || epilogue_inner_ == size; }
  int64_t epilogue_inner() const { return epilogue_inner_; }
  // Another fused program under a name of its own; its arguments are the caller's to pass.
  KernelText& program(std::string_view name, const TileProgram& program, const Plan& plan, std::vector<Arg>& args);

  bool indices_fit() const { return indices_fit_; }
  const std::vector<Arg>& prologue_args() const { return prologue_args_; }
  const std::vector<Arg>& epilogue_args() const { return epilogue_args_; }

  // The whole text: the language's prelude, the common part, definitions, the family's file.
  std::string source(const DeviceFacts& facts) const;

 private:
  std::string_view file_;
  std::string head_;
  std::vector<Arg> prologue_args_, epilogue_args_;
  bool indices_fit_ = true;
  int64_t epilogue_inner_ = 0;
};

}  // namespace outrace::gpu
