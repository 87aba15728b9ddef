// Files of the user's cache: what can be made again, so that a missing or damaged one costs time only.
#pragma once
#include <filesystem>
#include <span>

namespace outrace {

// $XDG_CACHE_HOME/outrace or ~/.cache/outrace; empty where neither is known.
std::filesystem::path cache_folder();
// Whole or not at all, also beside other processes that write the same file; failures are ignored.
void write_cache_file(const std::filesystem::path& file, std::span<const char> bytes);

}  // namespace outrace
