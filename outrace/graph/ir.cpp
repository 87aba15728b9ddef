#include "outrace/graph/ir.h"

#include "outrace/graph/tensor.h"

namespace outrace {

Ir build_ir(const Walk& walk) {
  Ir ir;
  ir.nodes.reserve(walk.nodes.size());
  for (size_t i = 0; i < walk.nodes.size(); ++i) {
    const Node& n = *walk.nodes[i];
    IrNode out;
    out.op = n.computed() ? &kBuffer : n.op;
    out.dtype = n.dtype;
    out.shape = n.shape;
    out.device = n.device;
    out.layout = n.layout();
    if (n.is_leaf()) {
      out.walk = static_cast<int>(i);
      out.parameter = n.owner && n.owner->requires_grad;
      if (n.op == &kConstant && !n.computed()) out.attrs = n.attrs;
    } else {
      out.attrs = n.attrs;
      for (const NodePtr& in : n.inputs) out.inputs.push_back(in->index);
      out.output = walk.output[i];
      if (n.donor && n.donor->mark == n.mark) out.donor = n.donor->index;
      if (out.output) ir.outputs.push_back({static_cast<int>(i), static_cast<int>(i)});
    }
    ir.nodes.push_back(std::move(out));
  }
  return ir;
}

}  // namespace outrace
