// NVIDIA's cards behind the common interface of GPUs, on CUDA's driver API.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "outrace/backend/gpu/driver.h"

namespace outrace::cuda {

// The cards that this process may see, in the driver's order (CUDA_VISIBLE_DEVICES chooses and orders them). Empty:
// `why` says in one line what is missing. `only`: folders, separated by colons, in which alone libraries are looked
// for; for tests.
std::vector<std::unique_ptr<gpu::Driver>> open_drivers(std::string* why, const std::string& only = "");

}  // namespace outrace::cuda
