#include "outrace/graph/executable.h"

#include <cstring>

#include "outrace/core/error.h"
#include "outrace/graph/node.h"

namespace outrace {
namespace {

BufferPtr& arena_of(Device device) {
  static auto* arenas = new std::array<std::array<BufferPtr, 256>, 4>;
  return (*arenas)[static_cast<int>(device.type)][device.index];
}

}  // namespace

Executable::Executable(Plan plan) : plan_(std::move(plan)) {
  for (size_t first = 0; first < plan_.calls.size();) {
    const Call& call = plan_.calls[first];
    if (call.op == &kTransfer) {
      segments_.push_back({call.device, nullptr, static_cast<int>(first++)});
      continue;
    }
    Plan part;
    part.values = plan_.values;
    part.inputs = plan_.inputs;
    part.outputs = plan_.outputs;
    part.scalars = plan_.scalars;
    part.arenas = plan_.arenas;
    while (first < plan_.calls.size() && plan_.calls[first].op != &kTransfer &&
           plan_.calls[first].device == call.device)
      part.calls.push_back(plan_.calls[first++]);
    segments_.push_back({call.device, backend_for(call.device).compile(part), -1});
  }
}

void Executable::reserve() {
  for (const Plan::Arena& need : plan_.arenas) {
    BufferPtr& arena = arena_of(need.device);
    if (!arena || arena->bytes < need.bytes) {
      arena.reset();
      arena = Buffer::allocate(need.device, need.bytes);
    }
  }
}

void Executable::run(Bindings& bindings) {
  for (const Segment& s : segments_) {
    if (!s.program) {
      transfer(plan_.calls[s.transfer], bindings);
      continue;
    }
    const BufferPtr& arena = arena_of(s.device);
    bindings.arena = arena ? arena->data : nullptr;
    s.program->run(bindings);
  }
}

void* Executable::address(const View& view, const Bindings& bindings, DType dtype) const {
  const PlanValue& v = plan_.values[view.value];
  char* base = nullptr;
  if (v.kind == ValueKind::input) base = static_cast<char*>(bindings.inputs[v.index]);
  if (v.kind == ValueKind::output) base = static_cast<char*>(bindings.outputs[v.index]);
  if (v.kind == ValueKind::temp) base = static_cast<char*>(arena_of(v.device)->data) + v.arena_offset;
  OUTRACE_ASSERT(base, "a transfer of a constant");
  return base + view.offset * size_of(dtype);
}

void Executable::transfer(const Call& call, const Bindings& bindings) {
  const Device from = plan_.values[call.operands[0].value].device;
  const int64_t bytes = call.shape.numel() * size_of(call.dtype);
  void* source = address(call.operands[0], bindings, call.dtype);
  void* target = address({call.result, 0, {}}, bindings, call.dtype);
  if (from.type == DeviceType::cpu) {
    backend_for(call.device).copy_in(call.device, target, source, bytes);
  } else if (call.device.type == DeviceType::cpu) {
    backend_for(from).copy_out(from, target, source, bytes);
  } else {
    Backend& backend = backend_for(call.device);
    if (from.type == call.device.type && backend.copy_across(call.device, target, from, source, bytes)) return;
    std::vector<char> staging(static_cast<size_t>(bytes));
    backend_for(from).copy_out(from, staging.data(), source, bytes);
    backend_for(call.device).copy_in(call.device, target, staging.data(), bytes);
  }
}

}  // namespace outrace
