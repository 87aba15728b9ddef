// Addresses for OpenCL's handles. An allocation reserves as much of the process's address space as it has bytes and
// forbids access to it: the engine adds offsets to such addresses, and a stray access of the host faults.
#pragma once
#include <map>
#include <vector>

#include "outrace/backend/opencl/opencl_api.h"

namespace outrace::opencl {

class Memory {
 public:
  Memory(const Api& api, cl_context context, std::string device) : api_(api), context_(context), device_(device) {}

  void* allocate(int64_t bytes);
  void free(void* address, int64_t bytes);

  struct Place {
    cl_mem buffer = nullptr;
    int64_t offset = 0;
  };
  Place find(const void* address) const;
  // Changes whenever an address may stand for another handle than before.
  int64_t generation() const { return generation_; }

 private:
  struct Block {
    cl_mem buffer;
    int64_t bytes;
  };
  void* create(int64_t bytes);
  void release_cached();

  const Api& api_;
  cl_context context_;
  std::string device_;
  std::map<const char*, Block> blocks_;   // by address
  std::multimap<int64_t, char*> cached_;  // freed blocks, by bytes
  int64_t cached_bytes_ = 0, used_bytes_ = 0, generation_ = 0;
};

}  // namespace outrace::opencl
