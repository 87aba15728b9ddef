#include "outrace/backend/cpu/kernels.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "outrace/backend/cpu/kernel_rows.h"
#include "outrace/backend/cpu/tile.h"
#include "outrace/core/env.h"
#include "outrace/core/error.h"

namespace outrace::cpu {
namespace {

// A tile program without a producer.
class TileCall final : public ResolvedCall {
 public:
  TileCall(const Call& call, const Plan&) : kernel_(TileKernel::compile(call.epilogue)) {}
  void run(const Frame& f) override { kernel_->run_all(f.values, f.scalars); }
  std::string detail() const override { return kernel_->description(); }

 private:
  std::unique_ptr<TileKernel> kernel_;
};

const char* always(const Call&, const Plan&) { return nullptr; }

const std::vector<KernelRow>& rows() {
  static const std::vector<KernelRow> all = [] {
    std::vector<KernelRow> list{{nullptr, "tiles", always, make<TileCall>}};
    for (const auto family : {matmul_kernels, reduce_kernels, axis_kernels, statistics_kernels, row_op_kernels,
                              layer_norm_kernels, movement_kernels, index_kernels, image_kernels, random_kernels})
      list.insert(list.end(), family().begin(), family().end());
    return list;
  }();
  return all;
}

std::string_view op_name(const KernelRow& row) { return row.op != nullptr ? row.op->name : "elementwise"; }

// Which rows were chosen, by position.
std::vector<std::atomic<bool>>& reached() {
  static auto* flags = new std::vector<std::atomic<bool>>(rows().size());
  return *flags;
}

const KernelRow& take(const KernelRow& row) {
  reached()[static_cast<size_t>(&row - rows().data())].store(true, std::memory_order_relaxed);
  return row;
}

std::string& preferred() {
  static auto* rows = new std::string;  // ",matmul:reference,"
  return *rows;
}

// Commas around each, so that a name is found whole.
std::string checked(std::string_view text, std::string_view source) {
  std::string out = ",";
  while (!text.empty()) {
    const std::string_view name = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), name.size() + 1));
    const bool known =
        std::any_of(rows().begin(), rows().end(), [&](const KernelRow& r) { return name_of(r) == name; });
    if (!known) {
      std::string all;
      for (const KernelRow& r : rows()) all += (all.empty() ? "" : ", ") + name_of(r);
      fail(ErrorKind::option, "[kernels] ", source, " names no kernel of the CPU: '", name, "'; there are ", all);
    }
    out += cat(name, ",");
  }
  return out;
}

void read_environment() {
  static const bool once = [] {
    preferred() = checked(env_string("OUTRACE_KERNELS"), "OUTRACE_KERNELS");
    return true;
  }();
  static_cast<void>(once);
}

}  // namespace

std::span<const KernelRow> kernel_rows() { return rows(); }

void prefer_kernels(std::string_view rows) {
  read_environment();
  preferred() = checked(rows, "the choice");
}

bool is_preferred(std::string_view op, std::string_view kernel) {
  read_environment();
  return preferred().size() > 1 && preferred().find(cat(",", op, ":", kernel, ",")) != std::string::npos;
}

std::string name_of(const KernelRow& row) { return cat(op_name(row), ":", row.name); }

std::vector<std::string> reached_kernels() {
  std::vector<std::string> names;
  for (size_t i = 0; i < rows().size(); ++i)
    if (reached()[i]) names.push_back(name_of(rows()[i]));
  return names;
}

const KernelRow& choose_kernel(const Call& call, const Plan& plan, std::string* passed_over) {
  for (const KernelRow& row : rows())
    if (row.op == call.op && is_preferred(op_name(row), row.name) && row.why_not(call, plan) == nullptr)
      return take(row);
  std::string reasons;
  for (const KernelRow& row : rows()) {
    if (row.op != call.op) continue;
    const char* why = row.why_not(call, plan);
    if (why == nullptr) {
      if (passed_over != nullptr) *passed_over = reasons;
      return take(row);
    }
    reasons += cat(reasons.empty() ? "" : "; ", row.name, ": ", why);
  }
  fail(ErrorKind::device, "[", call.label, "] the CPU has no kernel for ", name_of(call.dtype), " ", call.shape,
       reasons.empty() ? "" : "; ", reasons);
}

}  // namespace outrace::cpu
