#include "outrace/graph/node.h"

#include <utility>

#include "outrace/backend/backend.h"
#include "outrace/core/error.h"

namespace outrace {

const OpDef kBuffer(OpFacts{.name = "buffer", .kind = OpKind::leaf});
const OpDef kScalar(OpFacts{.name = "scalar", .kind = OpKind::leaf});
const OpDef kConstant(OpFacts{.name = "constant", .kind = OpKind::leaf});

Ref<Buffer> Buffer::allocate(Device device, int64_t bytes, Layout layout) {
  Backend& backend = backend_for(device);
  auto b = std::make_unique<Buffer>();
  b->device = device;
  b->bytes = bytes;
  b->layout = layout;
  b->data = backend.allocate(device, bytes);
  return BufferPtr(b.release());
}

void Buffer::destroy(Buffer* b) {
  if (b->data) backend_for(b->device).free(b->device, b->data, b->bytes);
  delete b;
}

NodeInputs::NodeInputs(std::span<const NodePtr> inputs) : size_(inputs.size()) {
  NodePtr* to = inline_.data();
  if (size_ > inline_.size()) {
    heap_ = std::make_unique<NodePtr[]>(size_);
    to = heap_.get();
  }
  for (size_t i = 0; i < size_; ++i) to[i] = inputs[i];
}

namespace {

// Nodes whose last reference went while another was being destroyed wait here, so that a chain of a million ends in a
// loop. Without a destructor: nodes are dropped until the very end of a thread.
struct Graveyard {
  Node* first;
  bool digging;
};
constinit thread_local Graveyard graveyard{nullptr, false};

}  // namespace

void Node::destroy(Node* n) {
  if (graveyard.digging) {
    n->next_dead = graveyard.first;
    graveyard.first = n;
    return;
  }
  graveyard.digging = true;
  while (n) {
    delete n;
    n = graveyard.first;
    if (n) graveyard.first = n->next_dead;
  }
  graveyard.digging = false;
}

void drop_inputs(Node& node) {
  NodeInputs gone;
  std::swap(gone, node.inputs);
}

NodePtr make_buffer_node(BufferPtr buffer, DType dtype, const Shape& shape, int64_t byte_offset) {
  auto* n = new Node;
  n->op = &kBuffer;
  n->dtype = dtype;
  n->device = buffer->device;
  n->shape = shape;
  n->buffer = std::move(buffer);
  n->byte_offset = byte_offset;
  return NodePtr(n);
}

void change_layout(Node& node, Layout layout) {
  OUTRACE_ASSERT(node.computed());
  if (node.layout() == layout) return;
  BufferPtr to = Buffer::allocate(node.device, node.bytes(), layout);
  backend_for(node.device).relayout(node.device, to->data, layout, node.data(), node.layout(), node.dtype, node.shape);
  node.buffer = std::move(to);
  node.byte_offset = 0;
}

}  // namespace outrace
