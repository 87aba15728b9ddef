// From fused groups to a plan: an order of calls in which every value is computed before it is read and an array is
// overwritten only after its last reader.
#pragma once
#include <vector>

#include "outrace/graph/passes/passes.h"
#include "outrace/graph/plan.h"

namespace outrace {

struct Scheduled {
  Plan plan;
  std::vector<int> input_walk;   // plan input -> node of the walk
  std::vector<int> scalar_walk;  // plan scalar -> node of the walk
  struct Output {
    int walk;              // node of the walk that receives the value
    int plan_output = -1;  // -1: it shares the buffer of the leaf `leaf_walk`
    int leaf_walk = -1;
    int64_t offset = 0;  // elements
  };
  std::vector<Output> outputs;
};

Scheduled schedule(const Ir& ir, const Fused& fused);

}  // namespace outrace
