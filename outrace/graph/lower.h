// One fused group as a call: tile programs, views and labels. Used by the schedule only.
#pragma once
#include <vector>

#include "outrace/graph/passes/passes.h"
#include "outrace/graph/plan.h"

namespace outrace {

// Where each node's value lives in the plan; filled by the schedule before groups are lowered.
struct Placement {
  std::vector<int> value;   // by node; -1: not stored
  std::vector<int> scalar;  // by node: index of a scalar input, or -1
};

Call lower_group(const Ir& ir, const Fused& fused, const Group& group, const Placement& placement,
                 const std::vector<PlanValue>& values);

}  // namespace outrace
