// In place of the other files here where CUDA's headers were not found at build time.
#include "outrace/backend/cuda/cuda_driver.h"

namespace outrace::cuda {

std::vector<std::unique_ptr<gpu::Driver>> open_drivers(std::string* why, const std::string&) {
  *why =
      "this build has no CUDA backend, as cuda.h, nvrtc.h and cublasLt.h were not found; install CUDA's toolkit (12 or "
      "later) and build again";
  return {};
}

}  // namespace outrace::cuda
