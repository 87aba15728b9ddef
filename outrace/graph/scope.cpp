#include "outrace/graph/scope.h"

#include <vector>

#include "outrace/core/error.h"

namespace outrace {
namespace {
struct Frame {
  const std::string* path;
  std::source_location where;
};
thread_local std::vector<Frame> frames;
}  // namespace

ModuleScope::ModuleScope(const std::string& path, std::source_location where) { frames.push_back({&path, where}); }
ModuleScope::~ModuleScope() { frames.pop_back(); }

std::string call_site(std::source_location where) {
  if (frames.empty()) return cat("\n  called at ", where.file_name(), ":", static_cast<unsigned>(where.line()));
  std::string out;
  for (size_t i = frames.size(); i-- > 0;) {
    const Frame& f = frames[i];
    out += cat("\n  in module ", f.path->empty() ? std::string("(root)") : *f.path, ", called at ", f.where.file_name(),
               ":", static_cast<unsigned>(f.where.line()));
  }
  return out;
}

}  // namespace outrace
