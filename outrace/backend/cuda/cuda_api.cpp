#include "outrace/backend/cuda/cuda_api.h"

#include <dlfcn.h>

#include <utility>

#include "outrace/backend/cuda/library_search.h"
#include "outrace/core/error.h"

// The headers rename functions by macros (cuMemAlloc is cuMemAlloc_v2): the name is what is left after them.
#define OUTRACE_NAME_OF(function) #function
#define OUTRACE_FIND(member, function) find(table.member, OUTRACE_NAME_OF(function));

namespace outrace::cuda {
namespace {

class Finder {
 public:
  explicit Finder(void* library) : library_(library) {}
  template <class F>
  void operator()(F& function, const char* name) {
    function = reinterpret_cast<F>(dlsym(library_, name));
    if (function == nullptr && missing.empty()) missing = name;
  }
  std::string missing;

 private:
  void* library_;
};

}  // namespace

bool open_api(const std::string& only, Api& table, std::string* why) {
  constexpr const char* kNames[] = {"libcuda.so.1"};
  void* library = open_library(kNames, only);
  if (library == nullptr) {
    *why = "libcuda.so.1 is not here; it comes with NVIDIA's driver of the card";
    return false;
  }
  Finder find(library);
  OUTRACE_CUDA_FUNCTIONS(OUTRACE_FIND)
  if (find.missing.empty()) return true;
  *why = cat("libcuda.so.1 has no ", find.missing, "; a driver for CUDA 12 or later is needed");
  return false;
}

bool open_nvrtc(const std::string& only, Nvrtc& table, std::string* why) {
  constexpr const char* kNames[] = {"libnvrtc.so.13", "libnvrtc.so.12"};
  void* library = open_library(kNames, only);
  if (library == nullptr) {
    *why =
        "libnvrtc.so.13 (or .12), CUDA's run-time compiler, is not here; install the toolkit or `pip install "
        "nvidia-cuda-nvrtc`, or name its folder in OUTRACE_CUDA_LIBRARIES";
    return false;
  }
  Finder find(library);
  OUTRACE_NVRTC_FUNCTIONS(OUTRACE_FIND)
  if (find.missing.empty()) return true;
  *why = cat("libnvrtc has no ", find.missing, "; CUDA 12 or later is needed");
  return false;
}

std::string error_name(const Api& api, CUresult code) {
  const char* name = nullptr;
  if (api.error_name(code, &name) == CUDA_SUCCESS && name != nullptr) return name;
  return cat("error ", static_cast<int>(code));
}

}  // namespace outrace::cuda
