// The GPUs' kernels by op, best first, as on the CPU; and what a row's make() builds a call from.
// How to add a family: docs/gpu-kernels.md.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "outrace/backend/call_facts.h"
#include "outrace/backend/gpu/driver.h"
#include "outrace/backend/gpu/kernel_text.h"
#include "outrace/core/thread.h"
#include "outrace/graph/plan.h"
#include "outrace/ops/op_def.h"

namespace outrace::gpu {

class ErrorTexts;

// The fixed local size of kernels along one axis: every GPU has groups of 256, and PoCL builds anew for each size.
constexpr int kGroup = 256;

// How many groups and work-items of one axis cover `items`.
inline int64_t groups_for(int64_t items, int64_t each = kGroup) { return ceil_div(items, each); }

struct Grid {
  std::array<int64_t, 3> groups{1, 1, 1};
  std::array<int, 3> local{kGroup, 1, 1};
  bool lanes = false;  // of a LANES_KERNEL: kGroup items, one on CPU devices
};

// The launches of one program, call after call.
class CallBuilder {
 public:
  // Slots of the address table behind the plan's values.
  enum Extra : int { scalars, status, scratch_memory, kExtras };

  CallBuilder(Driver& driver, const Plan& plan, ErrorTexts& errors) : driver_(driver), plan_(plan), errors_(errors) {}
  void begin(const Call& call);  // scratch starts anew

  const DeviceFacts& facts() const { return driver_.facts(); }
  const Plan& plan() const { return plan_; }

  // Arguments.
  Arg array(const View& view) const;  // an operand, from its first element on
  Arg whole(int value) const { return Arg::array(value); }
  Arg scratch(int64_t bytes);   // memory of this call alone, not initialized; 256-byte aligned
  Arg scalar(int index) const;  // the plan's scalar: 16 bytes {i64 or f64, f32}
  Arg status_buffer() const;
  // What a kernel hands to REPORT: the number of a text, which gets the two values that the kernel reports.
  Arg error(std::function<std::string(int64_t value, int64_t at)> text);

  // Adds a launch of kernel `name` of `text`. Arguments: `args`, then those of the text's prologue and epilogue when
  // the kernel's signature names PROLOGUE_PARAMS and EPILOGUE_PARAMS.
  enum Fused : int { none = 0, prologue = 1, epilogue = 2, both = 3 };
  void launch(const KernelText& text, const char* name, const Grid& grid, std::vector<Arg> args, Fused fused = none);
  void library(std::shared_ptr<LibraryCall> call);
  // The product by the driver's library; null: it has no way to do it.
  std::shared_ptr<LibraryCall> product(const Product& p) {
    return driver_.product(p, [this](int64_t bytes) { return scratch(bytes); });
  }

  int64_t scratch_bytes() const { return most_scratch_; }
  bool reports() const { return reports_; }
  int numel_slots() const { return static_cast<int>(plan_.values.size()) + kExtras; }
  std::vector<Launch> take() { return std::move(launches_); }
  int launches() const { return static_cast<int>(launches_.size()); }

 private:
  int extra(Extra e) const { return static_cast<int>(plan_.values.size()) + e; }

  Driver& driver_;
  const Plan& plan_;
  ErrorTexts& errors_;
  std::vector<Launch> launches_;
  std::string label_;
  int64_t scratch_ = 0, most_scratch_ = 0;
  bool reports_ = false;
};

struct KernelRow {
  const OpDef* op;  // null: tile programs without a producer
  const char* name;
  const char* (*why_not)(const Call& call, const Plan& plan, const DeviceFacts& facts);
  void (*make)(const Call& call, CallBuilder& b);
};

// The rows of each family, best first within an op.
std::span<const KernelRow> elementwise_kernels();  // kernels_elementwise.cpp
std::span<const KernelRow> reduce_kernels();       // kernels_reduce.cpp
std::span<const KernelRow> library_kernels();      // kernels_library.cpp
std::span<const KernelRow> matmul_kernels();       // kernels_matmul.cpp
std::span<const KernelRow> row_kernels();          // kernels_rows.cpp
std::span<const KernelRow> random_kernels();       // kernels_random.cpp
std::span<const KernelRow> arg_reduce_kernels();   // kernels_arg_reduce.cpp
std::span<const KernelRow> scan_kernels();         // kernels_scan.cpp
std::span<const KernelRow> statistics_kernels();   // kernels_statistics.cpp
std::span<const KernelRow> layer_norm_kernels();   // kernels_norm.cpp
std::span<const KernelRow> order_kernels();        // kernels_sort.cpp
std::span<const KernelRow> index_kernels();        // kernels_index.cpp
std::span<const KernelRow> index_add_kernels();    // kernels_index_add.cpp
std::span<const KernelRow> bag_kernels();          // kernels_bag.cpp
std::span<const KernelRow> movement_kernels();     // kernels_move.cpp
std::span<const KernelRow> image_kernels();        // kernels_image.cpp

std::span<const KernelRow> kernel_rows();
// The first row that takes the call. Throws Error(device) "[op] opencl:0 has no kernel ..." with every row's reason if
// none does.
const KernelRow& choose_kernel(const Call& call, const Plan& plan, const DeviceFacts& facts,
                               std::string* passed_over = nullptr);
std::string name_of(const KernelRow& row);   // "sum:fold"
std::vector<std::string> reached_kernels();  // rows that calls were given since the start

// ---- what many why_not() and make() share ----

// A prologue that hands out operand `which` as it lies; for calls that have none.
TileProgram read_operand(const Call& call, size_t which, const Plan& plan, DType compute);
// What a kernel with tiles does with them: the call's epilogue, and a store of the result where it is stored.
TileProgram finish(const Call& call, DType compute);

}  // namespace outrace::gpu
