// The files of gpu/kernels, embedded by the build.
#pragma once
#include <span>
#include <string_view>
#include <utility>

namespace outrace::embedded {
extern const std::span<const std::pair<std::string_view, std::string_view>> gpu_kernels;
}
