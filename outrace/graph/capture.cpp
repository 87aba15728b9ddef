#include "outrace/graph/capture.h"

#include <unordered_map>

#include "outrace/graph/flush.h"
#include "outrace/graph/recorder.h"

namespace outrace {
namespace {

struct ArgumentKey {
  Shape shape;
  DType dtype;
  Device device;
};

// Where a replay finds a plan input.
struct Source {
  int argument = -1;
  Ref<Slot> slot;  // a parameter or a state that the step updates: its current value
  NodePtr fixed;   // anything else: the value it had
  Shape shape;
  DType dtype = DType::f32;
  Device device;
  Layout layout = Layout::plain;
  bool requires_grad = false;
};

struct ScalarInput {
  ScalarSource source;
  ScalarValue fixed;
};

}  // namespace

struct CapturedStep::Recording {
  std::vector<ArgumentKey> arguments;
  bool grad = false;
  std::vector<std::pair<std::shared_ptr<const bool>, bool>> training;
  std::shared_ptr<CompiledGraph> graph;
  std::vector<Source> inputs;  // the plan's, then those that only pass through to a result
  std::vector<ScalarInput> scalars;
  std::vector<int> donor_input;  // by plan output: the input whose buffer it may take, or -1
  struct Target {
    Ref<Slot> slot;   // receives the value
    int result = -1;  // position among the returned tensors
    int plan_output = -1;
    int input = -1;  // it is the value of an input, unchanged
    int64_t byte_offset = 0;
    DType dtype = DType::f32;
    Shape shape;
  };
  std::vector<Target> targets;
  size_t result_count = 0;
  std::vector<std::function<void()>> on_replay, on_failure;

  bool fits(std::span<const Tensor> args) const;
  static Node* node_of(const Source& s, std::span<const Tensor> args) {
    return s.fixed ? s.fixed.get() : s.slot ? s.slot->node.get() : args[s.argument].node_ptr().get();
  }
  void describe(const Prepared& p, std::span<const NodePtr> own, const std::vector<Tensor>& results,
                const CaptureLog& log);
  std::vector<Tensor> replay(std::span<const Tensor> args);
};

CapturedStep::CapturedStep() = default;
CapturedStep::~CapturedStep() = default;
CapturedStep::CapturedStep(CapturedStep&&) noexcept = default;

bool CapturedStep::Recording::fits(std::span<const Tensor> args) const {
  if (args.size() != arguments.size() || grad != grad_enabled()) return false;
  for (size_t i = 0; i < args.size(); ++i) {
    const Node& n = args[i].node();
    if (!(n.shape == arguments[i].shape) || n.dtype != arguments[i].dtype || n.device != arguments[i].device)
      return false;
  }
  for (const auto& [flag, value] : training)
    if (*flag != value) return false;
  for (const Source& s : inputs) {
    if (!s.slot) continue;
    const Node& n = *s.slot->node;
    if (!(n.shape == s.shape) || n.dtype != s.dtype || n.device != s.device) return false;
    if (s.slot->requires_grad != s.requires_grad) return false;  // frozen since, or no longer
  }
  return true;
}

std::vector<Tensor> CapturedStep::Recording::replay(std::span<const Tensor> args) {
  static Bindings bindings;  // under the engine lock; kept for their memory
  static std::vector<BufferPtr> buffers;
  bindings.inputs.clear();
  bindings.outputs.clear();
  bindings.scalars.clear();
  struct Release {
    ~Release() { buffers.clear(); }
  } release;

  for (const Source& s : inputs) {
    Node* n = node_of(s, args);
    if (!n->computed()) {
      Recorder::current().flush_for(NodePtr(n));
      n = node_of(s, args);
    }
    if (n->layout() != s.layout) change_layout(*n, s.layout);
    if (bindings.inputs.size() < graph->input_walk.size()) bindings.inputs.push_back(n->data());
  }
  for (const auto& advance : on_replay) advance();
  try {
    for (const ScalarInput& s : scalars) bindings.scalars.push_back(s.source ? *s.source : s.fixed);
    graph->executable->reserve();
    for (size_t i = 0; i < graph->buffers.size(); ++i) {
      const CompiledGraph::OutputBuffer& b = graph->buffers[i];
      const Node* donor =
          donor_input[i] >= 0 && inputs[donor_input[i]].slot ? inputs[donor_input[i]].slot->node.get() : nullptr;
      bool take = donor && donor->refs == 1 && donor->buffer->refs == 1 && donor->byte_offset == 0;
      for (const Tensor& a : args) take = take && a.node_ptr().get() != donor;
      buffers.push_back(take ? donor->buffer : Buffer::allocate(b.device, b.bytes, b.layout));
      bindings.outputs.push_back(buffers.back()->data);
    }
    graph->executable->run(bindings);
  } catch (...) {
    for (const auto& undo : on_failure) undo();
    throw;
  }

  std::vector<Tensor> results(result_count);
  for (const Target& t : targets) {
    BufferPtr buffer;
    int64_t offset = t.byte_offset;
    if (t.plan_output >= 0) {
      buffer = buffers[t.plan_output];
    } else {
      const Node& n = *node_of(inputs[t.input], args);
      buffer = n.buffer;
      offset += n.byte_offset;
    }
    if (t.slot && !(t.slot->node->buffer == buffer && t.slot->node->byte_offset == offset)) {
      const bool trainable = t.slot->requires_grad, owned = t.slot->node->owner == t.slot.get();
      t.slot->set_node(make_buffer_node(buffer, t.dtype, t.shape, offset));
      t.slot->node->requires_grad = trainable;
      t.slot->node->owner = owned ? t.slot.get() : nullptr;
    }
    if (t.result >= 0) results[t.result] = Tensor(make_buffer_node(buffer, t.dtype, t.shape, offset));
  }
  return results;
}

void CapturedStep::Recording::describe(const Prepared& p, std::span<const NodePtr> own,
                                       const std::vector<Tensor>& results, const CaptureLog& log) {
  graph = p.graph;
  grad = grad_enabled();
  training = log.training;
  on_replay = log.on_replay;
  on_failure = log.on_failure;
  result_count = results.size();
  for (const NodePtr& a : own) arguments.push_back({a->shape, a->dtype, a->device});

  std::unordered_map<const Node*, int> known;
  auto source_of = [&](Node* n) {
    auto [it, fresh] = known.emplace(n, static_cast<int>(inputs.size()));
    if (!fresh) return it->second;
    Source s{-1, nullptr, nullptr, n->shape, n->dtype, n->device, n->layout()};
    for (size_t i = 0; i < own.size(); ++i)
      if (own[i].get() == n) s.argument = static_cast<int>(i);
    for (const CaptureLog::Assigned& a : log.assigned)
      if (a.before.get() == n) s.slot = a.slot;
    if (s.argument < 0 && !s.slot && n->owner) s.slot = Ref<Slot>(n->owner);
    if (s.argument < 0 && !s.slot) s.fixed = NodePtr(n);
    if (s.slot) s.requires_grad = s.slot->requires_grad;
    inputs.push_back(std::move(s));
    return it->second;
  };
  for (int w : p.graph->input_walk) source_of(p.walk.nodes[w]);
  for (int w : p.graph->scalar_walk) scalars.push_back({p.walk.nodes[w]->source, p.walk.nodes[w]->scalar});
  for (const CompiledGraph::OutputBuffer& b : p.graph->buffers)
    donor_input.push_back(b.donor < 0 ? -1 : source_of(p.walk.nodes[b.donor]));

  std::unordered_map<const Node*, const Scheduled::Output*> computed;
  for (const Scheduled::Output& o : p.graph->outputs) computed[p.walk.nodes[o.walk]] = &o;
  auto target_of = [&](const NodePtr& n) {
    Target t;
    t.dtype = n->dtype;
    t.shape = n->shape;
    auto it = computed.find(n.get());
    if (it == computed.end()) {
      t.input = source_of(n.get());
    } else {
      t.plan_output = it->second->plan_output;
      if (t.plan_output < 0) t.input = source_of(p.walk.nodes[it->second->leaf_walk]);
      t.byte_offset = it->second->offset * size_of(n->dtype);
    }
    return t;
  };
  for (const CaptureLog::Assigned& a : log.assigned) {
    targets.push_back(target_of(a.slot->node));
    targets.back().slot = a.slot;
  }
  for (size_t i = 0; i < results.size(); ++i) {
    targets.push_back(target_of(results[i].node_ptr()));
    targets.back().result = static_cast<int>(i);
  }
}

namespace {

void refuse_what_replays_cannot_do(const Recorder& recorder, const CaptureLog& log, std::span<const Tensor> arguments) {
  for (const CaptureLog::Assigned& a : log.assigned)
    for (size_t i = 0; i < arguments.size(); ++i)
      if (&arguments[i].slot() == a.slot.get())
        fail(ErrorKind::state, "[capture] the step changes its argument ", i,
             " in place, which a replay would not see; work on a new tensor (x * 1) and return it");
  for (const Ref<Slot>& s : recorder.graded)
    if (s->grad)
      fail(ErrorKind::state,
           "[capture] a captured step left a gradient behind; let it call step() without keep_grads, or return "
           "grad(...)");
  for (size_t i = 0; i < log.assigned.size(); ++i)
    for (size_t k = 0; k < i; ++k)
      if (log.assigned[i].before == log.assigned[k].before)
        fail(ErrorKind::state,
             "[capture] two tensors that the step assigns are one value; give each its own first, with assign()");
}

}  // namespace

std::vector<Tensor> CapturedStep::run(std::span<const Tensor> args,
                                      FunctionRef<std::vector<Tensor>(std::span<const Tensor>)> record) {
  for (const Tensor& a : args) a.eval();
  std::lock_guard hold(engine_lock());
  for (const auto& r : recordings_)
    if (r->fits(args)) return r->replay(args);

  Recorder& recorder = Recorder::current();
  recorder.flush();
  std::vector<NodePtr> leaves;
  std::vector<Tensor> own;  // arguments as leaves of their own, so that the recording can tell them from anything else
  for (const Tensor& a : args) {
    const Node& n = a.node();
    leaves.push_back(make_buffer_node(n.buffer, n.dtype, n.shape, n.byte_offset));
    own.emplace_back(leaves.back());
  }
  CaptureLog log;
  std::vector<Tensor> results;
  std::vector<NodePtr> roots;
  auto undo = [&] {
    recorder.capture = nullptr;
    recorder.forget_equal_nodes();
    roots.clear();
    for (const CaptureLog::Assigned& a : log.assigned) roots.push_back(a.slot->node);
    roll_back(recorder, roots);
    recorder.graded.clear();
    for (const auto& step_back : log.on_failure) step_back();
  };
  auto made = std::make_unique<Recording>();
  try {
    recorder.capture = &log;
    results = record(own);
    recorder.capture = nullptr;
    recorder.forget_equal_nodes();
    refuse_what_replays_cannot_do(recorder, log, own);
    for (Tensor& r : results) {
      if (r.node().op == &kConstant || r.node().op == &kScalar) r.eval();
      roots.push_back(r.node_ptr());
    }
    for (const CaptureLog::Assigned& a : log.assigned) roots.push_back(a.slot->node);
    const Prepared p = prepare(roots);
    made->describe(p, leaves, results, log);
    for (CaptureLog::Assigned& a : log.assigned) a.before.reset();  // the old values may now be overwritten
    execute(p, roots);
  } catch (...) {
    undo();
    throw;
  }
  recorder.graded.clear();
  settle(recorder);
  for (Tensor& r : results) r = r.detach();
  recordings_.push_back(std::move(made));
  return results;
}

}  // namespace outrace
