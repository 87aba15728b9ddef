#include "outrace/graph/walk.h"

#include "outrace/graph/recorder.h"
#include "outrace/graph/tensor.h"

namespace outrace {

Walk walk_graph(std::span<const NodePtr> roots) {
  Walk walk;
  const uint32_t mark = next_mark();
  static std::vector<std::pair<Node*, uint32_t>> stack;  // under the engine lock
  stack.clear();
  auto visit = [&](Node* n) {
    if (n->mark == mark) return;
    n->mark = mark;
    stack.push_back({n, 0});
  };
  for (const NodePtr& root : roots) {
    visit(root.get());
    while (!stack.empty()) {
      auto& [n, next] = stack.back();
      if (n->computed() || next == n->inputs.size()) {
        n->index = static_cast<int32_t>(walk.nodes.size());
        walk.nodes.push_back(n);
        stack.pop_back();
      } else {
        visit(n->inputs[next++].get());
      }
    }
  }
  const size_t count = walk.nodes.size();
  walk.output.assign(count, 0);
  walk.keep.assign(count, 0);
  std::vector<int32_t> held(count, 0);  // references from the walk itself
  for (Node* n : walk.nodes)
    if (!n->computed())
      for (const NodePtr& in : n->inputs) ++held[in->index];
  for (const NodePtr& root : roots) {
    ++held[root->index];
    walk.output[root->index] = 1;
  }
  std::vector<uint8_t> freed(
      count, 0);  // backward() has used part of the way to the leaves: nothing above can be differentiated
  for (size_t i = 0; i < count; ++i) {
    const Node& n = *walk.nodes[i];
    if (n.is_leaf()) {
      walk.output[i] = 0;
      freed[i] = n.used_by_backward;
      continue;
    }
    freed[i] = n.used_by_backward;
    for (const NodePtr& in : n.inputs) freed[i] |= in->requires_grad && freed[in->index];
    if (n.handles > 0 || n.refs.load(std::memory_order_relaxed) > held[i]) walk.output[i] = 1;
    walk.keep[i] = walk.output[i] && n.requires_grad && !freed[i] && !n.owner;
  }
  return walk;
}

std::vector<uint8_t> dying_nodes(const Walk& walk, std::span<const NodePtr> roots) {
  const size_t count = walk.nodes.size();
  std::vector<uint8_t> dying(count, 0);
  static std::vector<int32_t> lost;  // references that go; under the engine lock
  lost.assign(count, 0);
  for (const NodePtr& root : roots) ++lost[root->index];
  for (size_t i = count; i-- > 0;) {
    Node& n = *walk.nodes[i];
    if (n.donor && !n.computed() && n.donor->mark == n.mark) ++lost[n.donor->index];
    const bool dies = n.refs.load(std::memory_order_relaxed) == lost[i];
    dying[i] = dies;
    if (n.computed()) continue;
    if (dies || (walk.output[i] && !walk.keep[i]))
      for (const NodePtr& in : n.inputs) ++lost[in->index];
  }
  return dying;
}

void append_signature(const Walk& walk, std::vector<uint64_t>& words) {
  for (size_t i = 0; i < walk.nodes.size(); ++i) {
    const Node& n = *walk.nodes[i];
    const bool leaf = n.is_leaf();
    const bool parameter = leaf && n.owner && n.owner->requires_grad;
    const OpDef* op = n.computed() ? &kBuffer : n.op;
    words.push_back(static_cast<uint64_t>(op->id) << 48 | static_cast<uint64_t>(n.dtype) << 40 |
                    static_cast<uint64_t>(n.device.type) << 36 | static_cast<uint64_t>(n.device.index) << 28 |
                    static_cast<uint64_t>(leaf ? 0 : n.inputs.size()) << 16 |
                    static_cast<uint64_t>(n.shape.rank()) << 8 | static_cast<uint64_t>(n.layout()) << 4 |
                    parameter << 3 | walk.keep[i] << 1 | walk.output[i]);
    for (int64_t d : n.shape) words.push_back(static_cast<uint64_t>(d));
    if (n.computed()) continue;
    if (n.attrs.index() != 0) append_words(n.attrs, words);
    for (const NodePtr& in : n.inputs) words.push_back(static_cast<uint64_t>(in->index));
    if (n.donor && n.donor->mark == n.mark) words.push_back(~static_cast<uint64_t>(n.donor->index));
  }
}

}  // namespace outrace
