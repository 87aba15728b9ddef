#include "outrace/graph/autograd.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "outrace/graph/recorder.h"
#include "outrace/graph/scope.h"
#include "outrace/ops/ops.h"

namespace outrace {
namespace {

bool is_grad_leaf(const Node& n) { return n.owner && n.owner->requires_grad; }

// Nodes that require a gradient, inputs before users. Iterative: graphs are deep.
std::vector<Node*> differentiable_order(Node* root, const std::unordered_set<const Node*>& stop,
                                        std::source_location where) {
  const uint32_t mark = next_mark();
  std::vector<Node*> order;
  std::vector<std::pair<Node*, size_t>> stack;
  auto visit = [&](Node* n) {
    if (n->mark == mark || !n->requires_grad) return;
    n->mark = mark;
    stack.push_back({n, 0});
  };
  visit(root);
  while (!stack.empty()) {
    Node* n = stack.back().first;
    const bool leaf = is_grad_leaf(*n) || stop.contains(n);
    const bool freed = n->op->kind != OpKind::leaf && n->computed() && n->inputs.size() == 0;
    if (!leaf && (n->used_by_backward || freed))
      fail(
          ErrorKind::state,
          "[backward] part of this graph was freed by an earlier backward() (pass {.retain_graph = true} to that one), "
          "or a parameter in it was updated since",
          call_site(where));
    if (leaf || stack.back().second == n->inputs.size()) {
      n->index = static_cast<int32_t>(order.size());
      order.push_back(n);
      stack.pop_back();
    } else {
      visit(n->inputs[stack.back().second++].get());
    }
  }
  return order;
}

struct Gradients {
  std::vector<Node*> order;
  std::vector<Tensor> of;  // by position in order
};

Gradients differentiate(const Tensor& output, const Tensor& upstream, const std::unordered_set<const Node*>& stop,
                        std::source_location where) {
  Gradients g;
  g.order = differentiable_order(output.node_ptr().get(), stop, where);
  // Positions are kept here: recording below may flush and so overwrite the marks' indices.
  std::vector<std::vector<int>> inputs_at(g.order.size());
  const uint32_t mark = g.order.empty() ? 0 : g.order[0]->mark;
  for (size_t i = 0; i < g.order.size(); ++i)
    for (const NodePtr& in : g.order[i]->inputs)
      inputs_at[i].push_back(in->requires_grad && in->mark == mark ? in->index : -1);
  g.of.resize(g.order.size());
  if (g.order.empty()) return g;
  g.of.back() = upstream;
  for (size_t i = g.order.size(); i-- > 0;) {
    Node* n = g.order[i];
    if (!g.of[i].defined() || is_grad_leaf(*n) || stop.contains(n) || n->op->kind == OpKind::leaf) continue;
    std::vector<Tensor> inputs;
    inputs.reserve(n->inputs.size());
    for (const NodePtr& in : n->inputs) inputs.emplace_back(in);
    const Tensor value{NodePtr(n)};
    const DerivativeArgs args{inputs, value, g.of[i], n->attrs};
    for (size_t k = 0; k < n->inputs.size(); ++k) {
      const int at = inputs_at[i][k];
      if (at < 0) continue;
      Tensor d = n->op->derivative(args, static_cast<int>(k));
      if (!d.defined()) continue;
      OUTRACE_ASSERT(d.shape() == n->inputs[k]->shape, n->op->name, " gradient ", k, " has shape ", d.shape(),
                     ", input ", n->inputs[k]->shape);
      g.of[at] = g.of[at].defined() ? add(At(g.of[at], where), d) : d;
    }
  }
  return g;
}

Tensor seed(const Tensor& output, std::source_location where) {
  if (output.numel() != 1)
    fail(ErrorKind::shape,
         "[backward] the output must have one element (take its sum or mean), or pass a gradient for it; got shape ",
         output.shape(), call_site(where));
  const Tensor one = constant(1, output.dtype(), output.device());
  return output.rank() == 0 ? one : expand(At(one, where), output.shape());
}

void require_differentiable(const Tensor& output, std::source_location where) {
  if (!output.requires_grad())
    fail(ErrorKind::state,
         "[backward] no tensor that this value depends on requires a gradient (or it was computed under NoGrad)",
         call_site(where));
}

// The edges of used nodes go as soon as their values are there; now, when they are.
void mark_used(const std::vector<Node*>& order, const std::unordered_set<const Node*>& stop) {
  std::vector<NodePtr> hold;
  for (Node* n : order) hold.emplace_back(n);
  for (Node* n : order) {
    if (is_grad_leaf(*n) || stop.contains(n) || n->op->kind == OpKind::leaf) continue;
    n->used_by_backward = true;
    if (n->computed()) drop_inputs(*n);
  }
}

}  // namespace

std::vector<Tensor> grad(const Tensor& output, const std::vector<Tensor>& wrt, BackwardOptions options,
                         const Tensor& upstream, std::source_location where) {
  std::lock_guard hold(engine_lock());
  require_differentiable(output, where);
  std::unordered_set<const Node*> stop;
  for (const Tensor& t : wrt) stop.insert(t.node_ptr().get());
  Gradients g;
  {
    std::optional<NoGrad> off;
    if (!options.create_graph) off.emplace();
    g = differentiate(output, upstream.defined() ? upstream : seed(output, where), stop, where);
  }
  std::vector<Tensor> out;
  for (const Tensor& t : wrt) {
    Tensor found;
    for (size_t i = 0; i < g.order.size(); ++i)
      if (g.order[i] == t.node_ptr().get()) found = g.of[i];
    out.push_back(found);
  }
  if (!options.retain_graph && !options.create_graph) mark_used(g.order, stop);
  return out;
}

void Tensor::backward(BackwardOptions options, std::source_location where) const {
  std::lock_guard hold(engine_lock());
  require_differentiable(*this, where);
  Recorder& recorder = Recorder::current();
  // A second backward() before step(): the first one's gradients are stored, so that micro-batches share one program.
  const auto waits = [](const Ref<Slot>& s) { return s->grad && !s->grad->is_leaf(); };
  if (!recorder.capture && std::any_of(recorder.graded.begin(), recorder.graded.end(), waits)) recorder.flush(where);
  Gradients g;
  {
    std::optional<NoGrad> off;
    if (!options.create_graph) off.emplace();
    g = differentiate(*this, seed(*this, where), {}, where);
    for (size_t i = 0; i < g.order.size(); ++i) {
      if (!is_grad_leaf(*g.order[i]) || !g.of[i].defined()) continue;
      Slot& slot = *g.order[i]->owner;
      if (recorder.capture && slot.grad && slot.grad->is_leaf())
        fail(ErrorKind::state,
             "[capture] a gradient from before the captured step would be added to; call zero_grad() first",
             call_site(where));
      slot.grad = slot.grad ? add(At(Tensor(slot.grad), where), g.of[i]).node_ptr() : g.of[i].node_ptr();
      slot.grad_state = GradState::set;
      recorder.graded.emplace_back(&slot);
    }
  }
  if (!options.retain_graph && !options.create_graph) mark_used(g.order, {});
}

std::vector<Node*> detail::read_by_derivative(const NodePtr& root) {
  NoGrad off;
  auto* placeholder = new Node;  // stands for the upstream gradient; never computed
  placeholder->op = &kBuffer;
  placeholder->dtype = root->dtype;
  placeholder->device = root->device;
  placeholder->shape = root->shape;
  const Gradients g = differentiate(Tensor(root), Tensor(NodePtr(placeholder)), {}, root->where);
  std::unordered_set<const Node*> forward(g.order.begin(), g.order.end());
  std::vector<const Node*> stack;
  std::unordered_set<const Node*> seen;
  std::vector<Node*> reads;
  for (size_t i = 0; i < g.order.size(); ++i)
    if (is_grad_leaf(*g.order[i]) && g.of[i].defined()) stack.push_back(g.of[i].node_ptr().get());
  // Walk the derivative's own nodes: those newer than the forward graph, so neither in it nor leading only to leaves.
  std::unordered_set<const Node*> past;
  std::vector<const Node*> todo{root.get()};
  while (!todo.empty()) {
    const Node* n = todo.back();
    todo.pop_back();
    if (!past.insert(n).second) continue;
    for (const NodePtr& in : n->inputs) todo.push_back(in.get());
  }
  while (!stack.empty()) {
    const Node* n = stack.back();
    stack.pop_back();
    if (!seen.insert(n).second) continue;
    if (past.contains(n)) {
      if (!n->is_leaf()) reads.push_back(const_cast<Node*>(n));
      continue;
    }
    for (const NodePtr& in : n->inputs) stack.push_back(in.get());
  }
  Recorder::current().forget_equal_nodes();
  return reads;
}

}  // namespace outrace
