// Layouts: weights of linear layers live packed, and so does everything updated element by element beside them.
#include <numeric>

#include "outrace/backend/backend.h"
#include "outrace/graph/passes/passes.h"

namespace outrace {

const OpDef kRelayout(OpFacts{.name = "relayout", .kind = OpKind::producer});

namespace {

// Arrays tied together by elementwise ops of one shape: they share a layout.
struct Components {
  std::vector<int> parent;
  explicit Components(size_t n) : parent(n) { std::iota(parent.begin(), parent.end(), 0); }
  int find(int i) {
    while (parent[i] != i) i = parent[i] = parent[parent[i]];
    return i;
  }
  void join(int a, int b) { parent[find(a)] = find(b); }
};

struct Analysis {
  Components components;
  std::vector<uint8_t> plain_only;  // by component root: some member must stay row-major
  std::vector<uint8_t> packed;      // by component root: a member is, or wants to be, packed
  std::vector<uint8_t> wants;       // by node: a plain weight that its products would rather read packed
};

bool packable(const IrNode& n) {
  return n.shape.rank() == 2 && n.shape[0] > 1 && n.shape[1] > 1 && backend_for(n.device).packs_weights(n.dtype);
}

bool reads_weight(const IrNode& user, int operand) {
  return user.op == &kMatmul && operand == 1 && user.shape.rank() == 2 &&
         !std::get<MatmulAttrs>(user.attrs).transpose_a && user.inputs[0] != user.inputs[1];
}

Analysis analyse(const Ir& ir) {
  const size_t count = ir.nodes.size();
  Analysis a{Components(count), std::vector<uint8_t>(count, 0), std::vector<uint8_t>(count, 0),
             std::vector<uint8_t>(count, 0)};
  std::vector<uint8_t> refuses(count, 0);
  for (size_t i = 0; i < count; ++i) {
    const IrNode& n = ir.nodes[i];
    const bool flexible = n.op == &kMatmul && n.shape.rank() == 2;
    if (!n.is_leaf() && n.op->kind != OpKind::elementwise && !flexible) refuses[i] = 1;
    for (size_t k = 0; k < n.inputs.size(); ++k) {
      const int in = n.inputs[k];
      const IrNode& u = ir.nodes[in];
      if (n.op->kind == OpKind::elementwise && u.shape == n.shape) {
        if (u.op == &kConstant || u.op == &kScalar) continue;
        if (u.dtype == n.dtype) {
          a.components.join(in, static_cast<int>(i));
        } else {  // panels of another dtype have another width
          refuses[i] = 1;
          if (u.op != &kBuffer) refuses[in] = 1;
        }
      } else if (n.op->kind == OpKind::elementwise) {
        if (u.shape.numel() != 1) refuses[i] = 1;  // a broadcast row or column needs the plain order
      } else if (reads_weight(n, static_cast<int>(k)) && u.op == &kBuffer) {
        if (u.parameter && packable(u) && u.layout == Layout::plain && std::get<MatmulAttrs>(n.attrs).transpose_b)
          a.wants[in] = 1;
      } else if (u.op != &kBuffer || u.layout == Layout::plain) {
        refuses[in] = 1;
      }
    }
  }
  // A plain weight with another reader stays plain; a packed one is unpacked for that reader.
  for (size_t i = 0; i < count; ++i)
    if (a.wants[i] && refuses[i]) a.wants[i] = 0;
  for (size_t i = 0; i < count; ++i) {
    const int root = a.components.find(static_cast<int>(i));
    a.plain_only[root] |= refuses[i];
    a.packed[root] |= a.wants[i] || ir.nodes[i].layout == Layout::panel;
  }
  return a;
}

}  // namespace

std::vector<int> leaves_to_pack(const Ir& ir) {
  Analysis a = analyse(ir);
  std::vector<uint8_t> donor(ir.nodes.size(), 0);
  for (const IrNode& n : ir.nodes)
    if (n.donor >= 0) donor[n.donor] = 1;
  std::vector<int> out;
  for (size_t i = 0; i < ir.nodes.size(); ++i) {
    const IrNode& n = ir.nodes[i];
    if (n.op != &kBuffer || n.layout != Layout::plain || !packable(n)) continue;
    const int root = a.components.find(static_cast<int>(i));
    if (a.plain_only[root]) continue;
    if (a.wants[i] || (a.packed[root] && donor[i])) out.push_back(n.walk);
  }
  return out;
}

// Gives every node its layout and puts relayouts behind the leaves that differ from their component.
Ir assign_layouts(const Ir& ir) {
  Analysis a = analyse(ir);
  auto layout_of = [&](int i) {
    const int root = a.components.find(i);
    return a.packed[root] && !a.plain_only[root] ? Layout::panel : Layout::plain;
  };
  Ir to;
  std::vector<int> at(ir.nodes.size()), converted(ir.nodes.size(), -1);
  for (size_t i = 0; i < ir.nodes.size(); ++i) {
    IrNode n = ir.nodes[i];
    const bool tied = n.op->kind == OpKind::elementwise;
    for (size_t k = 0; k < n.inputs.size(); ++k) {
      const int in = n.inputs[k];
      const IrNode& u = ir.nodes[in];
      Layout wish = Layout::plain;
      if (tied && u.shape == n.shape) wish = layout_of(static_cast<int>(i));
      if (reads_weight(n, static_cast<int>(k)) && u.op == &kBuffer) wish = u.layout;
      if (u.op != &kBuffer || u.layout == wish) {
        n.inputs[k] = at[in];
        continue;
      }
      if (converted[in] < 0) {
        IrNode c;
        c.op = &kRelayout;
        c.inputs = {at[in]};
        c.dtype = u.dtype;
        c.shape = u.shape;
        c.device = u.device;
        c.layout = wish;
        converted[in] = static_cast<int>(to.nodes.size());
        to.nodes.push_back(std::move(c));
      }
      n.inputs[k] = converted[in];
    }
    if (!n.is_leaf()) {
      n.layout = tied || n.op == &kMatmul ? layout_of(static_cast<int>(i)) : Layout::plain;
      n.donor = n.donor >= 0 ? at[n.donor] : -1;
      if (n.donor >= 0 && to.nodes[n.donor].layout != n.layout) n.donor = -1;
    }
    at[i] = static_cast<int>(to.nodes.size());
    to.nodes.push_back(std::move(n));
  }
  for (const Ir::Output& o : ir.outputs) to.outputs.push_back({o.walk, at[o.node]});
  return to;
}

}  // namespace outrace
