#include "outrace/backend/gpu/binary_cache.h"

#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "outrace/core/cache_file.h"
#include "outrace/core/env.h"

namespace outrace::gpu {
namespace {

namespace fs = std::filesystem;

// FNV-1a from two starting points: a name of 128 bits.
uint64_t hash_of(std::string_view text, uint64_t hash) {
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
  return hash;
}

constexpr uint64_t kStart = 0xcbf29ce484222325u, kOther = 0x9ae16a3b2f90404fu;

fs::path folder() {
  const std::string chosen = env_string("OUTRACE_KERNEL_CACHE");
  if (chosen == "off") return {};
  if (!chosen.empty()) return chosen;
  const fs::path cache = cache_folder();
  return cache.empty() ? cache : cache / "kernels";
}

fs::path file_of(const fs::path& in, const std::string& key) {
  return in / fmt::format("{:016x}{:016x}", hash_of(key, kStart), hash_of(key, kOther));
}

// In front of the binary: what tells a whole file from a torn one.
struct Head {
  uint64_t bytes = 0, hash = 0;
};

}  // namespace

std::optional<std::vector<char>> load_binary(const std::string& key) {
  const fs::path in = folder();
  if (in.empty()) return std::nullopt;
  std::ifstream file(file_of(in, key), std::ios::binary);
  Head head;
  if (!file.read(reinterpret_cast<char*>(&head), sizeof head) || head.bytes > (uint64_t{1} << 30)) return std::nullopt;
  std::vector<char> binary(head.bytes);
  if (!file.read(binary.data(), static_cast<std::streamsize>(head.bytes))) return std::nullopt;
  if (hash_of({binary.data(), binary.size()}, kStart) != head.hash) return std::nullopt;
  return binary;
}

void save_binary(const std::string& key, const std::vector<char>& binary) {
  const fs::path in = folder();
  if (in.empty() || binary.empty()) return;
  const Head head{binary.size(), hash_of({binary.data(), binary.size()}, kStart)};
  std::vector<char> bytes(sizeof head + binary.size());
  std::memcpy(bytes.data(), &head, sizeof head);
  std::memcpy(bytes.data() + sizeof head, binary.data(), binary.size());
  write_cache_file(file_of(in, key), bytes);
}

}  // namespace outrace::gpu
