// Compiled graphs by signature. At most 64, the least recently used goes first.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "outrace/graph/executable.h"
#include "outrace/graph/schedule.h"

namespace outrace {

struct CompiledGraph {
  std::vector<uint64_t> signature;
  std::vector<int> saved;  // nodes of the walk that become outputs because a later backward() reads them
  std::vector<int> input_walk, scalar_walk;
  std::vector<Scheduled::Output> outputs;
  struct OutputBuffer {
    Device device;
    int64_t bytes;
    Layout layout;
    int donor;  // walk position of the leaf whose buffer it may take over, or -1
  };
  std::vector<OutputBuffer> buffers;  // by plan output
  std::unique_ptr<Executable> executable;
};

class ProgramCache {
 public:
  static ProgramCache& global();
  // Null when there is none.
  std::shared_ptr<CompiledGraph> find(const std::vector<uint64_t>& signature);
  void insert(std::shared_ptr<CompiledGraph> graph);
  void clear();
  int64_t compiled() const { return compiled_; }  // programs made since the start (or clear)
  std::vector<std::shared_ptr<CompiledGraph>> all() const { return entries_; }

 private:
  std::vector<std::shared_ptr<CompiledGraph>> entries_;  // most recent first
  int64_t compiled_ = 0;
};

}  // namespace outrace
