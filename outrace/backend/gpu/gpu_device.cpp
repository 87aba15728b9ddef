#include "outrace/backend/gpu/gpu_device.h"

#include "outrace/core/error.h"

namespace outrace::gpu {
namespace {

constexpr int64_t kStatusBytes = 3 * sizeof(int64_t);

}  // namespace

void GpuDevice::check_array(Device device, int64_t bytes) const {
  if (const int64_t most = driver_->facts().largest_array_bytes; bytes > most)
    fail(ErrorKind::memory, "[memory] ", device, " takes arrays of at most ", most, " bytes; asked for ", bytes);
}

void* GpuDevice::status() {
  if (status_ == nullptr) {
    status_ = driver_->allocate(kStatusBytes);
    driver_->fill(status_, 0, kStatusBytes);
  }
  return status_;
}

void* GpuDevice::scratch(int64_t bytes) {
  if (bytes <= scratch_bytes_) return scratch_;
  if (scratch_ != nullptr) driver_->free(scratch_, scratch_bytes_);
  scratch_ = nullptr;
  scratch_bytes_ = 0;
  scratch_ = driver_->allocate(bytes);
  scratch_bytes_ = bytes;
  return scratch_;
}

void GpuDevice::check_reports() {
  if (!reports_expected_) return;
  reports_expected_ = false;
  int64_t report[3];
  driver_->copy_out(report, status_, kStatusBytes);
  const int number = static_cast<int>(report[0] & 0xffffffff);
  if (number == 0) return;
  driver_->fill(status_, 0, kStatusBytes);
  throw Error(ErrorKind::value, errors_.text(number, report[1], report[2]));
}

}  // namespace outrace::gpu
