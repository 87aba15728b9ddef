// The CPU's kernels by op, and how a call of a plan gets one. Rows stand best first; the one whose why_not is silent is
// taken, so choosing a kernel and asking whether there is one are the same.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "outrace/graph/plan.h"

namespace outrace::cpu {

// The pointers of one run: one for each value of the plan (null where this run has none), and the plan's scalars.
struct Frame {
  void* const* values;
  const ScalarValue* scalars;
};

// Where an array of a call lies.
struct Place {
  int value = -1;  // -1: nowhere, at() is null
  int64_t offset_bytes = 0;

  void* at(const Frame& f) const { return value < 0 ? nullptr : static_cast<char*>(f.values[value]) + offset_bytes; }
  static Place of(const View& view, const Plan& plan) {
    return {view.value, view.value < 0 ? 0 : view.offset * size_of(plan.values[view.value].dtype)};
  }
};

// A call with everything decided: run() reads pointers and computes. By one thread at a time.
class ResolvedCall {
 public:
  virtual ~ResolvedCall() = default;
  virtual void run(const Frame& frame) = 0;
  virtual std::string detail() const { return ""; }  // what the tile program became: "adam"
};

struct KernelRow {
  const OpDef* op;  // null: tile programs without a producer
  const char* name;
  const char* (*why_not)(const Call& call, const Plan& plan);
  std::unique_ptr<ResolvedCall> (*make)(const Call& call, const Plan& plan);
};

std::span<const KernelRow> kernel_rows();

// The first row that takes the call. Throws Error(device) with every row's reason if none does. `passed_over`, if not
// null, gets "onednn: reads plain matrices only; ..." of the rows before it.
const KernelRow& choose_kernel(const Call& call, const Plan& plan, std::string* passed_over = nullptr);

// Rows to take before all others where they can: "matmul:reference,matmul:onednn". Starts as OUTRACE_KERNELS; for tests
// and tuning. Throws Error(option) that lists the rows if one is unknown. Programs that are compiled already keep their
// kernels.
void prefer_kernels(std::string_view rows);
bool is_preferred(std::string_view op, std::string_view kernel);

// Rows that calls were given since the start: "matmul:own". For the test that every row is reached.
std::vector<std::string> reached_kernels();
std::string name_of(const KernelRow& row);  // "matmul:own"; "elementwise:tiles"

}  // namespace outrace::cpu
