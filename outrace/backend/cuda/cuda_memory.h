// Memory of a device, allocated and freed in the order of its queue: a freed block can be given out again at once,
// while kernels that read it are still waiting to run.
#pragma once
#include <cstdint>

#include "outrace/backend/cuda/cuda_context.h"

namespace outrace::cuda {

class Memory {
 public:
  explicit Memory(Context& context);

  void* allocate(int64_t bytes);  // throws Error(memory)
  void free(void* pointer, int64_t bytes);
  int64_t used_bytes() const { return used_bytes_; }

 private:
  CUresult take(CUdeviceptr* out, int64_t bytes);

  Context& context_;
  CUmemoryPool pool_ = nullptr;  // null: the device has none (some virtual GPUs)
  int64_t used_bytes_ = 0;
};

}  // namespace outrace::cuda
