#include "outrace/ops/index.h"

#include "outrace/graph/recorder.h"
#include "outrace/graph/scope.h"
#include "outrace/ops/creation.h"
#include "outrace/ops/elementwise.h"
#include "outrace/ops/movement.h"

namespace outrace {
namespace {

void require_index(const char* op, const Tensor& index, std::source_location where) {
  if (index.dtype() != DType::i64 && index.dtype() != DType::i32)
    fail(ErrorKind::dtype, "[", op, "] the index must be i64 or i32; got ", name_of(index.dtype()), call_site(where));
}

// A number counts as a vector of one.
Tensor lifted(const Tensor& x, std::source_location where) {
  return x.rank() == 0 ? reshape(At(x, where), Shape{1}) : x;
}

void require_within(const char* op, const char* what, const Shape& index, const Shape& x, int except,
                    std::source_location where) {
  bool fits = index.rank() == x.rank();
  for (int i = 0; i < x.rank() && fits; ++i) fits = i == except || index[i] <= x[i];
  if (fits) return;
  if (except < 0)
    fail(ErrorKind::shape, "[", op, "] the index must be nowhere larger than the ", what, "; got index ", index,
         " and ", what, " ", x, call_site(where));
  fail(ErrorKind::shape, "[", op, "] the index must be nowhere larger than the ", what, " but along axis ", except,
       "; got index ", index, " and ", what, " ", x, call_site(where));
}

void require_same_dtype(const char* op, const Tensor& x, const Tensor& source, std::source_location where) {
  if (x.dtype() != source.dtype())
    fail(ErrorKind::dtype, "[", op, "] both arrays must have one dtype; got ", name_of(x.dtype()), " and ",
         name_of(source.dtype()), call_site(where));
}

IndexAttrs checked(const Attrs& attrs) {
  IndexAttrs a = std::get<IndexAttrs>(attrs);
  a.checked = true;
  return a;
}

Tensor gather_derivative(const DerivativeArgs& d, int which) {
  if (which != 0) return Tensor();
  return record(kScatterAdd, {&d.inputs[1], &d.g}, d.g.dtype(), d.inputs[0].shape(), checked(d.attrs),
                d.output.node().where);
}

// Inputs: index, source and, if there is one, what is added to.
Tensor scatter_add_derivative(const DerivativeArgs& d, int which) {
  if (which == 0) return Tensor();
  if (which == 2) return d.g;
  return record(kGather, {&d.g, &d.inputs[0]}, d.g.dtype(), d.inputs[0].shape(), checked(d.attrs),
                d.output.node().where);
}

// Of the elements written to one place only the last one counts: each place is asked whose number it got.
Tensor scatter_derivative(const DerivativeArgs& d, int which) {
  if (which == 0) return Tensor();
  const Tensor& index = d.inputs[0];
  const IndexAttrs attrs = checked(d.attrs);
  const std::source_location where = d.output.node().where;
  const Device device = d.g.device();
  const auto zeros_of = [&](DType t, const Shape& s) { return expand(constant(0, t, device), s); };
  if (which == 2) {
    const Tensor zeros = zeros_of(d.g.dtype(), index.shape());
    return record(kScatter, {&index, &zeros, &d.g}, d.g.dtype(), d.g.shape(), attrs, where);
  }
  const Tensor numbers = reshape(arange(index.numel(), {.dtype = DType::i64, .device = device}), index.shape());
  const Tensor none = zeros_of(DType::i64, d.g.shape());
  const Tensor last = record(kScatter, {&index, &numbers, &none}, DType::i64, d.g.shape(), attrs, where);
  const Tensor kept = record(kGather, {&last, &index}, DType::i64, index.shape(), attrs, where);
  const Tensor g = record(kGather, {&d.g, &index}, d.g.dtype(), index.shape(), attrs, where);
  return select(equal(kept, numbers), g, 0.0);
}

Tensor index_select_derivative(const DerivativeArgs& d, int which) {
  if (which != 0) return Tensor();
  return record(kIndexAdd, {&d.inputs[1], &d.g}, d.g.dtype(), d.inputs[0].shape(), checked(d.attrs),
                d.output.node().where);
}

Tensor index_add_derivative(const DerivativeArgs& d, int which) {
  if (which == 0) return Tensor();
  if (which == 2) return d.g;
  IndexAttrs attrs = checked(d.attrs);
  attrs.zeros = attrs.padding >= 0;
  return record(kIndexSelect, {&d.g, &d.inputs[0]}, d.g.dtype(), d.inputs[1].shape(), attrs, d.output.node().where);
}

Tensor take_derivative(const DerivativeArgs& d, int which) {
  if (which != 0) return Tensor();
  const Shape flat{d.g.numel()};
  const Tensor index = reshape(d.inputs[1], flat), g = reshape(d.g, flat);
  return record(kIndexAdd, {&index, &g}, g.dtype(), d.inputs[0].shape(), checked(d.attrs), d.output.node().where);
}

// index_add and index_copy: source has x's shape but for its entries along `axis`, which the index counts.
int require_entries(const char* op, At x, int64_t axis, const Tensor& index, const Tensor& source) {
  require_index(op, index, x.where);
  require_same_dtype(op, x.tensor, source, x.where);
  const int a = normalize_axis(axis, x.tensor.rank(), op);
  if (index.rank() > 1 || source.rank() != x.tensor.rank() ||
      !(source.shape() == x.tensor.shape().with(a, index.numel())))
    fail(ErrorKind::shape, "[", op, "] needs an index [n] and a source like x with n entries along axis ", a,
         "; got index ", index.shape(), ", source ", source.shape(), " and x ", x.tensor.shape(), call_site(x.where));
  return a;
}

Tensor select_recorded(const OpDef& op, At x, int axis, const Tensor& index, IndexAttrs attrs) {
  attrs.axis = axis;
  return record(op, {&x.tensor, &index}, x.tensor.dtype(), x.tensor.shape().with(axis, index.numel()), attrs, x.where);
}

// scatter and scatter_add.
Tensor scattered(const OpDef& op, At x, int64_t axis, const Tensor& index, const Tensor& source) {
  require_index(op.name, index, x.where);
  require_same_dtype(op.name, x.tensor, source, x.where);
  const Tensor to = lifted(x.tensor, x.where), at = lifted(index, x.where);
  Tensor from = lifted(source, x.where);
  const int a = normalize_axis(axis, to.rank(), op.name);
  require_within(op.name, "array", at.shape(), to.shape(), a, x.where);
  require_within(op.name, "source", at.shape(), from.shape(), -1, x.where);
  for (int i = 0; i < from.rank(); ++i) from = slice(At(from, x.where), i, 0, at.shape()[i]);
  return reshape(At(record(op, {&at, &from, &to}, to.dtype(), to.shape(), IndexAttrs{.axis = a}, x.where), x.where),
                 x.tensor.shape());
}

// Values known now: not inside a captured step.
void require_no_capture(const char* op, std::source_location where) {
  if (Recorder::current().capture)
    fail(ErrorKind::state, "[", op, "] the shape of the result depends on values, which a captured step does not know",
         call_site(where));
}

Tensor number_like(const char* op, const Tensor& x, double value, std::source_location where) {
  if (!is_float(x.dtype()) && value != std::trunc(value))
    fail(ErrorKind::dtype, "[", op, "] the value must be a whole number for ", name_of(x.dtype()), "; got ", value,
         call_site(where));
  return cast(number(value, x.dtype() == DType::boolean ? DType::i64 : x.dtype(), x.device()), x.dtype());
}

}  // namespace

namespace {
Tensor gathered(At x, int64_t axis, const Tensor& index, bool is_checked) {
  require_index("gather", index, x.where);
  const Tensor from = lifted(x.tensor, x.where), at = lifted(index, x.where);
  const int a = normalize_axis(axis, from.rank(), "gather");
  require_within("gather", "array", at.shape(), from.shape(), a, x.where);
  const Tensor y =
      record(kGather, {&from, &at}, from.dtype(), at.shape(), IndexAttrs{.axis = a, .checked = is_checked}, x.where);
  return reshape(At(y, x.where), index.shape());
}
}  // namespace

Tensor gather(At x, int64_t axis, const Tensor& index) { return gathered(x, axis, index, false); }

Tensor detail::gather_checked(At x, int64_t axis, const Tensor& index) { return gathered(x, axis, index, true); }

Tensor index_select(At x, int64_t axis, const Tensor& index) {
  require_index("index_select", index, x.where);
  const int a = normalize_axis(axis, x.tensor.rank(), "index_select");
  if (index.rank() > 1)
    fail(ErrorKind::shape, "[index_select] the index must be a vector; got ", index.shape(), call_site(x.where));
  return select_recorded(kIndexSelect, x, a, lifted(index, x.where), {});
}

Tensor detail::index_select_checked(At x, int axis, const Tensor& index) {
  return select_recorded(kIndexSelect, x, axis, index, {.checked = true});
}

Tensor take(At x, const Tensor& index) {
  require_index("take", index, x.where);
  const Tensor flat = reshape(x, Shape{x.tensor.numel()});
  return record(kTake, {&flat, &index}, flat.dtype(), index.shape(), IndexAttrs{}, x.where);
}

Tensor scatter(At x, int64_t axis, const Tensor& index, const Tensor& source) {
  return scattered(kScatter, x, axis, index, source);
}
Tensor scatter(At x, int64_t axis, const Tensor& index, double value) {
  const Tensor source = expand(number_like("scatter", x.tensor, value, x.where), index.shape());
  return scattered(kScatter, x, axis, index, source);
}
Tensor scatter_add(At x, int64_t axis, const Tensor& index, const Tensor& source) {
  return scattered(kScatterAdd, x, axis, index, source);
}

Tensor index_add(At x, int64_t axis, const Tensor& index, const Tensor& source) {
  const int a = require_entries("index_add", x, axis, index, source);
  const Tensor at = lifted(index, x.where);
  return record(kIndexAdd, {&at, &source, &x.tensor}, x.tensor.dtype(), x.tensor.shape(), IndexAttrs{.axis = a},
                x.where);
}

Tensor index_copy(At x, int64_t axis, const Tensor& index, const Tensor& source) {
  const int a = require_entries("index_copy", x, axis, index, source);
  Shape along = Shape{index.numel()};
  for (int i = a + 1; i < source.rank(); ++i) along = along.inserted(along.rank(), 1);
  return scatter(x, a, expand(reshape(index, along), source.shape()), source);
}

Tensor masked_fill(At x, const Tensor& mask, double value) {
  Shape joint;
  if (mask.dtype() != DType::boolean)
    fail(ErrorKind::dtype, "[masked_fill] the mask must be bool; got ", name_of(mask.dtype()), call_site(x.where));
  if (!broadcast_shapes(mask.shape(), x.tensor.shape(), joint) || !(joint == x.tensor.shape()))
    fail(ErrorKind::shape, "[masked_fill] the mask must broadcast to x; got mask ", mask.shape(), " and x ",
         x.tensor.shape(), call_site(x.where));
  return select(At(mask, x.where), number_like("masked_fill", x.tensor, value, x.where), x);
}

Tensor masked_select(At x, const Tensor& mask) {
  require_no_capture("masked_select", x.where);
  Shape joint;
  if (mask.dtype() != DType::boolean)
    fail(ErrorKind::dtype, "[masked_select] the mask must be bool; got ", name_of(mask.dtype()), call_site(x.where));
  if (!broadcast_shapes(mask.shape(), x.tensor.shape(), joint))
    fail(ErrorKind::shape, "[masked_select] x and mask must broadcast; got ", x.tensor.shape(), " and ", mask.shape(),
         call_site(x.where));
  const std::vector<uint8_t> hit = cast(expand(At(mask, x.where), joint), DType::u8).to_vector<uint8_t>();
  std::vector<int64_t> at;
  for (size_t i = 0; i < hit.size(); ++i)
    if (hit[i]) at.push_back(static_cast<int64_t>(i));
  const Tensor flat = reshape(At(expand(x, joint), x.where), Shape{joint.numel()});
  return detail::index_select_checked(At(flat, x.where), 0,
                                      Tensor::from(at, {static_cast<int64_t>(at.size())}, x.tensor.device()));
}

Tensor nonzero(At x) {
  require_no_capture("nonzero", x.where);
  const Shape& s = x.tensor.shape();
  const std::vector<uint8_t> hit = cast(cast(x, DType::boolean), DType::u8).to_vector<uint8_t>();
  const Strides strides = contiguous_strides(s);
  std::vector<int64_t> at;
  int64_t count = 0;
  for (size_t i = 0; i < hit.size(); ++i) {
    if (!hit[i]) continue;
    ++count;
    for (int axis = 0; axis < s.rank(); ++axis) at.push_back(static_cast<int64_t>(i) / strides[axis] % s[axis]);
  }
  return Tensor::from(at, {count, s.rank()}, x.tensor.device());
}

Tensor one_hot(At index, int64_t classes, DType dtype) {
  require_index("one_hot", index.tensor, index.where);
  if (classes < 1) fail(ErrorKind::value, "[one_hot] needs at least one class; got ", classes, call_site(index.where));
  const Shape& s = index.tensor.shape();
  return record(kOneHot, {&index.tensor}, dtype, s.inserted(s.rank(), classes), IndexAttrs{.axis = s.rank()},
                index.where);
}

const OpDef kGather(OpFacts{
    .name = "gather", .kind = OpKind::producer, .derivative = gather_derivative, .may_throw = true});
const OpDef kIndexSelect(OpFacts{
    .name = "index_select", .kind = OpKind::producer, .derivative = index_select_derivative, .may_throw = true});
const OpDef kTake(OpFacts{.name = "take", .kind = OpKind::producer, .derivative = take_derivative, .may_throw = true});
const OpDef kScatter(OpFacts{
    .name = "scatter", .kind = OpKind::producer, .derivative = scatter_derivative, .may_throw = true});
const OpDef kScatterAdd(OpFacts{
    .name = "scatter_add", .kind = OpKind::producer, .derivative = scatter_add_derivative, .may_throw = true});
const OpDef kIndexAdd(OpFacts{
    .name = "index_add", .kind = OpKind::producer, .derivative = index_add_derivative, .may_throw = true});
const OpDef kOneHot(OpFacts{.name = "one_hot", .kind = OpKind::producer, .may_throw = true});

}  // namespace outrace
