#include "outrace/backend/gpu/kernel_text.h"

#include "outrace/backend/gpu/kernel_rows.h"
#include "outrace/backend/gpu/texts.h"
#include "outrace/core/error.h"

namespace outrace::gpu {
namespace {

TextEdit planted = nullptr;

std::string_view text_of(std::string_view file) {
  for (const auto& [name, text] : embedded::gpu_kernels)
    if (name == file) return text;
  internal_error("a known file", std::string(file));
}

}  // namespace

KernelText::KernelText(const char* file) : file_(text_of(file)) {}

KernelText& KernelText::define(std::string_view name, std::string_view value) {
  head_ += cat("#define ", std::string(name), " ", std::string(value), "\n");
  return *this;
}

KernelText& KernelText::define(std::string_view name, int64_t value) { return define(name, std::to_string(value)); }

KernelText& KernelText::add(std::string_view printed) {
  head_ += printed;
  return *this;
}

KernelText& KernelText::index(int64_t count) {
  indices_fit_ = count < kSmallSpace;
  define("DIVIDE(n, d, magic)", indices_fit_ ? "(i64)div_by((u32)(n), magic)" : "((n) / (d))");
  return define("INDEX", "i64");
}

KernelText& KernelText::program(std::string_view name, const TileProgram& program, const Plan& plan,
                                std::vector<Arg>& args) {
  PrintedProgram printed = print_program(name, program, plan, indices_fit_);
  head_ += printed.text;
  args = std::move(printed.args);
  if (name == "EPILOGUE") epilogue_inner_ = printed.inner;
  return *this;
}

KernelText& KernelText::prologue(const TileProgram& p, const Plan& plan) {
  return program("PROLOGUE", p, plan, prologue_args_);
}

KernelText& KernelText::epilogue(const TileProgram& p, const Plan& plan) {
  return program("EPILOGUE", p, plan, epilogue_args_);
}

std::string KernelText::source(const DeviceFacts& facts) const {
  const char* prelude = facts.language == Language::cuda ? "prelude_cuda.cl" : "prelude_opencl.cl";
  // Types come in by definitions: a text without doubles spares the compiler that half of the dialect.
  const bool doubles = facts.has_f64 && head_.find("f64") != std::string::npos;
  std::string out = doubles ? "#define HAS_F64 1\n" : "#define HAS_F64 0\n";
  out += facts.is_cpu ? "#define ON_CPU 1\n" : "#define ON_CPU 0\n";
  out += facts.rounds_sqrt ? "#define ROUNDS_SQRT 1\n" : "#define ROUNDS_SQRT 0\n";
  out += text_of(prelude);
  out += text_of("common.cl");
  out += head_;
  out += file_;
  return planted != nullptr ? planted(std::move(out)) : out;
}

void edit_texts(TextEdit edit) { planted = edit; }

}  // namespace outrace::gpu
