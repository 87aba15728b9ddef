// The boundary between the engine and a kind of device: buffers and plans, no ops.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "outrace/core/device.h"
#include "outrace/graph/plan.h"

namespace outrace {

struct DeviceInfo {
  Device device;
  std::string name;  // "AMD EPYC, 2 cores, AVX2"
  int units = 0;     // cores or compute units
  int64_t memory_bytes = 0;
  std::vector<std::string> features;
  double peak_gflops = 0, peak_gb_per_s = 0;  // measured on this machine; 0: not measured
};

// What one run of a program reads and writes: a pointer for each input and output of the plan, the scalars, and the
// arena of the program's device in which temporaries lie at PlanValue::arena_offset. The ENGINE owns the arenas
// (graph/executable.cpp): it allocates them through allocate(), grows them, and all programs of a device share one.
struct Bindings {
  std::vector<void*> inputs, outputs;
  std::vector<ScalarValue> scalars;
  void* arena = nullptr;
};

// A compiled plan. Not copied; run() may be called again and again, by one thread at a time.
class Program {
 public:
  virtual ~Program() = default;
  virtual void run(const Bindings& bindings) = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual DeviceInfo info(Device device) = 0;
  virtual void* allocate(Device device, int64_t bytes) = 0;  // throws Error(memory); 64-byte aligned
  virtual void free(Device device, void* pointer, int64_t bytes) = 0;
  virtual void copy_in(Device device, void* to, const void* host, int64_t bytes) = 0;
  virtual void copy_out(Device device, void* host, const void* from, int64_t bytes) = 0;
  // From another device of this backend; false: there is no way but through the host.
  virtual bool copy_across(Device to_device, void* to, Device from_device, const void* from, int64_t bytes) {
    static_cast<void>(to_device), static_cast<void>(to), static_cast<void>(from_device), static_cast<void>(from);
    static_cast<void>(bytes);
    return false;
  }
  // Converts between plain and packed storage of a [rows, cols] matrix; `to` and `from` do not overlap.
  virtual void relayout(Device device, void* to, Layout to_layout, const void* from, Layout from_layout, DType dtype,
                        const Shape& shape) = 0;
  // Whether weights of linear layers are kept in Layout::panel.
  virtual bool packs_weights(DType dtype) = 0;
  // Whether this device's kernels of `op` run the elementwise ops that follow over their tiles (all do for products and
  // reductions).
  virtual bool hands_out_tiles(const OpDef& op) {
    static_cast<void>(op);
    return false;
  }
  // Compiles the calls of `plan` (all of one device; copies between devices are the engine's).
  virtual std::unique_ptr<Program> compile(const Plan& plan) = 0;
  virtual void synchronize(Device device) = 0;
};

// The backend of a device; throws Error(device) naming what is missing.
Backend& backend_for(Device device);
// Devices found on this machine (without null ones), and for each backend that is absent one line saying why and what
// to install.
std::vector<Device> found_devices();
std::vector<std::string> missing_backends();

}  // namespace outrace
