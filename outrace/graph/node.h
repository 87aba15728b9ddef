// The graph's node: one op applied to inputs, or a leaf (buffer, scalar, constant). Nodes are immutable but for their
// value: a node with a buffer is computed, and stands as a leaf for everything recorded after it.
#pragma once
#include <array>
#include <atomic>
#include <memory>
#include <source_location>
#include <span>
#include <string>

#include "outrace/core/device.h"
#include "outrace/core/dtype.h"
#include "outrace/core/recycle.h"
#include "outrace/core/ref.h"
#include "outrace/core/shape.h"
#include "outrace/graph/plan.h"
#include "outrace/ops/op_def.h"

namespace outrace {

struct Node;
struct Slot;
class Recorder;
using NodePtr = Ref<Node>;

// Device memory from the backend's pool.
struct Buffer : Recycled<Buffer> {
  std::atomic<int32_t> refs{0};
  Device device;
  void* data = nullptr;
  int64_t bytes = 0;
  Layout layout = Layout::plain;

  static Ref<Buffer> allocate(Device device, int64_t bytes, Layout layout = Layout::plain);
  static void destroy(Buffer* b);
};
using BufferPtr = Ref<Buffer>;

// A number that a captured step reads anew at each replay: learning rate, bias correction, random serial.
using ScalarSource = std::shared_ptr<ScalarValue>;

// Inputs of a node, held in place up to four.
class NodeInputs {
 public:
  explicit NodeInputs(std::span<const NodePtr> inputs);
  NodeInputs() = default;
  std::span<const NodePtr> span() const { return {heap_ ? heap_.get() : inline_.data(), size_}; }
  size_t size() const { return size_; }
  const NodePtr& operator[](size_t i) const { return span()[i]; }
  auto begin() const { return span().begin(); }
  auto end() const { return span().end(); }

 private:
  std::array<NodePtr, 4> inline_;
  std::unique_ptr<NodePtr[]> heap_;
  size_t size_ = 0;
};

struct Node : Recycled<Node> {
  std::atomic<int32_t> refs{0};
  const OpDef* op = nullptr;
  DType dtype = DType::f32;
  Device device;
  bool requires_grad = false;
  bool used_by_backward = false;  // backward() without retain_graph passed here: edges go when the value is there
  Shape shape;
  Attrs attrs;
  NodeInputs inputs;

  BufferPtr buffer;         // set: computed
  int64_t byte_offset = 0;  // into the buffer
  ScalarValue scalar{};     // kScalar
  ScalarSource source;      // kScalar: where a replay reads the number

  NodePtr donor;  // the old value of the slot this node was assigned to; its buffer may be overwritten
  // The parameter, buffer or state whose current value this is: a captured step reads it anew. Autograd stops here when
  // the slot requires a gradient.
  Slot* owner = nullptr;
  std::atomic<int32_t> handles{0};  // slots that hold this node; > 0 at a flush: an output
  Recorder* recorder = nullptr;     // who may still use it while it is pending
  uint64_t hash = 0;
  std::source_location where;  // the caller's line

  Node* next_dead = nullptr;  // see destroy()

  // Scratch of one graph walk, under the engine's lock.
  uint32_t mark = 0;
  int32_t index = 0;

  bool computed() const { return static_cast<bool>(buffer); }
  bool is_leaf() const { return op->kind == OpKind::leaf || computed(); }
  Layout layout() const { return buffer ? buffer->layout : Layout::plain; }
  void* data() const { return static_cast<char*>(buffer->data) + byte_offset; }
  int64_t bytes() const { return shape.numel() * size_of(dtype); }

  static void destroy(Node* n);
};

NodePtr make_buffer_node(BufferPtr buffer, DType dtype, const Shape& shape, int64_t byte_offset = 0);
// Rewrites the storage of a computed matrix in place of its buffer; every holder of the node sees it.
void change_layout(Node& node, Layout layout);

// Turns an edge to its value: forgets the inputs. Never recurses.
void drop_inputs(Node& node);

}  // namespace outrace
