#include "outrace/graph/tensor.h"

#include <cstdio>

#include "outrace/backend/backend.h"
#include "outrace/graph/autograd.h"
#include "outrace/graph/recorder.h"
#include "outrace/graph/scope.h"
#include "outrace/ops/ops.h"

namespace outrace {

Slot::Slot(NodePtr n) : node(std::move(n)) {
  ++node->handles;
  if (!node->is_leaf()) Recorder::current().link(*this);
}

void Slot::set_node(NodePtr n) {
  if (node->owner == this) node->owner = nullptr;
  --node->handles;
  node = std::move(n);
  ++node->handles;
  if (pending_in && node->is_leaf()) pending_in->unlink(*this);
  if (!pending_in && !node->is_leaf()) Recorder::current().link(*this);
}

void Slot::destroy(Slot* s) {
  if (s->pending_in) s->pending_in->unlink(*s);
  if (s->node->owner == s) s->node->owner = nullptr;
  --s->node->handles;
  delete s;
}

const NodePtr& Tensor::node_ptr() const {
  if (!slot_) fail(ErrorKind::value, "[tensor] an undefined Tensor was used; give it a value first");
  return slot_->node;
}

Tensor Tensor::from_bytes(const void* data, DType dtype, const Shape& shape, Device device) {
  const int64_t bytes = shape.numel() * size_of(dtype);
  BufferPtr buffer = Buffer::allocate(device, bytes);
  if (bytes) backend_for(device).copy_in(device, buffer->data, data, bytes);
  return Tensor(make_buffer_node(std::move(buffer), dtype, shape));
}

const Tensor& Tensor::eval() const {
  const NodePtr& n = node_ptr();
  if (n->computed()) return *this;
  if (n->op == &kConstant || n->op == &kScalar) {
    // A leaf without memory: computed by copying it.
    Tensor copy = record(kReshape, {this}, n->dtype, n->shape, NoAttrs{}, n->where);
    Recorder::current().flush_for(copy.node_ptr());
    slot_->set_node(copy.node_ptr());
    return *this;
  }
  Recorder::current().flush_for(n);
  return *this;
}

void Tensor::copy_out(void* host) const {
  eval();
  const Node& n = node();
  if (n.bytes() == 0) return;
  Backend& backend = backend_for(n.device);
  std::lock_guard hold(engine_lock());
  if (n.layout() == Layout::plain) {
    backend.copy_out(n.device, host, n.data(), n.bytes());
    return;
  }
  BufferPtr plain = Buffer::allocate(n.device, n.bytes());
  backend.relayout(n.device, plain->data, Layout::plain, n.data(), n.layout(), n.dtype, n.shape);
  backend.copy_out(n.device, host, plain->data, n.bytes());
}

double Tensor::item() const {
  if (numel() != 1) fail(ErrorKind::shape, "[item] needs one element; got shape ", shape());
  return to_vector<double>()[0];
}

template <class T>
std::vector<T> Tensor::to_vector() const {
  std::vector<T> out(static_cast<size_t>(numel()));
  if (dtype() == dtype_of<T>()) {
    copy_out(out.data());
    return out;
  }
  visit_dtype(dtype(), [&](auto zero) {
    using S = decltype(zero);
    std::unique_ptr<S[]> raw(new S[out.size()]);
    copy_out(raw.get());
    for (size_t i = 0; i < out.size(); ++i) {
      if constexpr (std::is_same_v<S, bf16> || std::is_same_v<S, f16>)
        out[i] = static_cast<T>(static_cast<float>(raw[i]));
      else
        out[i] = static_cast<T>(raw[i]);
    }
  });
  return out;
}
template std::vector<float> Tensor::to_vector<float>() const;
template std::vector<double> Tensor::to_vector<double>() const;
template std::vector<int32_t> Tensor::to_vector<int32_t>() const;
template std::vector<int64_t> Tensor::to_vector<int64_t>() const;
template std::vector<uint8_t> Tensor::to_vector<uint8_t>() const;

namespace {

constexpr int64_t kEdge = 3;  // entries shown at either end of a long axis

void print_axis(std::string& out, const std::vector<double>& values, const Shape& shape, int axis, int64_t offset) {
  if (axis == shape.rank()) {
    char text[32];
    std::snprintf(text, sizeof text, "%.6g", values[offset]);
    out += text;
    return;
  }
  const int64_t step = contiguous_strides(shape)[axis];
  out += '[';
  for (int64_t i = 0; i < shape[axis]; ++i) {
    if (i) out += ", ";
    if (shape[axis] > 2 * kEdge + 2 && i == kEdge) {
      out += "...";
      i = shape[axis] - kEdge - 1;
      continue;
    }
    print_axis(out, values, shape, axis + 1, offset + i * step);
  }
  out += ']';
}

}  // namespace

std::string Tensor::str() const {
  if (!defined()) return "undefined";
  std::string out;
  print_axis(out, to_vector<double>(), shape(), 0, 0);
  return cat(out, " ", name_of(dtype()), " ", shape());
}

Tensor& Tensor::requires_grad_(bool on) {
  Node* n = const_cast<Node*>(&node());
  if (on && !is_float(n->dtype))
    fail(ErrorKind::dtype, "[requires_grad_] only floating point tensors have gradients; got ", name_of(n->dtype));
  if (on && n->requires_grad && n->owner != slot_.get())
    fail(ErrorKind::state,
         "[requires_grad_] the tensor is computed from others that require a gradient; detach() it first");
  slot_->requires_grad = on;
  if (n->handles > 1 || n->op == &kConstant || n->op == &kScalar) {
    // Other tensors hold this node: give this one its own.
    eval();
    slot_->set_node(make_buffer_node(node().buffer, node().dtype, node().shape, node().byte_offset));
    n = slot_->node.get();
  }
  n->requires_grad = on;
  n->owner = slot_.get();
  return *this;
}

Tensor Tensor::grad() const {
  node_ptr();
  if (slot_->grad_state == GradState::consumed)
    fail(ErrorKind::state,
         "[grad] the gradient went straight into the optimizer's update and was never stored; "
         "call step({.keep_grads = true}), or take grad() before step()");
  return slot_->grad ? Tensor(slot_->grad) : Tensor();
}

void Tensor::zero_grad() {
  node_ptr();
  slot_->grad.reset();
  slot_->grad_state = GradState::none;
}

Tensor Tensor::detach() const {
  const Node& n = node();
  if (!n.requires_grad) return *this;
  if (n.computed() && !Recorder::current().capture)
    return Tensor(make_buffer_node(n.buffer, n.dtype, n.shape, n.byte_offset));
  NoGrad off;
  return record(kReshape, {this}, n.dtype, n.shape, NoAttrs{}, n.where);
}

void Tensor::assign(const Tensor& value, std::source_location where) {
  const NodePtr& v = value.node_ptr();
  if (value.slot_ == slot_) return;
  if (v->is_leaf() && (Recorder::current().capture || (grad_enabled() && v->requires_grad))) {
    // A node, so that a replay, and a derivative, find what the value came from.
    return replace(Recorder::current().record(kReshape, {&v, 1}, v->dtype, v->shape, v->device, NoAttrs{}, where, true),
                   where);
  }
  if (v->is_leaf()) {
    const Tensor& ready = value.eval();
    return replace(make_buffer_node(ready.node().buffer, ready.dtype(), ready.shape(), ready.node().byte_offset),
                   where);
  }
  // The value stays its own; this slot gets a node of its own, which the passes unite again.
  std::vector<NodePtr> inputs(v->inputs.begin(), v->inputs.end());
  NodePtr clone = Recorder::current().record(*v->op, inputs, v->dtype, v->shape, v->device, v->attrs, v->where, true);
  replace(std::move(clone), where);
}

void Tensor::assign(Tensor&& value, std::source_location where) {
  const NodePtr& v = value.node_ptr();
  if (v->is_leaf() || value.slot_->refs != 1 || v->handles != 1 || v->donor || v->owner)
    return assign(static_cast<const Tensor&>(value), where);
  NodePtr node = v;
  value = Tensor();
  replace(std::move(node), where);
}

void Tensor::replace_everywhere(const Tensor& value) {
  const Node& v = value.eval().node();
  const bool trainable = slot_->requires_grad && is_float(v.dtype);
  zero_grad();
  const bool owned = node().owner == slot_.get();
  slot_->set_node(make_buffer_node(v.buffer, v.dtype, v.shape, v.byte_offset));
  slot_->requires_grad = slot_->node->requires_grad = trainable;
  slot_->node->owner = owned ? slot_.get() : nullptr;
}

void Tensor::replace(NodePtr next, std::source_location where) {
  const NodePtr old = node_ptr();
  if (!(next->shape == old->shape) || next->dtype != old->dtype || next->device != old->device)
    fail(ErrorKind::shape, "[assign] the new value must have the old one's shape, dtype and device; got ", next->shape,
         " ", name_of(next->dtype), " ", next->device, " for ", old->shape, " ", name_of(old->dtype), " ", old->device,
         call_site(where));
  if (slot_->requires_grad && grad_enabled())
    fail(ErrorKind::state, "[assign] a leaf that requires a gradient changes only under NoGrad", call_site(where));
  if (!next->is_leaf()) next->donor = old->computed() ? old : old->donor;
  const bool owned = old->owner == slot_.get();
  slot_->set_node(next);
  if (owned && !next->requires_grad) next->owner = slot_.get();
  if (slot_->requires_grad) {
    next->requires_grad = true;
    next->owner = slot_.get();
    old->used_by_backward = true;  // what was computed from the old value can no longer be differentiated
  }
  // A pending old value is a temporary of the recording itself: replays compute it anew.
  if (CaptureLog* log = Recorder::current().capture; log != nullptr && old->is_leaf()) {
    for (const CaptureLog::Assigned& a : log->assigned)
      if (a.slot == slot_) return;
    log->assigned.push_back({slot_, old});
  }
}

}  // namespace outrace
