// OpenCL's devices behind the common interface of GPUs.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "outrace/backend/gpu/driver.h"

namespace outrace::opencl {

// All devices of all platforms that can run the texts, GPUs before CPU devices. Empty: `why` says in one line what is
// missing.
std::vector<std::unique_ptr<gpu::Driver>> open_drivers(std::string* why);

}  // namespace outrace::opencl
