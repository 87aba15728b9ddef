// Which rows there are, and which one a call gets.
#include <algorithm>
#include <atomic>

#include "outrace/backend/gpu/kernel_rows.h"
#include "outrace/core/error.h"

namespace outrace::gpu {
namespace {

const std::vector<KernelRow>& rows() {
  static const std::vector<KernelRow> all = [] {
    std::vector<KernelRow> list;
    for (const auto family :
         {elementwise_kernels, reduce_kernels, library_kernels, matmul_kernels, row_kernels, random_kernels,
          arg_reduce_kernels, scan_kernels, statistics_kernels, layer_norm_kernels, image_kernels, order_kernels,
          index_kernels, index_add_kernels, bag_kernels, movement_kernels})
      list.insert(list.end(), family().begin(), family().end());
    return list;
  }();
  return all;
}

// Which rows were chosen, by position.
std::vector<std::atomic<bool>>& reached() {
  static auto* flags = new std::vector<std::atomic<bool>>(rows().size());
  return *flags;
}

bool uses_f64(const Call& call, const Plan& plan) {
  bool found = call.dtype == DType::f64 && call.op != nullptr;
  const auto look = [&](const View& v) { found |= v.value >= 0 && stored(v, plan) == DType::f64; };
  for (const View& v : call.operands) look(v);
  for (const TileProgram* p : {&call.prologue, &call.epilogue}) {
    if (p->empty()) continue;
    found |= p->compute == DType::f64;
    for (const TileLoad& l : p->loads) look(l.view);
    for (const TileStore& s : p->stores) look(s.view);
  }
  return found;
}

}  // namespace

std::span<const KernelRow> kernel_rows() { return rows(); }

std::string name_of(const KernelRow& row) {
  return cat(row.op != nullptr ? row.op->name : "elementwise", ":", row.name);
}

std::vector<std::string> reached_kernels() {
  std::vector<std::string> names;
  for (size_t i = 0; i < rows().size(); ++i)
    if (reached()[i]) names.push_back(name_of(rows()[i]));
  return names;
}

const KernelRow& choose_kernel(const Call& call, const Plan& plan, const DeviceFacts& facts, std::string* passed_over) {
  if (!facts.has_f64 && uses_f64(call, plan))
    fail(ErrorKind::dtype, "[", call.label, "] ", call.device, " (", facts.name,
         ") has no f64; convert with to(DType::f32)");
  std::string reasons;
  for (const KernelRow& row : rows()) {
    if (row.op != call.op) continue;
    const char* why = row.why_not(call, plan, facts);
    if (why == nullptr) {
      if (passed_over != nullptr) *passed_over = reasons;
      reached()[static_cast<size_t>(&row - rows().data())].store(true, std::memory_order_relaxed);
      return row;
    }
    reasons += cat(reasons.empty() ? "" : "; ", row.name, ": ", why);
  }
  fail(ErrorKind::device, "[", call.label, "] ", call.device, " has no kernel for ",
       call.op != nullptr ? call.op->name : "elementwise", " of ", name_of(call.dtype), " ", call.shape,
       reasons.empty() ? "" : "; ", reasons);
}

}  // namespace outrace::gpu
