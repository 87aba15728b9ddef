#include "outrace/ops/movement.h"

#include "outrace/graph/recorder.h"
#include "outrace/graph/scope.h"
#include "outrace/ops/ops.h"

namespace outrace {
namespace {

// A plain value in memory that needs no derivative: its views are leaves of their own, not nodes.
// Not inside a capture: there it must stay a node, or a replay would read the recording's memory.
bool viewable(const Tensor& x) {
  const Node& n = x.node();
  return n.computed() && !Recorder::current().capture && n.layout() == Layout::plain &&
         !(n.requires_grad && grad_enabled());
}

Tensor view(const Tensor& x, const Shape& shape, int64_t element_offset) {
  const Node& n = x.node();
  return Tensor(make_buffer_node(n.buffer, n.dtype, shape, n.byte_offset + element_offset * size_of(n.dtype)));
}

Tensor reshape_derivative(const DerivativeArgs& a, int) { return reshape(a.g, a.inputs[0].shape()); }

Tensor permute_derivative(const DerivativeArgs& a, int) {
  const auto& axes = std::get<PermuteAttrs>(a.attrs).axes;
  std::array<int64_t, kMaxRank> back{};
  for (int i = 0; i < a.g.rank(); ++i) back[axes[i]] = i;
  return permute(a.g, std::span<const int64_t>(back.data(), a.g.rank()));
}

Tensor expand_derivative(const DerivativeArgs& a, int) { return sum_to(a.g, a.inputs[0].shape()); }

Tensor slice_derivative(const DerivativeArgs& a, int) {
  return pad(a.g, a.inputs[0].shape(), std::get<SliceAttrs>(a.attrs));
}

Tensor pad_derivative(const DerivativeArgs& a, int) {
  const Tensor& g = a.g;
  SliceAttrs attrs = std::get<SliceAttrs>(a.attrs);
  attrs.fill = 0;
  return record(kSlice, {&g}, g.dtype(), a.inputs[0].shape(), attrs, g.node().where);
}

Tensor unfold_derivative(const DerivativeArgs& a, int) {
  const auto& attrs = std::get<UnfoldAttrs>(a.attrs);
  return fold(At(a.g, a.output.node().where), a.inputs[0].shape(), attrs.axis, attrs.step);
}

Tensor fold_derivative(const DerivativeArgs& a, int) {
  const auto& attrs = std::get<UnfoldAttrs>(a.attrs);
  return unfold(At(a.g, a.output.node().where), attrs.axis, a.inputs[0].shape().back(), attrs.step);
}

// Sizes of `count` elements, the one that is -1 replaced by what is left.
std::vector<int64_t> filled_in(const char* op, At x, const std::vector<int64_t>& dims, int64_t count) {
  std::vector<int64_t> sizes(dims);
  int64_t known = 1, open = -1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] != -1) {
      known *= sizes[i];
      continue;
    }
    if (open >= 0) fail(ErrorKind::shape, "[", op, "] only one size may be -1", call_site(x.where));
    open = static_cast<int64_t>(i);
  }
  if (open >= 0) {
    if (known <= 0 || count % known != 0)
      fail(ErrorKind::shape, "[", op, "] ", count, " elements are no multiple of ", known, "; got ", x.tensor.shape(),
           call_site(x.where));
    sizes[open] = count / known;
  }
  return sizes;
}

Tensor transfer_derivative(const DerivativeArgs& a, int) { return to_device(a.g, a.inputs[0].device()); }

}  // namespace

Tensor reshape(At x, const Shape& shape) {
  if (shape == x.tensor.shape()) return x.tensor;
  if (shape.numel() != x.tensor.numel())
    fail(ErrorKind::shape, "[reshape] ", x.tensor.numel(), " elements do not fill ", shape, "; got ", x.tensor.shape(),
         call_site(x.where));
  if (viewable(x.tensor)) return view(x.tensor, shape, 0);
  return record(kReshape, {&x.tensor}, x.tensor.dtype(), shape, NoAttrs{}, x.where);
}

Tensor reshape(At x, std::initializer_list<int64_t> dims) {
  const std::vector<int64_t> sizes = filled_in("reshape", x, dims, x.tensor.numel());
  return reshape(x, Shape(std::span<const int64_t>(sizes)));
}

Tensor flatten(At x, int64_t first_axis, int64_t last_axis) {
  const Shape& s = x.tensor.shape();
  if (s.rank() == 0) return reshape(x, Shape{1});
  const int first = normalize_axis(first_axis, s.rank(), "flatten");
  const int last = normalize_axis(last_axis, s.rank(), "flatten");
  if (first > last)
    fail(ErrorKind::value, "[flatten] the first axis lies behind the last; got ", first, " and ", last,
         call_site(x.where));
  std::vector<int64_t> dims(s.begin(), s.begin() + first);
  int64_t joined = 1;
  for (int i = first; i <= last; ++i) joined *= s[i];
  dims.push_back(joined);
  dims.insert(dims.end(), s.begin() + last + 1, s.end());
  return reshape(x, Shape(std::span<const int64_t>(dims)));
}

Tensor permute(At x, std::span<const int64_t> axes) {
  const Shape& s = x.tensor.shape();
  if (static_cast<int>(axes.size()) != s.rank())
    fail(ErrorKind::shape, "[permute] needs each of the ", s.rank(), " axes once; got ", axes.size(),
         call_site(x.where));
  PermuteAttrs attrs;
  std::array<int64_t, kMaxRank> dims{};
  int64_t seen = 0;
  for (int i = 0; i < s.rank(); ++i) {
    attrs.axes[i] = normalize_axis(axes[i], s.rank(), "permute");
    dims[i] = s[static_cast<int>(attrs.axes[i])];
    seen |= int64_t{1} << attrs.axes[i];
  }
  if (seen != (int64_t{1} << s.rank()) - 1)
    fail(ErrorKind::shape, "[permute] names an axis twice for shape ", s, call_site(x.where));
  return record(kPermute, {&x.tensor}, x.tensor.dtype(), Shape(std::span<const int64_t>(dims.data(), s.rank())), attrs,
                x.where);
}

Tensor transpose(At x, int64_t a, int64_t b) {
  std::array<int64_t, kMaxRank> axes{};
  for (int i = 0; i < x.tensor.rank(); ++i) axes[i] = i;
  std::swap(axes[normalize_axis(a, x.tensor.rank(), "transpose")],
            axes[normalize_axis(b, x.tensor.rank(), "transpose")]);
  return permute(x, std::span<const int64_t>(axes.data(), x.tensor.rank()));
}

Tensor expand(At x, const Shape& shape) {
  Shape joint;
  if (!broadcast_shapes(x.tensor.shape(), shape, joint) || !(joint == shape))
    fail(ErrorKind::shape, "[expand] only axes of size 1 repeat; got ", x.tensor.shape(), " to ", shape,
         call_site(x.where));
  if (x.tensor.shape() == shape) return x.tensor;
  return record(kExpand, {&x.tensor}, x.tensor.dtype(), shape, NoAttrs{}, x.where);
}

Tensor unsqueeze(At x, int64_t axis) {
  return reshape(x, x.tensor.shape().inserted(normalize_axis(axis, x.tensor.rank() + 1, "unsqueeze"), 1));
}

Tensor squeeze(At x, int64_t axis) {
  const int a = normalize_axis(axis, x.tensor.rank(), "squeeze");
  if (x.tensor.shape()[a] != 1)
    fail(ErrorKind::shape, "[squeeze] axis ", a, " must have size 1; got ", x.tensor.shape(), call_site(x.where));
  return reshape(x, x.tensor.shape().without(a));
}

Tensor squeeze(At x) {
  std::vector<int64_t> dims;
  for (int64_t d : x.tensor.shape())
    if (d != 1) dims.push_back(d);
  return reshape(x, Shape(std::span<const int64_t>(dims)));
}

Tensor unflatten(At x, int64_t axis, const std::vector<int64_t>& sizes) {
  const Shape& s = x.tensor.shape();
  const int a = normalize_axis(axis, s.rank(), "unflatten");
  const std::vector<int64_t> parts = filled_in("unflatten", x, sizes, s[a]);
  int64_t product = 1;
  for (int64_t d : parts) product *= d;
  if (product != s[a])
    fail(ErrorKind::shape, "[unflatten] the sizes must multiply to ", s[a], ", the size of axis ", a, "; got ", product,
         " for ", s, call_site(x.where));
  std::vector<int64_t> dims(s.begin(), s.begin() + a);
  dims.insert(dims.end(), parts.begin(), parts.end());
  dims.insert(dims.end(), s.begin() + a + 1, s.end());
  return reshape(x, Shape(std::span<const int64_t>(dims)));
}

Tensor movedim(At x, int64_t from, int64_t to) {
  const int rank = x.tensor.rank();
  const int a = normalize_axis(from, rank, "movedim"), b = normalize_axis(to, rank, "movedim");
  std::vector<int64_t> axes;
  for (int i = 0; i < rank; ++i)
    if (i != a) axes.push_back(i);
  axes.insert(axes.begin() + b, a);
  return permute(x, axes);
}

Tensor slice(At x, int64_t axis, int64_t start, int64_t stop, int64_t step) {
  const Shape& s = x.tensor.shape();
  const int a = normalize_axis(axis, s.rank(), "slice");
  const int64_t size = s[a];
  if (step <= 0) fail(ErrorKind::value, "[slice] the step must be positive; got ", step, call_site(x.where));
  auto clamp = [&](int64_t i) { return std::min(std::max(i < 0 ? i + size : i, int64_t{0}), size); };
  start = clamp(start);
  stop = std::max(clamp(stop), start);
  const int64_t count = stop > start ? (stop - start - 1) / step + 1 : 0;
  if (count == size) return x.tensor;
  const Shape shape = s.with(a, count);
  if (a == 0 && (step == 1 || count <= 1) && viewable(x.tensor))
    return view(x.tensor, shape, start * contiguous_strides(s)[0]);
  SliceAttrs attrs;
  attrs.step.fill(1);
  attrs.start[a] = start;
  attrs.step[a] = step;
  return record(kSlice, {&x.tensor}, x.tensor.dtype(), shape, attrs, x.where);
}

Tensor narrow(At x, int64_t axis, int64_t start, int64_t length) {
  const Shape& s = x.tensor.shape();
  const int a = normalize_axis(axis, s.rank(), "narrow");
  if (start < 0 || length < 0 || length > s[a] || start > s[a] - length)
    fail(ErrorKind::value, "[narrow] entries ", start, " to ", start, " + ", length, " must lie within the ", s[a],
         " of axis ", a, "; got ", s, call_site(x.where));
  return slice(x, a, start, start + length);
}

Tensor select(At x, int64_t axis, int64_t position) {
  const Shape& s = x.tensor.shape();
  const int a = normalize_axis(axis, s.rank(), "select");
  if (position < -s[a] || position >= s[a])
    fail(ErrorKind::value, "[select] axis ", a, " has ", s[a], " entries; got position ", position, " for ", s,
         call_site(x.where));
  if (position < 0) position += s[a];
  const Tensor one = slice(x, a, position, position + 1);
  return reshape(At(one, x.where), s.without(a));
}

Tensor flip(At x, std::initializer_list<int64_t> axes) {
  const Shape& s = x.tensor.shape();
  int64_t reversed = axes.size() == 0 ? (int64_t{1} << s.rank()) - 1 : 0;
  for (int64_t axis : axes) {
    const int64_t bit = int64_t{1} << normalize_axis(axis, s.rank(), "flip");
    if (reversed & bit) fail(ErrorKind::shape, "[flip] names axis ", axis, " twice for ", s, call_site(x.where));
    reversed |= bit;
  }
  SliceAttrs attrs;
  attrs.step.fill(1);
  bool changes = false;
  for (int i = 0; i < s.rank(); ++i) {
    if (!(reversed >> i & 1) || s[i] < 2) continue;
    attrs.start[i] = s[i] - 1;
    attrs.step[i] = -1;
    changes = true;
  }
  return changes ? record(kSlice, {&x.tensor}, x.tensor.dtype(), s, attrs, x.where) : x.tensor;
}

Tensor unfold(At x, int64_t axis, int64_t size, int64_t step) {
  const Shape& s = x.tensor.shape();
  const int a = normalize_axis(axis, s.rank(), "unfold");
  if (size < 1 || size > s[a] || step < 1)
    fail(ErrorKind::value, "[unfold] windows must have 1 to ", s[a], " entries of axis ", a,
         " and a positive step; got size ", size, " and step ", step, " for ", s, call_site(x.where));
  const Shape shape = s.with(a, (s[a] - size) / step + 1).inserted(s.rank(), size);
  return record(kUnfold, {&x.tensor}, x.tensor.dtype(), shape, UnfoldAttrs{a, step}, x.where);
}

Tensor fold(At windows, const Shape& shape, int64_t axis, int64_t step) {
  const Tensor& w = windows.tensor;
  const int a = normalize_axis(axis, shape.rank(), "fold");
  const bool fits = step >= 1 && w.rank() == shape.rank() + 1 &&
                    w.shape().without(shape.rank()) == shape.with(a, w.shape()[a]) &&
                    (w.shape()[a] - 1) * step + w.shape().back() <= shape[a];
  if (!fits)
    fail(ErrorKind::shape, "[fold] windows ", w.shape(), ", one every ", step, " entries of axis ", a, ", do not fit ",
         shape, call_site(windows.where));
  return record(kFold, {&w}, w.dtype(), shape, UnfoldAttrs{a, step}, windows.where);
}

Tensor Tensor::operator[](int64_t i) const {
  if (rank() == 0) fail(ErrorKind::shape, "[index] a tensor without axes has no entries");
  const int64_t size = shape()[0];
  if (i < -size || i >= size) fail(ErrorKind::shape, "[index] ", i, " is out of range; got shape ", shape());
  if (i < 0) i += size;
  const Shape rest = shape().without(0);
  if (viewable(*this)) return view(*this, rest, i * rest.numel());
  return outrace::reshape(outrace::slice(*this, 0, i, i + 1), rest);
}

Tensor to_device(At x, Device device) {
  if (x.tensor.device() == device) return x.tensor;
  Recorder& r = Recorder::current();
  return Tensor(
      r.record(kTransfer, {&x.tensor.node_ptr(), 1}, x.tensor.dtype(), x.tensor.shape(), device, NoAttrs{}, x.where));
}

Tensor pad(At x, const Shape& shape, const SliceAttrs& where_to) {
  return record(kPad, {&x.tensor}, x.tensor.dtype(), shape, where_to, x.where);
}

const OpDef kReshape(OpFacts{.name = "reshape", .kind = OpKind::movement, .derivative = reshape_derivative});
const OpDef kPermute(OpFacts{.name = "permute", .kind = OpKind::movement, .derivative = permute_derivative});
const OpDef kExpand(OpFacts{.name = "expand", .kind = OpKind::movement, .derivative = expand_derivative});
const OpDef kSlice(OpFacts{.name = "slice", .kind = OpKind::movement, .derivative = slice_derivative});
const OpDef kPad(OpFacts{.name = "pad", .kind = OpKind::producer, .derivative = pad_derivative});
const OpDef kUnfold(OpFacts{.name = "unfold", .kind = OpKind::movement, .derivative = unfold_derivative});
const OpDef kFold(OpFacts{.name = "fold", .kind = OpKind::producer, .derivative = fold_derivative});
const OpDef kTransfer(OpFacts{.name = "transfer", .kind = OpKind::transfer, .derivative = transfer_derivative});

// The members of Tensor that are ops.
Tensor Tensor::slice(int64_t axis, int64_t start, int64_t stop, int64_t step) const {
  return outrace::slice(*this, axis, start, stop, step);
}
Tensor Tensor::reshape(std::initializer_list<int64_t> dims) const { return outrace::reshape(*this, dims); }
Tensor Tensor::permute(std::initializer_list<int64_t> axes) const {
  return outrace::permute(*this, std::span<const int64_t>(axes.begin(), axes.size()));
}
Tensor Tensor::transpose(int64_t a, int64_t b) const { return outrace::transpose(*this, a, b); }
Tensor Tensor::t() const { return outrace::transpose(*this, 0, 1); }
Tensor Tensor::to(DType dtype) const { return cast(*this, dtype); }
Tensor Tensor::to(Device device) const { return to_device(*this, device); }
Tensor Tensor::sum(std::initializer_list<int64_t> axes, bool keepdim) const {
  return outrace::sum(*this, {axes, keepdim});
}
Tensor Tensor::mean(std::initializer_list<int64_t> axes, bool keepdim) const {
  return outrace::mean(*this, {axes, keepdim});
}
Tensor Tensor::max(std::initializer_list<int64_t> axes, bool keepdim) const {
  return outrace::max(*this, {axes, keepdim});
}

}  // namespace outrace
