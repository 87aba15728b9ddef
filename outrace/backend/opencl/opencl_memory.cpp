#include "outrace/backend/opencl/opencl_memory.h"

#include <sys/mman.h>

#include <algorithm>

#include "outrace/core/env.h"
#include "outrace/core/error.h"

namespace outrace::opencl {
namespace {

// A page of the reserved addresses; blocks of close sizes are interchangeable.
constexpr int64_t kGrain = 4096;

// Blocks as long as they were asked for, so that a checker (tests/oclgrind.sh) sees the first byte behind each.
bool exact() {
  static const bool asked = env_int("OUTRACE_EXACT_BLOCKS", 0, 0, 1) == 1;
  return asked;
}

int64_t rounded(int64_t bytes) {
  bytes = std::max<int64_t>(bytes, 1);
  return exact() ? bytes : (bytes + kGrain - 1) / kGrain * kGrain;
}

}  // namespace

void* Memory::create(int64_t bytes) {
  cl_int code = CL_SUCCESS;
  cl_mem buffer = api_.create_buffer(context_, CL_MEM_READ_WRITE, static_cast<size_t>(bytes), nullptr, &code);
  if (code != CL_SUCCESS) return nullptr;
  void* address =
      mmap(nullptr, static_cast<size_t>(bytes), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) {
    api_.release_buffer(buffer);
    return nullptr;
  }
  blocks_[static_cast<const char*>(address)] = {buffer, bytes};
  return address;
}

// A freed block may still be read by commands in the queue; whoever gets it next uses it behind them.
void* Memory::allocate(int64_t bytes) {
  const int64_t size = rounded(bytes);
  // Up to a quarter more than asked for is worth a creation saved.
  if (const auto it = cached_.lower_bound(size);
      it != cached_.end() && it->first <= (exact() ? size : size + size / 4)) {
    char* address = it->second;
    cached_bytes_ -= it->first;
    used_bytes_ += it->first;
    cached_.erase(it);
    return address;
  }
  void* address = create(size);
  if (address == nullptr) {
    release_cached();
    address = create(size);
  }
  if (address == nullptr)
    fail(ErrorKind::memory, "[memory] ", device_, " has no room for ", bytes, " bytes more; ", used_bytes_,
         " are in use");
  used_bytes_ += size;
  return address;
}

void Memory::free(void* address, int64_t) {
  const auto it = blocks_.find(static_cast<const char*>(address));
  OUTRACE_ASSERT(it != blocks_.end(), "no block of ", device_);
  cached_.emplace(it->second.bytes, static_cast<char*>(address));
  cached_bytes_ += it->second.bytes;
  used_bytes_ -= it->second.bytes;
  if (cached_bytes_ > used_bytes_ + (int64_t{256} << 20)) release_cached();
}

void Memory::release_cached() {
  for (const auto& [bytes, address] : cached_) {
    const auto it = blocks_.find(address);
    api_.release_buffer(it->second.buffer);
    munmap(address, static_cast<size_t>(bytes));
    blocks_.erase(it);
  }
  cached_.clear();
  cached_bytes_ = 0;
  ++generation_;
}

Memory::Place Memory::find(const void* address) const {
  const char* p = static_cast<const char*>(address);
  auto it = blocks_.upper_bound(p);
  OUTRACE_ASSERT(it != blocks_.begin(), "no address of ", device_);
  --it;
  // An empty array may lie at a block's very end.
  OUTRACE_ASSERT(p <= it->first + it->second.bytes, "no address of ", device_);
  return {it->second.buffer, p - it->first};
}

}  // namespace outrace::opencl
