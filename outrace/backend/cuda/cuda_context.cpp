#include "outrace/backend/cuda/cuda_context.h"

#include <algorithm>

#include "outrace/core/error.h"

namespace outrace::cuda {
namespace {

// After these every further call of the process fails.
constexpr CUresult kLost[] = {
    CUDA_ERROR_ILLEGAL_ADDRESS,       CUDA_ERROR_LAUNCH_FAILED,
    CUDA_ERROR_ILLEGAL_INSTRUCTION,   CUDA_ERROR_MISALIGNED_ADDRESS,
    CUDA_ERROR_INVALID_ADDRESS_SPACE, CUDA_ERROR_INVALID_PC,
    CUDA_ERROR_HARDWARE_STACK_ERROR,  CUDA_ERROR_ASSERT,
    CUDA_ERROR_LAUNCH_TIMEOUT,        CUDA_ERROR_ECC_UNCORRECTABLE,
    CUDA_ERROR_CONTEXT_IS_DESTROYED,  CUDA_ERROR_NVLINK_UNCORRECTABLE,
    CUDA_ERROR_DEVICE_UNAVAILABLE,    CUDA_ERROR_UNKNOWN,
};

constexpr size_t kMostNamed = 4;

}  // namespace

Context::Context(const Api& api, CUdevice id, std::string name) : api(api), id(id), name(std::move(name)) {
  check(api.retain_context(&context, id), "open");
  check(api.set_context(context), "open");
  for (CUstream* stream : {&queue, &uploads, &recording})
    check(api.create_stream(stream, CU_STREAM_NON_BLOCKING), "open");
}

void Context::enter() {
  if (!lost_.empty()) [[unlikely]]
    fail_lost();
  check(api.set_context(context), "enter");
}

void Context::check(CUresult code, const char* what) {
  if (code == CUDA_SUCCESS) [[likely]]
    return;
  if (std::ranges::find(kLost, code) != std::end(kLost)) {
    std::string ops;
    for (const std::string& o : enqueued_) ops += (ops.empty() ? "" : "; ") + o;
    lost_ = cat("[", ops.empty() ? what : ops, "] ", name, " stopped with ", error_name(api, code));
    fail_lost();
  }
  const bool memory = code == CUDA_ERROR_OUT_OF_MEMORY;
  fail(memory ? ErrorKind::memory : ErrorKind::device, "[", what, "] ", name, " says ", error_name(api, code));
}

void Context::fail_lost() const {
  fail(ErrorKind::device, lost_, "; one of these ops was running. The device is lost to this process: start it again");
}

void Context::enqueued(const std::string& ops) {
  if (!enqueued_.empty() && enqueued_.back() == ops) return;
  enqueued_.push_back(ops);
  if (enqueued_.size() > kMostNamed) enqueued_.pop_front();
}

CUevent Context::make_event(bool timed) {
  CUevent event = nullptr;
  check(api.create_event(&event, timed ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING), "event");
  return event;
}

std::pair<CUevent, CUevent> Context::timers() {
  if (timers_.first == nullptr) timers_ = {make_event(true), make_event(true)};
  return timers_;
}

int Context::attribute(CUdevice_attribute what) const {
  int value = 0;
  api.device_attribute(&value, what, id);
  return value;
}

}  // namespace outrace::cuda
