// Compiled kernels on disk: one file a text and device, under $XDG_CACHE_HOME/outrace/kernels (or ~/.cache/...).
// OUTRACE_KERNEL_CACHE names another folder; "off" keeps none. A file that cannot be read or written is none.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace outrace::gpu {

// `key`: everything the binary depends on (text, options, device, driver).
std::optional<std::vector<char>> load_binary(const std::string& key);
void save_binary(const std::string& key, const std::vector<char>& binary);

}  // namespace outrace::gpu
