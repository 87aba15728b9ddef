// A device that records what it is told to do and does nothing: schedules, memory plans and copies are tested with it.
// Its memory is a token: kernels never touch it, and copies out of it give zeros.
#pragma once
#include <string>
#include <vector>

#include "outrace/backend/backend.h"

namespace outrace {

constexpr int kNullDevices = 8;  // null:0 to null:7

class NullBackend final : public Backend {
 public:
  static NullBackend& get();

  DeviceInfo info(Device device) override;
  void* allocate(Device device, int64_t bytes) override;
  void free(Device device, void* pointer, int64_t bytes) override;
  void copy_in(Device device, void* to, const void* host, int64_t bytes) override;
  void copy_out(Device device, void* host, const void* from, int64_t bytes) override;
  void relayout(Device device, void* to, Layout to_layout, const void* from, Layout from_layout, DType dtype,
                const Shape& shape) override;
  bool packs_weights(DType dtype) override;  // the same answer as the CPU's, so that schedules are the same
  std::unique_ptr<Program> compile(const Plan& plan) override;
  void synchronize(Device device) override;
};

// What happened since the last clear, one line each: "null:0 allocate 256", "null:0 free 256", "null:1 copy_in 1024",
// "null:1 copy_out 1024", "null:0 relayout [512, 1000]", "null:0 call matmul+add+relu [64, 512]". After a million lines
// it records no more. Read it while no other thread uses null devices.
const std::vector<std::string>& null_log();
void clear_null_log();

}  // namespace outrace
