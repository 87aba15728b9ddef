#include "outrace/backend/null/null_backend.h"

#include <cstring>
#include <mutex>
#include <new>

#include "outrace/core/aligned.h"
#include "outrace/core/error.h"

namespace outrace {
namespace {

constexpr size_t kMostLines = 1'000'000;  // a long training run on a null device must not eat the memory

struct Log {
  std::mutex mutex;
  std::vector<std::string> lines;
};

Log& log() {
  static auto* instance = new Log;
  return *instance;
}

template <class... Args>
void note(Device device, const Args&... what) {
  std::string line = cat(device, " ", what...);
  std::lock_guard hold(log().mutex);
  if (log().lines.size() < kMostLines) log().lines.push_back(std::move(line));
}

class NullProgram final : public Program {
 public:
  explicit NullProgram(const Plan& plan) {
    for (const Call& call : plan.calls)
      calls_.push_back({call.device, cat(call.label, " ", call.op != nullptr ? call.shape : call.epilogue.space)});
  }
  void run(const Bindings&) override {
    for (const auto& [device, text] : calls_) note(device, "call ", text);
  }

 private:
  std::vector<std::pair<Device, std::string>> calls_;
};

}  // namespace

const std::vector<std::string>& null_log() { return log().lines; }

void clear_null_log() {
  std::lock_guard hold(log().mutex);
  log().lines.clear();
}

NullBackend& NullBackend::get() {
  static auto* instance = new NullBackend;
  return *instance;
}

DeviceInfo NullBackend::info(Device device) {
  DeviceInfo info;
  info.device = device;
  info.name = "null (records calls, computes nothing)";
  return info;
}

// Small real blocks, so that addresses differ and a stray access is the sanitizer's to find.
void* NullBackend::allocate(Device device, int64_t bytes) {
  note(device, "allocate ", bytes);
  return ::operator new(kAlignment, std::align_val_t(kAlignment));
}

void NullBackend::free(Device device, void* pointer, int64_t bytes) {
  note(device, "free ", bytes);
  ::operator delete(pointer, std::align_val_t(kAlignment));
}

void NullBackend::copy_in(Device device, void*, const void*, int64_t bytes) { note(device, "copy_in ", bytes); }

void NullBackend::copy_out(Device device, void* host, const void*, int64_t bytes) {
  note(device, "copy_out ", bytes);
  if (bytes > 0) std::memset(host, 0, static_cast<size_t>(bytes));
}

void NullBackend::relayout(Device device, void*, Layout, const void*, Layout, DType, const Shape& shape) {
  note(device, "relayout ", shape);
}

bool NullBackend::packs_weights(DType dtype) { return dtype == DType::f32 || dtype == DType::f64; }

std::unique_ptr<Program> NullBackend::compile(const Plan& plan) { return std::make_unique<NullProgram>(plan); }

void NullBackend::synchronize(Device) {}

}  // namespace outrace
