// Copies between the host and a device, through pinned memory of our own: the host's bytes are read before a copy
// returns, and nobody waits for the device.
// A large upload runs on its own queue, beside the kernels, into a place of the device's memory that nobody else uses;
// the main queue then moves it where it belongs, in its turn. So any array can be uploaded to while kernels still read
// its old bytes, and the slow way over the bus is hidden; the move costs a hundredth of it.
#pragma once
#include <cstdint>
#include <vector>

#include "outrace/backend/cuda/cuda_memory.h"

namespace outrace::cuda {

class Transfer {
 public:
  Transfer(Context& context, Memory& memory) : context_(context), memory_(memory) {}

  void in(void* to, const void* host, int64_t bytes);
  void out(void* host, const void* from, int64_t bytes);  // waits for everything in the queue

 private:
  struct Slot {
    char* host = nullptr;     // pinned
    void* device = nullptr;   // of large slots
    CUevent read = nullptr;   // the host's side may be written again
    CUevent moved = nullptr;  // the device's side may be
    bool used = false;
  };
  struct Ring {
    int64_t slot_bytes;
    int count;
    bool staged;  // through a place on the device
    std::vector<Slot> slots = {};
    size_t next = 0;
  };

  Slot& next(Ring& ring);

  Context& context_;
  Memory& memory_;
  // The scalars of a step take a small slot each: the host may run 64 steps ahead.
  Ring small_{.slot_bytes = 64 << 10, .count = 64, .staged = false};
  Ring large_{.slot_bytes = 4 << 20, .count = 4, .staged = true};
};

}  // namespace outrace::cuda
