// Tensor: the one array type. A handle to a slot; copies share the slot. Ops record nodes; values are computed when
// asked for.
#pragma once
#include <cmath>
#include <initializer_list>
#include <optional>
#include <source_location>
#include <span>
#include <vector>

#include "outrace/core/error.h"
#include "outrace/graph/node.h"

namespace outrace {

enum class GradState : uint8_t { none, set, consumed };

// What the copies of a Tensor share: the current value, and for parameters the gradient.
struct Slot : Recycled<Slot> {
  std::atomic<int32_t> refs{0};
  bool requires_grad = false;
  GradState grad_state = GradState::none;
  NodePtr node;
  NodePtr grad;                    // weak in effect: it is no handle, so a flush does not store it
  Recorder* pending_in = nullptr;  // list of slots whose node is not computed
  Slot *previous = nullptr, *next = nullptr;

  explicit Slot(NodePtr n);
  void set_node(NodePtr n);
  static void destroy(Slot* s);
};

struct BackwardOptions {
  bool retain_graph = false;  // keep the graph for another backward()
  bool create_graph = false;  // record the gradients so that they can be differentiated themselves
};

struct CreateOptions {
  DType dtype = DType::f32;
  Device device = {};
};

class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(NodePtr node) : slot_(new Slot(std::move(node))) {}
  // From host data, row-major. Throws Error(shape) when the count differs from the shape's.
  template <class T>
  static Tensor from(std::span<const T> data, const Shape& shape, Device device = {});
  template <class T>
  static Tensor from(const std::vector<T>& data, const Shape& shape, Device device = {}) {
    return from(std::span<const T>(data), shape, device);
  }

  bool defined() const { return static_cast<bool>(slot_); }
  const Shape& shape() const { return node().shape; }
  int64_t size(int64_t axis) const { return shape()[normalize_axis(axis, rank(), "size")]; }
  int rank() const { return shape().rank(); }
  int64_t numel() const { return shape().numel(); }
  DType dtype() const { return node().dtype; }
  Device device() const { return node().device; }

  // Computes the value now (and only what it needs). Returns itself.
  const Tensor& eval() const;
  bool computed() const { return node().computed(); }

  // The single element. Throws Error(shape) for more than one.
  double item() const;
  // A row-major copy in host memory, converted to T.
  template <class T>
  std::vector<T> to_vector() const;
  // "[[1, 2], [3, 4]] f32 [2, 2]", long axes shortened.
  std::string str() const;

  // Marks a leaf for differentiation. Returns itself.
  Tensor& requires_grad_(bool on = true);
  bool requires_grad() const { return node().requires_grad; }
  // Adds d(this)/d(leaf) to the gradient of every leaf that requires one. This must have one element.
  void backward(BackwardOptions options = {}, std::source_location where = std::source_location::current()) const;
  // The gradient gathered by backward(); undefined when there is none. Throws Error(state) after a fused optimizer step
  // used it.
  Tensor grad() const;
  void zero_grad();
  // The same value without its history.
  Tensor detach() const;

  // Replaces the value seen by all copies of this Tensor. Same shape, dtype and device. The rvalue form takes over the
  // value's node.
  void assign(const Tensor& value, std::source_location where = std::source_location::current());
  void assign(Tensor&& value, std::source_location where = std::source_location::current());

  // The same for a value of another dtype or device: how modules move. The gradient is forgotten.
  void replace_everywhere(const Tensor& value);

  // Views and conversions, as the functions of ops/ops.h of the same names.
  // The i-th entry along the first axis, without that axis. Of a computed tensor: no copy.
  Tensor operator[](int64_t i) const;
  Tensor slice(int64_t axis, int64_t start, int64_t stop, int64_t step = 1) const;
  Tensor reshape(std::initializer_list<int64_t> dims) const;
  Tensor permute(std::initializer_list<int64_t> axes) const;
  Tensor transpose(int64_t a, int64_t b) const;
  Tensor t() const;  // a matrix with rows and columns exchanged
  Tensor to(DType dtype) const;
  Tensor to(Device device) const;
  Tensor sum(std::initializer_list<int64_t> axes = {}, bool keepdim = false) const;
  Tensor mean(std::initializer_list<int64_t> axes = {}, bool keepdim = false) const;
  Tensor max(std::initializer_list<int64_t> axes = {}, bool keepdim = false) const;

  // In place: this and its copies get the value of the function of the same name (ops/in_place.cpp), broadcast z
  // included; other tensors, views of this one too, keep theirs. The result must have this shape, and its dtype must be
  // one that casts without losing its kind (else Error(shape), Error(dtype)); Error(state) on a leaf that requires a
  // gradient, except under NoGrad. History is kept: gradients are those of the expression. Not for temporaries, whose
  // new value nobody would see: `x[0].exp_()` does not compile.
#define OUTRACE_HERE std::source_location where = std::source_location::current()
#define UNARY(name, ...) Tensor& name##_(OUTRACE_HERE)&;
#define BINARY(name, ...)                          \
  Tensor& name##_(const Tensor& z, OUTRACE_HERE)&; \
  Tensor& name##_(double z, OUTRACE_HERE)&;
#define COMPARE(...)
#define SELECT(...)
#include "outrace/ops/ops.def"
#undef UNARY
#undef BINARY
#undef COMPARE
#undef SELECT
  // NaN stays; a missing bound does not bind.
  Tensor& clamp_(std::optional<double> low, std::optional<double> high, OUTRACE_HERE) &;
  Tensor& fill_(double value, OUTRACE_HERE) &;
  Tensor& zero_(OUTRACE_HERE) &;
  Tensor& copy_(const Tensor& z, OUTRACE_HERE) &;  // broadcast and converted; also between devices
#undef OUTRACE_HERE
  Tensor& operator+=(const Tensor& z);
  Tensor& operator-=(const Tensor& z);
  Tensor& operator*=(const Tensor& z);
  Tensor& operator/=(const Tensor& z);

  const NodePtr& node_ptr() const;
  const Node& node() const { return *node_ptr(); }
  Slot& slot() const { return *slot_; }

 private:
  void copy_out(void* host) const;
  static Tensor from_bytes(const void* data, DType dtype, const Shape& shape, Device device);
  void replace(NodePtr next, std::source_location where);
  Ref<Slot> slot_;
};

// A Tensor argument of an operator together with the line that wrote it.
struct At {
  const Tensor& tensor;
  std::source_location where;
  At(const Tensor& t, std::source_location w = std::source_location::current()) : tensor(t), where(w) {}
};

// While one lives, this thread records no history: what is computed cannot be differentiated.
class NoGrad {
 public:
  NoGrad();
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  bool before_;
};
bool grad_enabled();

template <class T>
Tensor Tensor::from(std::span<const T> data, const Shape& shape, Device device) {
  if (static_cast<int64_t>(data.size()) != shape.numel())
    fail(ErrorKind::shape, "[from] ", data.size(), " values do not fill shape ", shape);
  return from_bytes(data.data(), dtype_of<T>(), shape, device);
}

extern template std::vector<float> Tensor::to_vector<float>() const;
extern template std::vector<double> Tensor::to_vector<double>() const;
extern template std::vector<int32_t> Tensor::to_vector<int32_t>() const;
extern template std::vector<int64_t> Tensor::to_vector<int64_t>() const;
extern template std::vector<uint8_t> Tensor::to_vector<uint8_t>() const;

}  // namespace outrace
