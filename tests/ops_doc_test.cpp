// label: null
// docs/ops.md is what the lists in the code say. After a change: OUTRACE_UPDATE_DOCS=1 build/bin/ops_doc_test
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "outrace/backend/cpu/kernels.h"
#include "outrace/core/error.h"
#include "outrace/ops/op_def.h"

namespace outrace {
namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// In a cell of a table a bar would end it.
std::string cell(std::string text) {
  for (size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) text.insert(at, "\\");
  return text;
}
std::string code(const std::string& text) { return text.empty() ? "" : "`" + cell(text) + "`"; }

const char* name_of(Autocast a) { return a == Autocast::narrow ? "narrow" : a == Autocast::wide ? "wide" : "follow"; }

std::string elementwise_table() {
  std::string out = "| op | value | gradient | types | autocast |\n|---|---|---|---|---|\n";
  const auto row = [&](const std::string& name, const std::string& value, const std::string& gradient, bool real) {
    for (const OpDef* op : all_ops())
      if (op->name == name)
        out += cat("| ", code(name), " | ", code(value), " | ", gradient, " | ", real ? "floating point" : "any", " | ",
                   name_of(op->autocast), " |\n");
  };
  const bool real = true, any = false;
  const auto gradient = [](const std::string& text) { return text == "Tensor()" ? "none" : code(text); };
#define UNARY(name, value, gx, types, autocast, low, high) row(#name, #value, gradient(#gx), types);
#define BINARY(name, value, gx, gz, types, autocast, low, high) \
  row(#name, #value, "x: " + gradient(#gx) + "<br>z: " + gradient(#gz), types);
#define COMPARE(name, value) row(#name, #value, "none", false);
#define SELECT(name, value, gz, gw, low, high) \
  row(#name, #value, "z: " + gradient(#gz) + "<br>w: " + gradient(#gw), false);
#include "outrace/ops/ops.def"
#undef UNARY
#undef BINARY
#undef COMPARE
#undef SELECT
  return out;
}

std::string structured_table() {
  std::string out =
      "| op | derivative | in other ops | autocast | kernels of the CPU, best first |\n|---|---|---|---|---|\n";
  std::vector<const OpDef*> ops;
  for (const OpDef* op : all_ops())
    if (op->kind == OpKind::producer || op->kind == OpKind::movement) ops.push_back(op);
  std::ranges::sort(ops, {}, [](const OpDef* op) { return std::string_view(op->name); });
  for (const OpDef* op : ops) {
    std::string kernels;
    for (const cpu::KernelRow& row : cpu::kernel_rows())
      if (row.op == op) kernels += cat(kernels.empty() ? "" : ", ", row.name);
    if (op->kind == OpKind::movement) kernels = "none: read through strides";
    out += cat("| ", code(op->name), " | ", op->derivative ? "yes" : "no", " | ", op->decompose ? "yes" : "no", " | ",
               name_of(op->autocast), " | ", kernels, " |\n");
  }
  return out;
}

// A header as a reader of the documentation wants it: its first comment as text, its declarations as code.
std::string header_text(const fs::path& path) {
  std::istringstream lines(read(path));
  std::string intro, body, line;
  bool in_intro = true, in_detail = false;
  while (std::getline(lines, line)) {
    if (in_intro && line.starts_with("//")) {
      intro += (intro.empty() ? "" : " ") + line.substr(std::min<size_t>(3, line.size()));
      continue;
    }
    in_intro = false;
    if (line == "namespace detail {") in_detail = true;
    if (line.starts_with("}  // namespace detail")) {
      in_detail = false;
      continue;
    }
    const bool noise = in_detail || line.starts_with("#") || line.starts_with("namespace ") ||
                       line.starts_with("}  //") || line.ends_with("\\");
    if (!noise && !(line.empty() && (body.empty() || body.ends_with("\n\n")))) body += line + "\n";
  }
  while (body.ends_with("\n\n")) body.pop_back();
  return cat("### ", path.filename().string(), "\n\n", intro, "\n\n```cpp\n", body, "```\n");
}

TEST(OpsDoc, IsWhatTheCodeSays) {
  const fs::path root = OUTRACE_SOURCE_DIR;
  std::string text =
      "# Ops\n\n"
      "Generated from the lists in the code (`tests/ops_doc_test.cpp` checks it; `OUTRACE_UPDATE_DOCS=1 "
      "build/bin/ops_doc_test` writes it anew).\n\n"
      "## Elementwise\n\n"
      "One row of `outrace/ops/ops.def` each: `x`, `z`, `w` are the inputs, `y` the output, `g` the upstream gradient. "
      "Inputs broadcast as NumPy's; of two dtypes the wider is taken. Each has `f(x)`; those of two inputs also take a "
      "number on either side, and the in-place form is `x.f_()`. autocast is the class of mixed precision: narrow may "
      "run "
      "in bf16 or f16, wide runs in f32, follow takes the widest of its inputs.\n\n" +
      elementwise_table() +
      "\n## Structured\n\n"
      "What the graph records besides. Everything below under Functions is made of these and of the elementwise "
      "rows.\n\n" +
      structured_table() + "\n## Functions\n\n";
  std::vector<fs::path> headers;
  for (const auto& entry : fs::directory_iterator(root / "outrace/ops"))
    if (entry.path().extension() == ".h") headers.push_back(entry.path());
  std::ranges::sort(headers);
  for (const fs::path& path : headers) {
    const std::string name = path.filename().string();
    // What users do not call: the lists themselves, and the header that includes all others.
    if (name == "attrs.h" || name == "op_def.h" || name == "elementwise_op.h" || name == "ops.h") continue;
    text += header_text(path) + "\n";
  }
  text.pop_back();
  const fs::path file = root / "docs/ops.md";
  if (std::getenv("OUTRACE_UPDATE_DOCS") != nullptr) std::ofstream(file) << text;
  EXPECT_TRUE(read(file) == text) << "docs/ops.md is old; write it with OUTRACE_UPDATE_DOCS=1 build/bin/ops_doc_test";
}

}  // namespace
}  // namespace outrace
