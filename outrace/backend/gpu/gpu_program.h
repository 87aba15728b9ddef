// A plan as a list of launches. A run fills a table of addresses and hands it to the driver.
#pragma once
#include <string>
#include <vector>

#include "outrace/backend/backend.h"
#include "outrace/backend/gpu/gpu_device.h"

namespace outrace::gpu {

class GpuProgram final : public Program {
 public:
  GpuProgram(const Plan& plan, GpuDevice& device);
  ~GpuProgram() override;
  GpuProgram(const GpuProgram&) = delete;

  void run(const Bindings& bindings) override;

 private:
  struct Facts {  // of a call, for people
    std::string label, kernel;
    double flops, bytes;
    int launches;
  };
  struct Slot {
    int value, index;
  };
  struct Temp {
    int value;
    int64_t offset;
  };
  struct Owned {
    void* memory;
    int64_t bytes;
  };

  void place_values(const Plan& plan);
  void* own(int64_t bytes);
  void upload_scalars(const std::vector<ScalarValue>& scalars);
  void run_timed();

  GpuDevice& device_;
  std::unique_ptr<LaunchList> list_;
  std::vector<Facts> facts_;
  std::vector<void*> addresses_;  // of the plan's values, then of CallBuilder::Extra
  std::vector<Slot> inputs_, outputs_;
  std::vector<Temp> temps_;
  std::vector<Owned> owned_;
  std::vector<uint8_t> integer_scalars_;
  std::vector<int64_t> uploaded_;  // as the device has them: 16 bytes each
  int64_t scratch_bytes_ = 0;
  int values_ = 0;
  bool reports_ = false;
};

}  // namespace outrace::gpu
