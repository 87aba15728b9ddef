#include "outrace/graph/flush.h"

#include <set>

#include "outrace/core/env.h"
#include "outrace/graph/autograd.h"
#include "outrace/graph/memory_plan.h"
#include "outrace/graph/passes/passes.h"
#include "outrace/graph/print.h"
#include "outrace/graph/recorder.h"

namespace outrace {
namespace {

// What derivatives of the outputs that stay differentiable will read: stored now, so that nothing is computed twice.
std::vector<int> values_to_save(const std::vector<NodePtr>& roots) {
  const Walk walk = walk_graph(roots);
  std::vector<NodePtr> keep;
  for (size_t i = 0; i < walk.nodes.size(); ++i)
    if (walk.keep[i]) keep.emplace_back(walk.nodes[i]);
  if (keep.empty()) return {};
  std::set<Node*> read;
  for (const NodePtr& n : keep)
    for (Node* r : detail::read_by_derivative(n)) read.insert(r);
  const Walk again = walk_graph(roots);  // the derivative's walks moved the marks
  std::vector<int> saved;
  for (size_t i = 0; i < again.nodes.size(); ++i)
    if (read.contains(again.nodes[i]) && !again.output[i]) saved.push_back(static_cast<int>(i));
  return saved;
}

void save(Walk& walk, const std::vector<int>& saved) {
  for (int i : saved) {
    walk.output[i] = 1;
    walk.keep[i] = walk.nodes[i]->requires_grad && !walk.nodes[i]->owner;
  }
}

std::shared_ptr<CompiledGraph> compile_graph(const Ir& ir, const Walk& walk, std::vector<uint64_t> signature,
                                             std::vector<int> saved) {
  auto graph = std::make_shared<CompiledGraph>();
  const Ir laid_out = assign_layouts(ir);
  Scheduled s = schedule(laid_out, fuse(laid_out));
  plan_memory(s.plan);
  graph->signature = std::move(signature);
  graph->saved = std::move(saved);
  graph->input_walk = std::move(s.input_walk);
  graph->scalar_walk = std::move(s.scalar_walk);
  graph->outputs = std::move(s.outputs);
  graph->buffers.resize(s.plan.outputs);
  for (const PlanValue& v : s.plan.values)
    if (v.kind == ValueKind::output)
      graph->buffers[v.index] = {v.device, v.bytes(), v.layout,
                                 v.donor < 0 ? -1 : graph->input_walk[s.plan.values[v.donor].index]};
  if (debug_level() >= 1) print_new_program(s.plan, walk);
  graph->executable = std::make_unique<Executable>(std::move(s.plan));
  return graph;
}

}  // namespace

Prepared prepare(const std::vector<NodePtr>& roots) {
  ProgramCache& cache = ProgramCache::global();
  static std::vector<uint64_t> words;  // under the engine lock
  for (;;) {
    Walk walk = walk_graph(roots);
    words.clear();
    append_signature(walk, words);
    if (std::shared_ptr<CompiledGraph> known = cache.find(words)) {
      save(walk, known->saved);
      return {std::move(walk), std::move(known)};
    }
    std::vector<uint64_t> signature = words;
    std::vector<int> saved = values_to_save(roots);
    walk = walk_graph(roots);
    save(walk, saved);
    const Ir ir = sink_permutes(simplify(build_ir(walk)));
    const std::vector<int> pack = leaves_to_pack(ir);
    if (!pack.empty()) {
      for (int i : pack) change_layout(*walk.nodes[i], Layout::panel);
      continue;  // the signature has changed with the layouts
    }
    auto graph = compile_graph(ir, walk, std::move(signature), std::move(saved));
    cache.insert(graph);
    return {std::move(walk), std::move(graph)};
  }
}

void execute(const Prepared& p, const std::vector<NodePtr>& roots) {
  const CompiledGraph& g = *p.graph;
  const Walk& walk = p.walk;
  static Bindings bindings;  // under the engine lock; kept for its memory
  static std::vector<BufferPtr> buffers;
  bindings.inputs.clear();
  bindings.outputs.clear();
  bindings.scalars.clear();
  buffers.clear();
  struct Release {
    ~Release() { buffers.clear(); }
  } release;
  for (int i : g.input_walk) bindings.inputs.push_back(walk.nodes[i]->data());
  for (int i : g.scalar_walk) bindings.scalars.push_back(walk.nodes[i]->scalar);
  const std::vector<uint8_t> dying = dying_nodes(walk, roots);
  g.executable->reserve();
  for (const CompiledGraph::OutputBuffer& b : g.buffers) {
    const Node* donor = b.donor >= 0 ? walk.nodes[b.donor] : nullptr;
    const bool take = donor && dying[b.donor] && donor->buffer->refs == 1 && donor->byte_offset == 0;
    buffers.push_back(take ? donor->buffer : Buffer::allocate(b.device, b.bytes, b.layout));
    bindings.outputs.push_back(buffers.back()->data);
  }
  g.executable->run(bindings);

  std::vector<NodePtr> hold;  // edges are dropped below: no node of the walk may go meanwhile
  hold.reserve(g.outputs.size());
  for (const Scheduled::Output& o : g.outputs) hold.emplace_back(walk.nodes[o.walk]);
  for (const Scheduled::Output& o : g.outputs) {
    Node& n = *walk.nodes[o.walk];
    if (o.plan_output >= 0) {
      n.buffer = buffers[o.plan_output];
      n.byte_offset = o.offset * size_of(n.dtype);
    } else {
      const Node& leaf = *walk.nodes[o.leaf_walk];
      n.buffer = leaf.buffer;
      n.byte_offset = leaf.byte_offset + o.offset * size_of(n.dtype);
    }
  }
  for (const Scheduled::Output& o : g.outputs) {
    Node& n = *walk.nodes[o.walk];
    n.donor.reset();
    if (!walk.keep[o.walk]) drop_inputs(n);
  }
}

void settle(Recorder& recorder) {
  for (Slot* s : recorder.pending())
    if (s->node->is_leaf()) recorder.unlink(*s);
}

// After a failure: assigned slots show their old values again, and what failed is not tried again by every later flush.
void roll_back(Recorder& recorder, const std::vector<NodePtr>& roots) {
  walk_graph(roots);
  const uint32_t mark = roots.empty() ? next_mark() : roots[0]->mark;
  for (Slot* s : recorder.pending()) {
    if (s->node->mark != mark) continue;
    if (s->node->donor) {
      const NodePtr old = s->node->donor;
      const bool owned = s->node->owner == s;
      old->used_by_backward = false;
      s->set_node(old);
      if (s->requires_grad) old->requires_grad = true;
      if (owned) old->owner = s;
    }
    if (s->pending_in) recorder.unlink(*s);
  }
  for (const Ref<Slot>& s : recorder.graded)
    if (s->grad && s->grad->mark == mark) {
      s->grad.reset();
      s->grad_state = GradState::none;
    }
}

void run_pending(const std::vector<NodePtr>& roots) {
  if (roots.empty()) return;
  std::lock_guard hold(engine_lock());
  Recorder& recorder = Recorder::current();
  try {
    execute(prepare(roots), roots);
  } catch (...) {
    roll_back(recorder, roots);
    throw;
  }
  settle(recorder);
}

}  // namespace outrace
