// The passes, in the order in which compile_graph() applies them.
#pragma once
#include <optional>
#include <vector>

#include "outrace/graph/ir.h"

namespace outrace {

// Equal nodes become one; identities that keep NaN, infinity and -0 (x * 1, x / 1, x - 0, --x) go; movement chains
// shorten; unused nodes go.
Ir simplify(const Ir& ir);

// Moves the permutes that stand around image ops together, and simplifies: images stay [N, H, W, C] from one op to the
// next.
Ir sink_permutes(const Ir& ir);

// Leaves (positions in the walk) that the layout pass wants packed before the graph is compiled: weights of linear
// layers and the optimizer state that is updated beside them.
std::vector<int> leaves_to_pack(const Ir& ir);
Ir assign_layouts(const Ir& ir);

// One call to be: an optional producer and the elementwise nodes that run over its tiles, or over nothing.
struct Group {
  int producer = -1;
  std::vector<int> members;   // elementwise (or one movement node that must be copied), inputs before users
  std::vector<int> prologue;  // elementwise nodes computed on the fly as the reduction's input
  Layout layout = Layout::plain;
};

// Calls fn(node, input) for every edge into the group's nodes, those between them included.
template <class Fn>
void for_inputs(const Ir& ir, const Group& group, Fn&& fn) {
  auto each = [&](int node) {
    for (int in : ir.nodes[node].inputs) fn(node, in);
  };
  if (group.producer >= 0) each(group.producer);
  for (int m : group.members) each(m);
  for (int m : group.prologue) each(m);
}

// Where a node's elements lie: through strides in `base`, which has memory of its own.
struct Access {
  int base = -1;
  int64_t offset = 0;
  Strides strides{};
};

struct Fused {
  std::vector<Group> groups;
  std::vector<int> group_of;   // by node; -1: leaf, or movement read through strides
  std::vector<Access> access;  // by node
};

Fused fuse(const Ir& ir);

// How movement node `n` reads its input's base; nullopt when no strides do (some reshapes of views).
std::optional<Access> move(const Ir& ir, const IrNode& n, const Access& in);
// What registers of a tile program hold for a node.
DType compute_type(const Ir& ir, const IrNode& n);

}  // namespace outrace
