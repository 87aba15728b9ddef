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
};

struct ScalarInput {
  ScalarSource source;
  ScalarValue fixed;
};

}  // namespace

struct CapturedStep::Recording {
  std::vector<ArgumentKey> arguments;
  bool grad = false;
  std::vector<std::pair<const bool*, bool>> training;
  std::shared_ptr<CompiledGraph> graph;
  std::vector<Source> inputs;
  std::vector<ScalarInput> scalars;
  std::vector<int> donor_input;  // by plan output: the input whose buffer it may take, or -1
  struct Target {
    Ref<Slot> slot;            // receives the value
    std::vector<int> results;  // positions among the returned tensors
    int plan_output = -1;
    int input = -1;  // it is the value of an input, unchanged
    int64_t byte_offset = 0;
    DType dtype = DType::f32;
    Shape shape;
  };
  std::vector<Target> targets;
  size_t result_count = 0;
  std::vector<std::function<void()>> on_replay;

  bool fits(std::span<const Tensor> args) const;
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
    Node* n = s.fixed ? s.fixed.get() : s.slot ? s.slot->node.get() : args[s.argument].node_ptr().get();
    if (!n->computed()) {
      Recorder::current().flush_for(NodePtr(n));
      n = s.slot ? s.slot->node.get() : n;
    }
    if (n->layout() != s.layout) change_layout(*n, s.layout);
    bindings.inputs.push_back(n->data());
  }
  for (const auto& advance : on_replay) advance();
  for (const ScalarInput& s : scalars) bindings.scalars.push_back(s.source ? *s.source : s.fixed);
  graph->executable->reserve();
  for (size_t i = 0; i < graph->buffers.size(); ++i) {
    const CompiledGraph::OutputBuffer& b = graph->buffers[i];
    const Node* donor =
        donor_input[i] >= 0 && inputs[donor_input[i]].slot ? inputs[donor_input[i]].slot->node.get() : nullptr;
    const bool take = donor && donor->refs == 1 && donor->buffer->refs == 1 && donor->byte_offset == 0;
    buffers.push_back(take ? donor->buffer : Buffer::allocate(b.device, b.bytes, b.layout));
    bindings.outputs.push_back(buffers.back()->data);
  }
  graph->executable->run(bindings);

  std::vector<Tensor> results(result_count);
  for (const Target& t : targets) {
    BufferPtr buffer;
    int64_t offset = t.byte_offset;
    if (t.plan_output >= 0) {
      buffer = buffers[t.plan_output];
    } else {
      const Source& s = inputs[t.input];
      const Node& n = s.fixed ? *s.fixed : s.slot ? *s.slot->node : args[s.argument].node();
      buffer = n.buffer;
      offset += n.byte_offset;
    }
    if (t.slot && !(t.slot->node->buffer == buffer && t.slot->node->byte_offset == offset)) {
      const bool trainable = t.slot->requires_grad;
      t.slot->set_node(make_buffer_node(buffer, t.dtype, t.shape, offset));
      t.slot->node->requires_grad = trainable;
      t.slot->node->owner = trainable ? t.slot.get() : nullptr;
    }
    for (int r : t.results) results[r] = Tensor(make_buffer_node(buffer, t.dtype, t.shape, offset));
  }
  return results;
}

std::vector<Tensor> CapturedStep::run(std::span<const Tensor> args,
                                      FunctionRef<std::vector<Tensor>(std::span<const Tensor>)> record) {
  for (const Tensor& a : args) a.eval();
  std::lock_guard hold(engine_lock());
  for (const auto& r : recordings_)
    if (r->fits(args)) return r->replay(args);

  Recorder& recorder = Recorder::current();
  recorder.flush();
  std::vector<Tensor> own;  // arguments as leaves of their own, so that the recording can tell them from anything else
  for (const Tensor& a : args) {
    const Node& n = a.node();
    own.emplace_back(make_buffer_node(n.buffer, n.dtype, n.shape, n.byte_offset));
  }
  CaptureLog log;
  std::vector<Tensor> results;
  recorder.capture = &log;
  try {
    results = record(own);
  } catch (...) {
    recorder.capture = nullptr;
    recorder.forget_equal_nodes();
    roll_back(recorder);
    throw;
  }
  recorder.capture = nullptr;
  recorder.graded.clear();
  recorder.forget_equal_nodes();

  std::vector<NodePtr> roots;
  for (const Tensor& r : results) roots.push_back(r.node_ptr());
  for (const CaptureLog::Assigned& a : log.assigned) roots.push_back(a.slot->node);
  auto made = std::make_unique<Recording>();
  try {
    const Prepared p = prepare(roots);
    made->graph = p.graph;
    made->grad = grad_enabled();
    made->training = std::move(log.training);
    made->on_replay = std::move(log.on_replay);
    made->result_count = results.size();
    for (const Tensor& a : own) made->arguments.push_back({a.shape(), a.dtype(), a.device()});
    std::unordered_map<int, int> input_of;  // walk position -> plan input
    for (int w : p.graph->input_walk) {
      Node* n = p.walk.nodes[w];
      Source s{-1, nullptr, nullptr, n->shape, n->dtype, n->device, n->layout()};
      for (size_t i = 0; i < own.size(); ++i)
        if (own[i].node_ptr().get() == n) s.argument = static_cast<int>(i);
      for (const CaptureLog::Assigned& a : log.assigned)
        if (a.before.get() == n) s.slot = a.slot;
      if (s.argument < 0 && !s.slot && n->owner) s.slot = Ref<Slot>(n->owner);
      if (s.argument < 0 && !s.slot) s.fixed = NodePtr(n);
      input_of[w] = static_cast<int>(made->inputs.size());
      made->inputs.push_back(std::move(s));
    }
    for (int w : p.graph->scalar_walk) made->scalars.push_back({p.walk.nodes[w]->source, p.walk.nodes[w]->scalar});
    for (const CompiledGraph::OutputBuffer& b : p.graph->buffers)
      made->donor_input.push_back(b.donor < 0 ? -1 : input_of.at(b.donor));
    for (const Scheduled::Output& o : p.graph->outputs) {
      const Node* n = p.walk.nodes[o.walk];
      Recording::Target t;
      for (const CaptureLog::Assigned& a : log.assigned)
        if (a.slot->node.get() == n) t.slot = a.slot;
      for (size_t i = 0; i < results.size(); ++i)
        if (results[i].node_ptr().get() == n) t.results.push_back(static_cast<int>(i));
      if (!t.slot && t.results.empty()) continue;
      t.plan_output = o.plan_output;
      if (o.plan_output < 0) t.input = input_of.at(o.leaf_walk);
      t.byte_offset = o.offset * size_of(n->dtype);
      t.dtype = n->dtype;
      t.shape = n->shape;
      made->targets.push_back(std::move(t));
    }
    log.assigned.clear();  // the old values may now be overwritten
    execute(p, roots);
  } catch (...) {
    roll_back(recorder);
    throw;
  }
  settle(recorder);
  for (Tensor& r : results) r = r.detach();
  recordings_.push_back(std::move(made));
  return results;
}

}  // namespace outrace
