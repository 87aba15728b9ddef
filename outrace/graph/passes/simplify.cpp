// Simplification: value numbering plus the few identities that change no bit of any value.
#include <unordered_map>

#include "outrace/graph/passes/passes.h"

namespace outrace {
namespace {

// Whether every element is `value`: a constant, or one in another shape, as the derivative of a sum is.
bool is_constant(const Ir& ir, int node, double value) {
  while (ir.nodes[node].op->kind == OpKind::movement) node = ir.nodes[node].inputs[0];
  const auto* c = std::get_if<ConstantAttrs>(&ir.nodes[node].attrs);
  return ir.nodes[node].op == &kConstant && c && c->value == value;
}

// What `n` equals without being computed; -1: itself. Inputs are already those of the new graph.
int identity(const Ir& to, const IrNode& n) {
  auto in = [&](int k) -> const IrNode& { return to.nodes[n.inputs[k]]; };
  auto all = [&](int k, double value) { return is_constant(to, n.inputs[k], value); };
  auto same = [&](int k) { return in(k).shape == n.shape && in(k).dtype == n.dtype; };
  if (n.op->kind == OpKind::elementwise && n.op->ew >= 0) {
    switch (static_cast<Ew>(n.op->ew)) {
      case Ew::mul:
        if (all(1, 1) && same(0)) return n.inputs[0];
        if (all(0, 1) && same(1)) return n.inputs[1];
        break;
      case Ew::div:
        if (all(1, 1) && same(0)) return n.inputs[0];
        break;
      case Ew::sub:  // x - 0 is x for every x; x + 0 is not for -0
        if (all(1, 0) && same(0)) return n.inputs[0];
        break;
      case Ew::neg:
        if (in(0).op == n.op) return in(0).inputs[0];
        break;
      default: break;
    }
  }
  if (n.op == &kCast && same(0)) return n.inputs[0];
  if (n.op == &kBatchNorm) return n.inputs[0];  // it is there for its derivative
  if (n.op->kind == OpKind::movement && same(0)) {
    const bool has_memory = in(0).op != &kConstant && in(0).op != &kScalar;
    if ((n.op == &kReshape || n.op == &kExpand) && has_memory) return n.inputs[0];
    if (n.op == &kPermute && has_memory) {
      const auto& axes = std::get<PermuteAttrs>(n.attrs).axes;
      for (int i = 0; i < n.shape.rank(); ++i)
        if (axes[i] != i) return -1;
      return n.inputs[0];
    }
  }
  return -1;
}

// reshape(reshape(x)) and permute(permute(x)) read x directly.
void shorten(const Ir& to, IrNode& n) {
  if (n.op != &kReshape && n.op != &kPermute) return;
  const IrNode& in = to.nodes[n.inputs[0]];
  if (in.op != n.op) return;
  if (n.op == &kPermute) {
    auto& outer = std::get<PermuteAttrs>(n.attrs).axes;
    const auto& inner = std::get<PermuteAttrs>(in.attrs).axes;
    for (int i = 0; i < n.shape.rank(); ++i) outer[i] = inner[outer[i]];
  }
  n.inputs[0] = in.inputs[0];
}

uint64_t key_of(const IrNode& n) {
  uint64_t h = static_cast<uint64_t>(n.op->id) * 0x9e3779b97f4a7c15u + static_cast<uint64_t>(n.dtype);
  for (int i : n.inputs) h = (h ^ static_cast<uint64_t>(i)) * 0xff51afd7ed558ccdu;
  for (int64_t d : n.shape) h = (h ^ static_cast<uint64_t>(d)) * 0xc4ceb9fe1a85ec53u;
  return h ^ hash_of(n.attrs);
}

}  // namespace

Ir simplify(const Ir& ir) {
  std::vector<uint8_t> used(ir.nodes.size(), 0);
  for (const Ir::Output& o : ir.outputs) used[o.node] = 1;
  for (size_t i = ir.nodes.size(); i-- > 0;)
    if (used[i])
      for (int in : ir.nodes[i].inputs) used[in] = 1;

  Ir to;
  std::vector<int> at(ir.nodes.size(), -1);
  std::unordered_multimap<uint64_t, int> known;
  for (size_t i = 0; i < ir.nodes.size(); ++i) {
    // A donor is needed even when nobody reads it: its buffer is where the new value goes.
    if (!used[i]) continue;
    IrNode n = ir.nodes[i];
    for (int& in : n.inputs) in = at[in];
    n.donor = n.donor >= 0 ? at[n.donor] : -1;
    if (!n.is_leaf()) {
      shorten(to, n);
      const int same = identity(to, n);
      // A scalar has no memory, and a product or a loss may read this value: its one-element copy stays.
      if (same >= 0 && to.nodes[same].op != &kScalar) {
        at[i] = same;
        to.nodes[same].output |= n.output;
        continue;
      }
      const uint64_t key = key_of(n);
      auto [first, last] = known.equal_range(key);
      for (; first != last && at[i] < 0; ++first) {
        IrNode& other = to.nodes[first->second];
        if (other.op == n.op && other.dtype == n.dtype && other.shape == n.shape && other.inputs == n.inputs &&
            other.attrs == n.attrs) {
          at[i] = first->second;
          other.output |= n.output;
          if (other.donor < 0) other.donor = n.donor;
        }
      }
      if (at[i] >= 0) continue;
      known.emplace(key, static_cast<int>(to.nodes.size()));
    }
    at[i] = static_cast<int>(to.nodes.size());
    to.nodes.push_back(std::move(n));
  }
  for (const Ir::Output& o : ir.outputs) to.outputs.push_back({o.walk, at[o.node]});
  return to;
}

}  // namespace outrace
