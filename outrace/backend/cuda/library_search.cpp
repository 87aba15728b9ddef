#include "outrace/backend/cuda/library_search.h"

#include <dlfcn.h>

#include <filesystem>

#include "outrace/core/env.h"

namespace outrace::cuda {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> parts(const std::string& list) {
  std::vector<std::string> out;
  for (size_t from = 0; from <= list.size();) {
    const size_t to = std::min(list.find(':', from), list.size());
    if (to > from) out.push_back(list.substr(from, to - from));
    from = to + 1;
  }
  return out;
}

std::vector<fs::path> entries(const fs::path& folder) {
  std::vector<fs::path> out;
  std::error_code ignored;
  for (fs::directory_iterator it(folder, ignored), end; it != end; it.increment(ignored)) out.push_back(it->path());
  return out;
}

// <packages>/nvidia/<package>/lib
void add_packages(const fs::path& packages, std::vector<std::string>& out) {
  std::error_code ignored;
  for (const fs::path& package : entries(packages / "nvidia"))
    if (fs::is_directory(package / "lib", ignored)) out.push_back(package / "lib");
}

// <prefix>/lib/python3*/{site,dist}-packages
void add_prefix(const fs::path& prefix, std::vector<std::string>& out) {
  for (const fs::path& python : entries(prefix / "lib")) {
    if (!python.filename().string().starts_with("python3")) continue;
    for (const char* name : {"site-packages", "dist-packages"}) add_packages(python / name, out);
  }
}

}  // namespace

std::vector<std::string> library_folders() {
  std::vector<std::string> out;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const std::string home = env_string(variable); !home.empty()) out.push_back(home + "/lib64");
  out.emplace_back("/usr/local/cuda/lib64");
  for (const std::string& p : parts(env_string("PYTHONPATH"))) add_packages(p, out);
  std::vector<fs::path> prefixes;
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"})
    if (const std::string prefix = env_string(variable); !prefix.empty()) prefixes.emplace_back(prefix);
  std::error_code ignored;
  for (const fs::path folder : parts(env_string("PATH")))
    if (fs::exists(folder / "python3", ignored)) prefixes.push_back(folder.parent_path());
  if (const std::string home = env_string("HOME"); !home.empty()) prefixes.push_back(fs::path(home) / ".local");
  for (const fs::path& prefix : prefixes) add_prefix(prefix, out);
  return out;
}

void* open_library(std::span<const char* const> names, const std::string& only) {
  const auto open = [](const std::string& file) { return dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL); };
  const std::string chosen = only.empty() ? env_string("OUTRACE_CUDA_LIBRARIES") : only;
  if (chosen.empty())
    for (const char* name : names)
      if (void* library = open(name)) return library;
  std::error_code ignored;
  for (const std::string& folder : chosen.empty() ? library_folders() : parts(chosen))
    for (const char* name : names)
      if (const fs::path file = fs::path(folder) / name; fs::exists(file, ignored))
        if (void* library = open(file)) return library;
  return nullptr;
}

}  // namespace outrace::cuda
