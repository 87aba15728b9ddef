// The flush: pending nodes become a program (known or new), the program runs, its outputs become leaves.
#pragma once
#include <memory>
#include <vector>

#include "outrace/graph/program_cache.h"
#include "outrace/graph/walk.h"

namespace outrace {

// Computes the roots and every value below them that somebody holds. Takes the engine lock.
// An exception leaves all values, and parameters above all, as they were.
void run_pending(const std::vector<NodePtr>& roots);

// The parts of it that capture() uses by themselves. All under the engine lock.
struct Prepared {
  Walk walk;
  std::shared_ptr<CompiledGraph> graph;
};
Prepared prepare(const std::vector<NodePtr>& roots);
void execute(const Prepared& prepared, const std::vector<NodePtr>& roots);
void settle(Recorder& recorder);  // computed slots wait no longer
// After the failure of a walk from `roots`: its assigned slots show their old values, its gradients are forgotten.
void roll_back(Recorder& recorder, const std::vector<NodePtr>& roots);

}  // namespace outrace
