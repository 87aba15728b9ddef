#include "outrace/graph/node.h"

#include <vector>

#include "outrace/backend/backend.h"
#include "outrace/core/error.h"

namespace outrace {

const OpDef kBuffer("buffer", OpKind::leaf);
const OpDef kScalar("scalar", OpKind::leaf);
const OpDef kConstant("constant", OpKind::leaf);

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

// Nodes whose last reference went while another was being destroyed wait here, so that a chain of a million ends in a loop.
struct Graveyard {
  std::vector<NodePtr> edges;
  bool digging = false;
};
thread_local Graveyard graveyard;

void bury(Graveyard& yard) {
  yard.digging = true;
  while (!yard.edges.empty()) {
    NodePtr last = std::move(yard.edges.back());
    yard.edges.pop_back();
    last.reset();
  }
  yard.digging = false;
}

}  // namespace

void Node::destroy(Node* n) {
  n->inputs.drain(graveyard.edges);
  if (n->donor) graveyard.edges.push_back(std::move(n->donor));
  delete n;
  if (!graveyard.digging) bury(graveyard);
}

void drop_inputs(Node& node) {
  node.inputs.drain(graveyard.edges);
  if (!graveyard.digging) bury(graveyard);
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
  OUTRACE_ASSERT(node.computed() && node.byte_offset == 0);
  if (node.layout() == layout) return;
  BufferPtr to = Buffer::allocate(node.device, node.bytes(), layout);
  backend_for(node.device).relayout(node.device, to->data, layout, node.data(), node.layout(), node.dtype, node.shape);
  node.buffer = std::move(to);
}

}  // namespace outrace
