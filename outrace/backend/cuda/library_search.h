// Finds NVIDIA's libraries at run time: nothing is linked.
#pragma once
#include <span>
#include <string>
#include <vector>

namespace outrace::cuda {

// Folders in which CUDA's run-time libraries may lie, besides those of the dynamic linker: the toolkit's, and those of
// Python packages (nvidia-cuda-nvrtc, nvidia-cublas) in the environments that this process can see.
std::vector<std::string> library_folders();

// A handle of dlopen for the first of `names` that can be opened; null if there is none. OUTRACE_CUDA_LIBRARIES, or
// `only` where it is not empty, is a list of folders, separated by colons, and then the only place that is searched.
void* open_library(std::span<const char* const> names, const std::string& only = "");

}  // namespace outrace::cuda
