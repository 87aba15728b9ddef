#include "outrace/backend/cpu/cpu_program.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "outrace/core/env.h"
#include "outrace/core/error.h"
#include "outrace/core/profile.h"

namespace outrace::cpu {
namespace {

// Calls read(value) and write(value) for every array that the call touches, reads first.
template <class Read, class Write>
void for_arrays(const Call& call, const Read& read, const Write& write) {
  const auto each = [](int value, const auto& fn) {
    if (value >= 0) fn(value);
  };
  for (const View& v : call.operands) each(v.value, read);
  for (const TileProgram* p : {&call.prologue, &call.epilogue})
    for (const TileLoad& l : p->loads)
      if (l.kind == TileLoad::Kind::view) each(l.view.value, read);
  each(call.result, write);
  for (const TileProgram* p : {&call.prologue, &call.epilogue})
    for (const TileStore& s : p->stores) each(s.view.value, write);
}

}  // namespace

CpuProgram::CpuProgram(const Plan& plan, Pool& pool) : pool_(pool) {
  for (const Call& call : plan.calls) {
    std::string passed_over;
    const KernelRow& row = choose_kernel(call, plan, &passed_over);
    calls_.push_back(row.make(call, plan));
    const std::string detail = calls_.back()->detail();
    facts_.push_back(
        {call.label, detail.empty() ? row.name : cat(row.name, " (", detail, ")"), call.flops, call.bytes});
    if (debug_level() >= 2)
      fmt::print(stderr, "[cpu] {}: {}{}\n", call.label, facts_.back().kernel,
                 passed_over.empty() ? "" : cat("; not ", passed_over));
  }
  place_values(plan);
}

CpuProgram::~CpuProgram() {
  for (const Constant& c : constants_) pool_.free(c.memory, c.bytes);
}

void CpuProgram::place_values(const Plan& plan) {
  const size_t count = plan.values.size();
  std::vector<uint8_t> used(count, 0), written(count, 0);
  bool whole = true;  // every temporary that is read was written here before
  for (const Call& call : plan.calls)
    for_arrays(
        call,
        [&](int v) {
          used[v] = 1;
          whole &= plan.values[v].kind != ValueKind::temp || written[v] != 0;
        },
        [&](int v) { used[v] = written[v] = 1; });
  values_.assign(count, nullptr);
  for (size_t i = 0; i < count; ++i) {
    const PlanValue& v = plan.values[i];
    const int index = static_cast<int>(i);
    if (used[i] == 0) {
      // A temporary of the plan that this program never touches may be alive between two others.
      whole &= v.kind != ValueKind::temp || v.device.type != DeviceType::cpu;
      continue;
    }
    switch (v.kind) {
      case ValueKind::input: inputs_.push_back({index, v.index}); break;
      case ValueKind::output: outputs_.push_back({index, v.index}); break;
      case ValueKind::temp: temps_.push_back({index, v.arena_offset}); break;
      case ValueKind::constant: place_constant(v, index); break;
    }
  }
  if (!whole) return;
  for (const Plan::Arena& arena : plan.arenas)
    if (arena.device.type == DeviceType::cpu) poisoned_bytes_ = arena.bytes;
}

void CpuProgram::place_constant(const PlanValue& value, int index) {
  void* memory = pool_.allocate(value.bytes());
  constants_.push_back({memory, value.bytes()});
  values_[index] = memory;
  visit_dtype(value.dtype, [&](auto zero) {
    using T = decltype(zero);
    T element;
    if constexpr (std::is_same_v<T, bf16> || std::is_same_v<T, f16>)
      element = T(static_cast<float>(value.fill));
    else
      element = static_cast<T>(value.fill);
    std::fill_n(static_cast<T*>(memory), value.shape.numel(), element);
  });
}

void CpuProgram::bind(const Bindings& bindings) {
  for (const Slot& s : inputs_) values_[s.value] = bindings.inputs[s.index];
  for (const Slot& s : outputs_) values_[s.value] = bindings.outputs[s.index];
  if (bindings.arena != arena_) {
    arena_ = bindings.arena;
    for (const Temp& t : temps_) values_[t.value] = static_cast<char*>(arena_) + t.offset;
  }
  if (poisoned_bytes_ > 0 && poisoning()) poison(arena_, poisoned_bytes_);
}

void CpuProgram::run(const Bindings& bindings) {
  bind(bindings);
  const Frame frame{values_.data(), bindings.scalars.data()};
  if (debug_level() >= 3 || profiling()) [[unlikely]]
    return run_timed(frame);
  for (const auto& call : calls_) call->run(frame);
}

void CpuProgram::run_timed(const Frame& frame) {
  using Clock = std::chrono::steady_clock;
  std::vector<CallProfile> profile;
  profile.reserve(calls_.size());
  for (size_t i = 0; i < calls_.size(); ++i) {
    const auto start = Clock::now();
    calls_[i]->run(frame);
    const double us = std::chrono::duration<double, std::micro>(Clock::now() - start).count();
    profile.push_back({facts_[i].label, facts_[i].kernel, us, facts_[i].flops, facts_[i].bytes});
  }
  if (profiling()) record_profile(profile);
  if (debug_level() < 3) return;
  double total = 0;
  for (const CallProfile& c : profile) {
    const double us = std::max(c.us, 1e-3);
    fmt::print(stderr, "[cpu] {:<40} {:<24} {:>10.1f} us {:>8.2f} GFLOP/s {:>8.2f} GB/s\n", c.label, c.kernel, c.us,
               c.flops / us * 1e-3, c.bytes / us * 1e-3);
    total += c.us;
  }
  fmt::print(stderr, "[cpu] {} calls in {:.1f} us\n", profile.size(), total);
}

}  // namespace outrace::cpu
