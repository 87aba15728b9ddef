#include "outrace/core/cache_file.h"

#include <unistd.h>

#include <fstream>
#include <string>

#include "outrace/core/env.h"

namespace outrace {

namespace fs = std::filesystem;

fs::path cache_folder() {
  if (const std::string xdg = env_string("XDG_CACHE_HOME"); !xdg.empty()) return fs::path(xdg) / "outrace";
  const std::string home = env_string("HOME");
  return home.empty() ? fs::path() : fs::path(home) / ".cache/outrace";
}

void write_cache_file(const fs::path& file, std::span<const char> bytes) {
  std::error_code ignored;
  fs::create_directories(file.parent_path(), ignored);
  const fs::path part = file.string() + "." + std::to_string(::getpid());
  std::ofstream out(part, std::ios::binary);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (out)
    fs::rename(part, file, ignored);
  else
    fs::remove(part, ignored);
}

}  // namespace outrace
