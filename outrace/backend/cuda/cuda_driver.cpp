#include "outrace/backend/cuda/cuda_driver.h"

#include <optional>
#include <unordered_map>

#include "outrace/backend/cuda/cuda_blas.h"
#include "outrace/backend/cuda/cuda_compiler.h"
#include "outrace/backend/cuda/cuda_list.h"
#include "outrace/backend/cuda/cuda_transfer.h"
#include "outrace/backend/gpu/kernel_rows.h"
#include "outrace/core/env.h"
#include "outrace/core/error.h"

namespace outrace::cuda {
namespace {

using gpu::DeviceFacts;

// What was opened once for all devices; never closed.
struct Libraries {
  Api cuda;
  Nvrtc nvrtc;
  BlasApi blas;
  bool has_blas = false;
};

CUdeviceptr address(const void* p) { return reinterpret_cast<CUdeviceptr>(p); }

class CudaModule final : public gpu::Module {
 public:
  CudaModule(Context& context, CUmodule module) : context_(context), module_(module) {}
  std::shared_ptr<gpu::Kernel> kernel(const char* name) override {
    CUfunction function = nullptr;
    context_.check(context_.api.get_function(&function, module_, name), name);
    return std::make_shared<CudaKernel>(function);
  }

 private:
  Context& context_;
  CUmodule module_;
};

class CudaDriver final : public gpu::Driver {
 public:
  CudaDriver(const Libraries& libraries, CUdevice id, int index, DeviceFacts facts, const std::string& architecture)
      : facts_(std::move(facts)),
        context_(libraries.cuda, id, cat("cuda:", index, " (", facts_.name, ")")),
        memory_(context_),
        transfer_(context_, memory_),
        compiler_(libraries.nvrtc, context_, architecture),
        graphs_(env_int("OUTRACE_CUDA_GRAPH", 1, 0, 1) == 1) {
    if (!libraries.has_blas || env_int("OUTRACE_CUBLAS", 1, 0, 1) == 0) return;
    blas_.emplace(libraries.blas, context_);
    facts_.multiplies = true;
    facts_.features.push_back("cuBLASLt-" + blas_->version());
  }

  const DeviceFacts& facts() const override { return facts_; }

  void* allocate(int64_t bytes) override {
    context_.enter();
    return memory_.allocate(bytes);
  }
  // Of arrays that outlive main() too, when the driver may be gone: nothing is thrown.
  void free(void* pointer, int64_t bytes) override {
    if (context_.api.set_context(context_.context) == CUDA_SUCCESS) memory_.free(pointer, bytes);
  }

  void copy_in(void* to, const void* host, int64_t bytes) override {
    context_.enter();
    transfer_.in(to, host, bytes);
  }
  void copy_out(void* host, const void* from, int64_t bytes) override {
    context_.enter();
    transfer_.out(host, from, bytes);
    context_.waited();
  }
  void copy(void* to, const void* from, int64_t bytes) override {
    context_.enter();
    context_.check(context_.api.copy(address(to), address(from), static_cast<size_t>(bytes), context_.queue), "copy");
  }
  void fill(void* to, uint8_t byte, int64_t bytes) override {
    context_.enter();
    context_.check(context_.api.fill(address(to), byte, static_cast<size_t>(bytes), context_.queue), "fill");
  }

  // In the order of both queues: after what writes `from`, before what writes it next.
  bool copy_from(gpu::Driver& other, void* to, const void* from, int64_t bytes) override {
    auto* source = dynamic_cast<CudaDriver*>(&other);
    if (source == nullptr) return false;
    Context& theirs = source->context_;
    theirs.enter();
    if (source->ready_ == nullptr) source->ready_ = theirs.make_event();
    theirs.check(theirs.api.record_event(source->ready_, theirs.queue), "copy");
    context_.enter();
    if (ready_ == nullptr) ready_ = context_.make_event();
    context_.check(context_.api.wait_event(context_.queue, source->ready_, 0), "copy");
    context_.check(context_.api.copy_peer(address(to), context_.context, address(from), theirs.context,
                                          static_cast<size_t>(bytes), context_.queue),
                   "copy");
    context_.check(context_.api.record_event(ready_, context_.queue), "copy");
    theirs.enter();
    theirs.check(theirs.api.wait_event(theirs.queue, ready_, 0), "copy");
    return true;
  }

  std::shared_ptr<gpu::Module> build(const std::string& source) override {
    context_.enter();
    std::shared_ptr<gpu::Module>& module = modules_[source];
    if (!module) module = std::make_shared<CudaModule>(context_, compiler_.build(source));
    return module;
  }

  std::unique_ptr<gpu::LaunchList> prepare(std::vector<gpu::Launch> launches) override {
    return std::make_unique<CudaList>(context_, std::move(launches), graphs_);
  }

  std::shared_ptr<gpu::LibraryCall> product(const gpu::Product& p, const gpu::Scratch& scratch) override {
    if (!blas_) return nullptr;
    context_.enter();
    return blas_->product(p, scratch);
  }

  void synchronize() override {
    context_.enter();
    context_.check(context_.api.synchronize(context_.queue), "synchronize");
    context_.waited();
  }

 private:
  DeviceFacts facts_;
  Context context_;
  Memory memory_;
  Transfer transfer_;
  Compiler compiler_;
  std::optional<Blas> blas_;
  bool graphs_;
  std::unordered_map<std::string, std::shared_ptr<gpu::Module>> modules_;
  CUevent ready_ = nullptr;  // of copies between cards
};

DeviceFacts facts_of(const Libraries& libraries, CUdevice id, const std::string& architecture) {
  const Api& api = libraries.cuda;
  const auto attribute = [&](CUdevice_attribute what) {
    int value = 0;
    api.device_attribute(&value, what, id);
    return value;
  };
  DeviceFacts f;
  f.language = gpu::Language::cuda;
  char name[256] = "";
  api.device_name(name, sizeof name, id);
  f.name = name;
  f.vendor = "NVIDIA Corporation";
  int version = 0, major = 0, minor = 0;
  api.driver_version(&version);
  libraries.nvrtc.version(&major, &minor);
  f.driver = cat("CUDA ", version / 1000, ".", version % 1000 / 10, ", NVRTC ", major, ".", minor);
  f.units = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  size_t bytes = 0;
  api.device_memory(&bytes, id);
  f.memory_bytes = f.largest_array_bytes = static_cast<int64_t>(bytes);
  f.local_bytes = attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
  f.parameter_bytes = 4096;  // of every card and CUDA version
  f.largest_group = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  f.features = {"f64", architecture};
  return f;
}

std::string visible() {
  const std::string chosen = env_string("CUDA_VISIBLE_DEVICES");
  return chosen.empty() ? "" : cat(" (CUDA_VISIBLE_DEVICES is \"", chosen, "\")");
}

}  // namespace

std::vector<std::unique_ptr<gpu::Driver>> open_drivers(std::string* why, const std::string& only) {
  std::vector<std::unique_ptr<gpu::Driver>> drivers;
  auto owned = std::make_unique<Libraries>();
  if (!open_api(only, owned->cuda, why)) return drivers;
  const Api& api = owned->cuda;
  int count = 0;
  if (const CUresult code = api.init(0); code != CUDA_SUCCESS) {
    *why = cat("NVIDIA's driver says ", error_name(api, code), visible());
    return drivers;
  }
  if (api.device_count(&count) != CUDA_SUCCESS || count == 0) {
    *why = cat("NVIDIA's driver is here, but no card", visible());
    return drivers;
  }
  if (!open_nvrtc(only, owned->nvrtc, why)) return drivers;
  owned->has_blas = open_blas(only, owned->blas);
  const Libraries& libraries = *owned.release();  // as long as the process
  std::string unfit;
  for (int i = 0; i < count; ++i) {
    CUdevice id = 0;
    int major = 0, minor = 0;
    if (api.device_get(&id, i) != CUDA_SUCCESS) continue;
    api.device_attribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, id);
    api.device_attribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, id);
    const std::string architecture = architecture_for(libraries.nvrtc, major * 10 + minor);
    if (architecture.empty()) {
      unfit = cat("libnvrtc makes no code for the card's compute capability ", major, ".", minor);
      continue;
    }
    try {
      drivers.push_back(std::make_unique<CudaDriver>(libraries, id, static_cast<int>(drivers.size()),
                                                     facts_of(libraries, id, architecture), architecture));
    } catch (const Error& e) {
      unfit = e.what();  // held by another process, say
    }
  }
  if (drivers.empty()) *why = unfit;
  return drivers;
}

}  // namespace outrace::cuda
