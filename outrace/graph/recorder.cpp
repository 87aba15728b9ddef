#include "outrace/graph/recorder.h"

#include "outrace/core/error.h"
#include "outrace/core/number.h"
#include "outrace/graph/flush.h"
#include "outrace/graph/scope.h"

namespace outrace {
namespace {

constexpr int64_t kMaxPendingNodes = 20000;  // bounds memory of a loop that never asks for a value

thread_local bool grad_on = true;

// A flag that is up while this lives.
struct Raised {
  bool& flag;
  explicit Raised(bool& f) : flag(f) { flag = true; }
  ~Raised() { flag = false; }
};

uint64_t mix(uint64_t h, uint64_t v) {
  h ^= v + 0x9e3779b97f4a7c15u + (h << 6) + (h >> 2);
  return h * 0xff51afd7ed558ccdu;
}

uint64_t hash_node(const OpDef& op, std::span<const NodePtr> inputs, DType dtype, const Shape& shape, Device device,
                   const Attrs& attrs, bool requires_grad) {
  uint64_t h = mix(static_cast<uint64_t>(op.id) << 8 | static_cast<uint64_t>(dtype) << 1 | requires_grad,
                   static_cast<uint64_t>(device.type) << 8 | device.index);
  for (const NodePtr& n : inputs) h = mix(h, reinterpret_cast<uintptr_t>(n.get()) >> 4);
  for (int64_t d : shape) h = mix(h, static_cast<uint64_t>(d));
  if (attrs.index() != 0) h = mix(h, hash_of(attrs));
  return h;
}

}  // namespace

NoGrad::NoGrad() : before_(grad_on) { grad_on = false; }
NoGrad::~NoGrad() { grad_on = before_; }
bool grad_enabled() { return grad_on; }

std::recursive_mutex& engine_lock() {
  static auto* lock = new std::recursive_mutex;
  return *lock;
}

uint32_t next_mark() {
  static uint32_t mark = 0;
  return ++mark;
}

// Recorders outlive their threads: slots of a finished thread may still point here. An empty one serves the next
// thread.
struct Recorder::ThreadHold {
  Recorder* recorder;
  static std::mutex& lock() {
    static auto* m = new std::mutex;
    return *m;
  }
  static std::vector<Recorder*>& idle() {
    static auto* v = new std::vector<Recorder*>;
    return *v;
  }
  ThreadHold() {
    std::lock_guard hold(lock());
    if (idle().empty()) {
      recorder = new Recorder;
    } else {
      recorder = idle().back();
      idle().pop_back();
    }
  }
  ~ThreadHold() {
    recorder->forget_equal_nodes();
    if (recorder->first_) return;
    std::lock_guard hold(lock());
    idle().push_back(recorder);
  }
};

Recorder& Recorder::current() {
  thread_local ThreadHold hold;
  return *hold.recorder;
}

NodePtr Recorder::record(const OpDef& op, std::span<const NodePtr> inputs, DType dtype, const Shape& shape,
                         Device device, const Attrs& attrs, std::source_location where, bool unique) {
  bool requires_grad = false;
  if (grad_on && op.derivative && is_float(dtype))
    for (const NodePtr& n : inputs) requires_grad |= n->requires_grad;
  for (const NodePtr& n : inputs)
    if (!n->is_leaf() && n->recorder != this)
      fail(ErrorKind::state, "[", op.name, "] an input is pending in another thread; call eval() on it there first",
           call_site(where));

  const uint64_t hash = hash_node(op, inputs, dtype, shape, device, attrs, requires_grad);
  size_t at = hash & (table_.size() - 1);
  if (!unique) {
    for (; table_[at]; at = (at + 1) & (table_.size() - 1)) {
      const Node& n = *table_[at];
      if (n.hash != hash || n.op != &op || n.dtype != dtype || n.requires_grad != requires_grad || n.device != device ||
          n.used_by_backward || n.inputs.size() != inputs.size() || !(n.shape == shape) || !(n.attrs == attrs))
        continue;
      bool same = true;
      for (size_t i = 0; i < inputs.size(); ++i) same &= n.inputs[i] == inputs[i];
      if (same) return table_[at];
    }
  }
  if (recorded_since_flush_ >= kMaxPendingNodes && !flushing_ && !capture) {
    flush(where);
    at = hash & (table_.size() - 1);
  }

  auto* n = new Node;
  n->op = &op;
  n->dtype = dtype;
  n->device = device;
  n->requires_grad = requires_grad;
  n->shape = shape;
  n->attrs = attrs;
  n->inputs = NodeInputs(inputs);
  n->recorder = this;
  n->hash = hash;
  n->where = where;
  NodePtr node(n);
  ++recorded_since_flush_;
  if (!unique) {
    table_[at] = node;
    used_.push_back(static_cast<uint32_t>(at));
    if (used_.size() * 2 > table_.size()) grow_table();
  }
  return node;
}

void Recorder::grow_table() {
  std::vector<NodePtr> bigger(table_.size() * 2);
  std::vector<uint32_t> used;
  for (uint32_t from : used_) {
    size_t at = table_[from]->hash & (bigger.size() - 1);
    while (bigger[at]) at = (at + 1) & (bigger.size() - 1);
    bigger[at] = std::move(table_[from]);
    used.push_back(static_cast<uint32_t>(at));
  }
  table_ = std::move(bigger);
  used_ = std::move(used);
}

void Recorder::forget_equal_nodes() {
  for (uint32_t at : used_) table_[at].reset();
  used_.clear();
}

void Recorder::link(Slot& slot) {
  std::lock_guard hold(list_lock_);
  slot.pending_in = this;
  slot.previous = last_;
  slot.next = nullptr;
  (last_ ? last_->next : first_) = &slot;
  last_ = &slot;
}

void Recorder::unlink(Slot& slot) {
  std::lock_guard hold(list_lock_);
  (slot.previous ? slot.previous->next : first_) = slot.next;
  (slot.next ? slot.next->previous : last_) = slot.previous;
  slot.pending_in = nullptr;
  slot.previous = slot.next = nullptr;
}

std::vector<Slot*> Recorder::pending() const {
  std::lock_guard hold(list_lock_);
  std::vector<Slot*> out;
  for (Slot* s = first_; s; s = s->next) out.push_back(s);
  return out;
}

void Recorder::flush(std::source_location where) {
  if (capture)
    fail(ErrorKind::state, "[capture] a value was asked for while a step is being recorded; return it instead",
         call_site(where));
  std::vector<NodePtr> roots;
  for (Slot* s : pending()) roots.push_back(s->node);
  // A gradient that no optimizer step has used yet is stored: the graph behind it is about to go.
  for (const Ref<Slot>& s : graded)
    if (s->grad && !s->grad->is_leaf()) roots.push_back(s->grad);
  const Raised flushing(flushing_);
  forget_equal_nodes();
  recorded_since_flush_ = 0;
  run_pending(roots);
  graded.clear();
}

void Recorder::flush_for(const NodePtr& node) {
  if (node->is_leaf() && node->op != &kConstant && node->op != &kScalar) return;
  if (node->op->kind != OpKind::leaf && node->recorder != this)
    fail(ErrorKind::state, "[eval] the value is pending in another thread; call eval() on it there first");
  if (capture)
    fail(ErrorKind::state, "[capture] a value was asked for while a step is being recorded; return it instead");
  const Raised flushing(flushing_);
  forget_equal_nodes();
  run_pending({node});
}

Tensor record(const OpDef& op, std::initializer_list<const Tensor*> inputs, DType dtype, const Shape& shape,
              const Attrs& attrs, std::source_location where) {
  std::array<NodePtr, 8> nodes;
  OUTRACE_ASSERT(inputs.size() <= nodes.size());
  size_t n = 0;
  for (const Tensor* t : inputs) nodes[n++] = t->node_ptr();
  const Device device = n ? nodes[0]->device : Device{};
  for (size_t i = 1; i < n; ++i)
    if (nodes[i]->device != device)
      fail(ErrorKind::device, "[", op.name, "] inputs lie on different devices; got ", device, " and ",
           nodes[i]->device, "; move one with to(device)", call_site(where));
  return Tensor(Recorder::current().record(op, {nodes.data(), n}, dtype, shape, device, attrs, where));
}

Tensor constant(double value, DType dtype, Device device) {
  return Tensor(Recorder::current().record(kConstant, {}, dtype, Shape{}, device, ConstantAttrs{value}, {}));
}

Tensor scalar(ScalarValue value, DType dtype, Device device, ScalarSource source) {
  auto* n = new Node;
  n->op = &kScalar;
  n->dtype = dtype;
  n->device = device;
  n->scalar = value;
  n->source = std::move(source);
  return Tensor(NodePtr(n));
}

Tensor number(double value, DType dtype, Device device) {
  if (value == 0 || value == 1 || value == -1 || value == 2 || value == 0.5)
    if (!(value == 0 && std::signbit(value))) return constant(value, dtype, device);
  ScalarValue v{};
  if (is_float(dtype))
    v.real = value;
  else
    v.integer = from_number<int64_t>(value);
  return scalar(v, dtype, device);
}

}  // namespace outrace
