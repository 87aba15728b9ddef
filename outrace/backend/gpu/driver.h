// What a vendor's API must do for one device. Everything else about GPUs (texts, fusion, programs) is common.
// Work is asynchronous and in order; copy_out and synchronize wait. One thread at a time (GpuBackend holds a lock).
// A failing call throws Error(device), or Error(memory), with the API's own words.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "outrace/backend/gpu/launch.h"
#include "outrace/backend/gpu/product.h"

namespace outrace::gpu {

enum class Language : uint8_t { opencl, cuda };

struct DeviceFacts {
  Language language = Language::opencl;
  std::string name, vendor, driver;  // "NVIDIA H200", "NVIDIA Corporation", "OpenCL 3.0, 1.2.3"
  int units = 0;
  int64_t memory_bytes = 0;
  int64_t largest_array_bytes = 0;  // of one allocation
  int64_t local_bytes = 0;          // local (shared) memory a group may use
  int64_t parameter_bytes = 1024;   // of one kernel
  int largest_group = 0;
  bool has_f64 = true;
  bool rounds_sqrt = true;  // sqrt of an f32 is the nearest number
  bool multiplies = false;  // has a library for matrix products
  bool is_cpu = false;      // PoCL's and others' CPU devices
  std::vector<std::string> features;
};

class Module {
 public:
  virtual ~Module() = default;
  virtual std::shared_ptr<Kernel> kernel(const char* name) = 0;
};

// Launches with everything decided but the addresses.
class LaunchList {
 public:
  virtual ~LaunchList() = default;
  // Enqueues all of them. addresses[s]: where slot s lies in this run; an address may differ from run to run.
  virtual void run(void* const* addresses) = 0;
  // The same, waiting for each: microseconds that each took.
  virtual std::vector<double> run_timed(void* const* addresses) = 0;
};

class Driver {
 public:
  virtual ~Driver() = default;
  virtual const DeviceFacts& facts() const = 0;
  virtual void* allocate(int64_t bytes) = 0;  // at least 64-byte aligned; throws Error(memory)
  virtual void free(void* pointer, int64_t bytes) = 0;
  virtual void copy_in(void* to, const void* host, int64_t bytes) = 0;  // the host's bytes are read before it returns
  virtual void copy_out(void* host, const void* from, int64_t bytes) = 0;
  virtual void copy(void* to, const void* from, int64_t bytes) = 0;
  // From an array of another device without a way through the host; false: there is none.
  virtual bool copy_from(Driver& other, void* to, const void* from, int64_t bytes) {
    static_cast<void>(other), static_cast<void>(to), static_cast<void>(from), static_cast<void>(bytes);
    return false;
  }
  virtual void fill(void* to, uint8_t byte, int64_t bytes) = 0;
  // Compiles a text; from the cache on disk where it can. Throws Error(device) with the compiler's log.
  virtual std::shared_ptr<Module> build(const std::string& source) = 0;
  virtual std::unique_ptr<LaunchList> prepare(std::vector<Launch> launches) = 0;
  // A product as a call of the vendor's library; null: it has none, or none for this one.
  virtual std::shared_ptr<LibraryCall> product(const Product& product, const Scratch& scratch) {
    static_cast<void>(product), static_cast<void>(scratch);
    return nullptr;
  }
  virtual void synchronize() = 0;
};

}  // namespace outrace::gpu
