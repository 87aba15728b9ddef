// A device with its queues, and what its errors mean.
#pragma once
#include <deque>
#include <string>
#include <utility>

#include "outrace/backend/cuda/cuda_api.h"

namespace outrace::cuda {

class Context {
 public:
  Context(const Api& api, CUdevice id, std::string name);

  const Api& api;
  const CUdevice id;
  const std::string name;  // "cuda:0 (NVIDIA H200)"
  CUcontext context = nullptr;
  CUstream queue = nullptr;      // kernels, and everything that is in order with them
  CUstream uploads = nullptr;    // copies from the host, beside the queue
  CUstream recording = nullptr;  // nothing runs here: library calls are captured on it

  // Before the first call of a public function: the device is a thread's own matter. Throws if it is lost.
  void enter();
  // Throws what a code means: Error(device) with the ops that may be the reason where it stopped the device.
  void check(CUresult code, const char* what);

  // What was enqueued since the host last waited; an error of the device shows only later.
  void enqueued(const std::string& ops);
  void waited() { enqueued_.clear(); }

  CUevent make_event(bool timed = false);
  std::pair<CUevent, CUevent> timers();  // of whoever measures now
  int attribute(CUdevice_attribute what) const;

 private:
  [[noreturn]] void fail_lost() const;

  std::deque<std::string> enqueued_;
  std::pair<CUevent, CUevent> timers_{nullptr, nullptr};
  std::string lost_;  // why, once it is
};

}  // namespace outrace::cuda
