#include "outrace/backend/cuda/cuda_memory.h"

#include "outrace/core/error.h"

namespace outrace::cuda {

Memory::Memory(Context& context) : context_(context) {
  if (context_.attribute(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED) == 0) return;
  CUmemPoolProps wish{};
  wish.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  wish.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  wish.location.id = context_.id;
  context_.check(context_.api.create_pool(&pool_, &wish), "memory");
  // Freed memory stays with the process: taking it back from the driver at every wait would stall each step.
  cuuint64_t kept = UINT64_MAX;
  context_.check(context_.api.set_pool(pool_, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &kept), "memory");
}

CUresult Memory::take(CUdeviceptr* out, int64_t bytes) {
  const size_t size = static_cast<size_t>(bytes);
  return pool_ != nullptr ? context_.api.allocate_async(out, size, pool_, context_.queue)
                          : context_.api.allocate(out, size);
}

void* Memory::allocate(int64_t bytes) {
  CUdeviceptr address = 0;
  CUresult code = take(&address, bytes);
  if (code == CUDA_ERROR_OUT_OF_MEMORY) {
    // What is freed but still in the queue, and what the pool keeps in pieces that do not fit.
    context_.check(context_.api.synchronize(context_.queue), "memory");
    if (pool_ != nullptr) context_.check(context_.api.trim_pool(pool_, 0), "memory");
    code = take(&address, bytes);
  }
  if (code == CUDA_ERROR_OUT_OF_MEMORY) {
    size_t free = 0, total = 0;
    context_.api.free_memory(&free, &total);
    fail(ErrorKind::memory, "[memory] ", context_.name, " has no room for ", bytes, " bytes more; ", used_bytes_,
         " are in use here, ", static_cast<int64_t>(free), " of ", static_cast<int64_t>(total), " are free");
  }
  context_.check(code, "memory");
  used_bytes_ += bytes;
  return reinterpret_cast<void*>(address);
}

void Memory::free(void* pointer, int64_t bytes) {
  const CUdeviceptr address = reinterpret_cast<CUdeviceptr>(pointer);
  // The codes are of no use here: a lost device and a process that ends free nothing.
  if (pool_ != nullptr)
    context_.api.free_async(address, context_.queue);
  else
    context_.api.free(address);
  used_bytes_ -= bytes;
}

}  // namespace outrace::cuda
