#include "outrace/graph/program_cache.h"

#include <algorithm>

namespace outrace {
namespace {
constexpr size_t kMaxPrograms = 64;
}

ProgramCache& ProgramCache::global() {
  static auto* cache = new ProgramCache;
  return *cache;
}

std::shared_ptr<CompiledGraph> ProgramCache::find(const std::vector<uint64_t>& signature) {
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i]->signature != signature) continue;
    std::rotate(entries_.begin(), entries_.begin() + static_cast<long>(i), entries_.begin() + static_cast<long>(i) + 1);
    return entries_.front();
  }
  return nullptr;
}

void ProgramCache::insert(std::shared_ptr<CompiledGraph> graph) {
  ++compiled_;
  entries_.insert(entries_.begin(), std::move(graph));
  if (entries_.size() > kMaxPrograms) entries_.pop_back();
}

void ProgramCache::clear() {
  entries_.clear();
  compiled_ = 0;
}

}  // namespace outrace
