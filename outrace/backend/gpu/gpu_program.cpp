#include "outrace/backend/gpu/gpu_program.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>

#include "outrace/backend/gpu/kernel_rows.h"
#include "outrace/backend/gpu/split.h"
#include "outrace/core/env.h"
#include "outrace/core/error.h"
#include "outrace/core/number.h"
#include "outrace/core/profile.h"

namespace outrace::gpu {
namespace {

// Calls fn(load) for every load of a tile program.
template <class Fn>
void for_loads(const Call& call, const Fn& fn) {
  for (const TileProgram* p : {&call.prologue, &call.epilogue})
    for (const TileLoad& l : p->loads) fn(l);
}

std::vector<uint8_t> used_values(const Plan& plan) {
  std::vector<uint8_t> used(plan.values.size(), 0);
  const auto use = [&](int value) {
    if (value >= 0) used[value] = 1;
  };
  for (const Call& call : plan.calls) {
    for (const View& v : call.operands) use(v.value);
    use(call.result);
    for_loads(call, [&](const TileLoad& l) { use(l.kind == TileLoad::Kind::view ? l.view.value : -1); });
    for (const TileProgram* p : {&call.prologue, &call.epilogue})
      for (const TileStore& s : p->stores) use(s.view.value);
  }
  return used;
}

}  // namespace

GpuProgram::GpuProgram(const Plan& plan, GpuDevice& device) : device_(device) {
  std::lock_guard hold(device_.lock());
  // Before kernels are made for it: a grid has limits too.
  const std::vector<uint8_t> used = used_values(plan);
  for (size_t i = 0; i < used.size(); ++i)
    if (used[i] != 0) device_.check_array(plan.values[i].device, plan.values[i].bytes());
  CallBuilder builder(device_.driver(), plan, device_.errors());
  for (const Call& call : plan.calls) {
    std::string passed_over;
    const KernelRow& row = choose_kernel(call, plan, builder.facts(), &passed_over);
    const int before = builder.launches();
    builder.begin(call);
    make_call(row, call, builder);
    facts_.push_back({call.label, row.name, call.flops, call.bytes, builder.launches() - before});
    if (debug_level() >= 2)
      fmt::print(stderr, "[{}] {}: {}{}\n", call.device.str(), call.label, row.name,
                 passed_over.empty() ? "" : cat("; not ", passed_over));
  }
  values_ = static_cast<int>(plan.values.size());
  scratch_bytes_ = builder.scratch_bytes();
  reports_ = builder.reports();
  place_values(plan);
  list_ = device_.driver().prepare(builder.take());
}

GpuProgram::~GpuProgram() {
  std::lock_guard hold(device_.lock());
  list_.reset();
  for (const Owned& o : owned_) device_.driver().free(o.memory, o.bytes);
}

void* GpuProgram::own(int64_t bytes) {
  void* memory = device_.driver().allocate(std::max<int64_t>(bytes, 1));
  owned_.push_back({memory, std::max<int64_t>(bytes, 1)});
  return memory;
}

void GpuProgram::place_values(const Plan& plan) {
  const std::vector<uint8_t> used = used_values(plan);
  addresses_.assign(plan.values.size() + CallBuilder::kExtras, nullptr);
  for (size_t i = 0; i < plan.values.size(); ++i) {
    const PlanValue& v = plan.values[i];
    const int index = static_cast<int>(i);
    if (used[i] == 0) continue;
    switch (v.kind) {
      case ValueKind::input: inputs_.push_back({index, v.index}); break;
      case ValueKind::output: outputs_.push_back({index, v.index}); break;
      case ValueKind::temp: temps_.push_back({index, v.arena_offset}); break;
      case ValueKind::constant:
        addresses_[i] = own(v.bytes());
        visit_dtype(v.dtype, [&](auto zero) {
          using T = decltype(zero);
          const std::unique_ptr<T[]> host(new T[static_cast<size_t>(v.shape.numel())]);
          std::fill_n(host.get(), v.shape.numel(), from_number<T>(v.fill));
          if (v.bytes() > 0) device_.driver().copy_in(addresses_[i], host.get(), v.bytes());
        });
        break;
    }
  }
  if (plan.scalars > 0) addresses_[values_ + CallBuilder::scalars] = own(int64_t{16} * plan.scalars);
  if (reports_) addresses_[values_ + CallBuilder::status] = device_.status();
  // Numbers of producers (seed, serial) are integers.
  integer_scalars_.assign(plan.scalars, 0);
  for (const Call& call : plan.calls) {
    for (const int s : call.scalars) integer_scalars_[s] = 1;
    for_loads(call, [&](const TileLoad& l) {
      if (l.kind == TileLoad::Kind::scalar && !is_float(l.dtype)) integer_scalars_[l.scalar] = 1;
    });
  }
}

void GpuProgram::upload_scalars(const std::vector<ScalarValue>& scalars) {
  if (integer_scalars_.empty()) return;
  bool changed = uploaded_.empty();
  uploaded_.resize(integer_scalars_.size() * 2);
  for (size_t i = 0; i < integer_scalars_.size(); ++i) {
    const int64_t bits = scalars[i].integer;  // of the double or of the integer
    changed |= uploaded_[2 * i] != bits;
    const float narrow = static_cast<float>(integer_scalars_[i] ? static_cast<double>(bits) : scalars[i].real);
    uploaded_[2 * i] = bits;
    uploaded_[2 * i + 1] = std::bit_cast<int32_t>(narrow);
  }
  if (!changed) return;
  const int64_t bytes = static_cast<int64_t>(uploaded_.size() * sizeof(int64_t));
  device_.driver().copy_in(addresses_[values_ + CallBuilder::scalars], uploaded_.data(), bytes);
  count_transfer({.to_devices = bytes});
}

void GpuProgram::run(const Bindings& bindings) {
  std::lock_guard hold(device_.lock());
  for (const Slot& s : inputs_) addresses_[s.value] = bindings.inputs[s.index];
  for (const Slot& s : outputs_) addresses_[s.value] = bindings.outputs[s.index];
  for (const Temp& t : temps_) addresses_[t.value] = static_cast<char*>(bindings.arena) + t.offset;
  if (scratch_bytes_ > 0) addresses_[values_ + CallBuilder::scratch_memory] = device_.scratch(scratch_bytes_);
  upload_scalars(bindings.scalars);
  if (reports_) device_.expect_reports();
  if (debug_level() >= 3 || profiling()) [[unlikely]]
    return run_timed();
  list_->run(addresses_.data());
}

void GpuProgram::run_timed() {
  const std::vector<double> us = list_->run_timed(addresses_.data());
  std::vector<CallProfile> profile;
  size_t at = 0;
  for (const Facts& f : facts_) {
    double total = 0;
    for (int i = 0; i < f.launches; ++i) total += us[at++];
    profile.push_back({f.label, f.kernel, total, f.flops, f.bytes});
  }
  if (profiling()) record_profile(profile);
  if (debug_level() < 3) return;
  for (const CallProfile& c : profile) {
    const double t = std::max(c.us, 1e-3);
    fmt::print(stderr, "[gpu] {:<40} {:<24} {:>10.1f} us {:>8.2f} GFLOP/s {:>8.2f} GB/s\n", c.label, c.kernel, c.us,
               c.flops / t * 1e-3, c.bytes / t * 1e-3);
  }
}

}  // namespace outrace::gpu
