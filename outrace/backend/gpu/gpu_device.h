// One device of a GPU backend: its driver and what all programs on it share.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>

#include "outrace/backend/gpu/driver.h"
#include "outrace/backend/gpu/errors.h"

namespace outrace::gpu {

class GpuDevice {
 public:
  explicit GpuDevice(std::unique_ptr<Driver> driver) : driver_(std::move(driver)) {}

  // Everything below is called with the lock held.
  std::mutex& lock() { return lock_; }
  Driver& driver() { return *driver_; }
  ErrorTexts& errors() { return errors_; }
  void check_array(Device device, int64_t bytes) const;  // throws Error(memory) if one array cannot be so large
  void* status();                                        // {number, value, at}, three i64; zeros at first
  void* scratch(int64_t bytes);                          // of whichever program runs now; it grows
  void expect_reports() { reports_expected_ = true; }
  void check_reports();  // after waiting: throws what a kernel reported since the last look

 private:
  std::mutex lock_;
  std::unique_ptr<Driver> driver_;
  ErrorTexts errors_;
  void* status_ = nullptr;
  void* scratch_ = nullptr;
  int64_t scratch_bytes_ = 0;
  bool reports_expected_ = false;
};

}  // namespace outrace::gpu
