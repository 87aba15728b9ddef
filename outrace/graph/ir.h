// The graph as the passes see it: a copy of the pending nodes that may be rewritten, with small integers for edges.
#pragma once
#include <vector>

#include "outrace/core/device.h"
#include "outrace/graph/plan.h"
#include "outrace/graph/walk.h"
#include "outrace/ops/op_def.h"

namespace outrace {

struct IrNode {
  const OpDef* op = nullptr;
  Attrs attrs;
  std::vector<int> inputs;
  DType dtype = DType::f32;
  Shape shape;
  Device device;
  int walk = -1;  // leaves: position in the walk, where the run finds pointer or number
  Layout layout = Layout::plain;
  bool parameter = false;  // leaf: a trainable tensor's current value
  bool output = false;
  int donor = -1;  // leaf whose buffer the value may overwrite
  bool is_leaf() const { return op->kind == OpKind::leaf; }
};

struct Ir {
  std::vector<IrNode> nodes;  // inputs before users
  struct Output {
    int walk;  // node of the walk that receives the value
    int node;
  };
  std::vector<Output> outputs;
};

Ir build_ir(const Walk& walk);

}  // namespace outrace
