#include "outrace/ops/concat.h"

#include <algorithm>

#include "outrace/graph/recorder.h"
#include "outrace/graph/scope.h"
#include "outrace/ops/elementwise.h"
#include "outrace/ops/index.h"
#include "outrace/ops/movement.h"

namespace outrace {
namespace {

// A node has fewer inputs than this (graph/walk.cpp writes their number down in 12 bits); longer lists join in two
// steps.
constexpr size_t kMostParts = 1024;

Tensor cat_derivative(const DerivativeArgs& a, int which) {
  const int axis = static_cast<int>(std::get<ConcatAttrs>(a.attrs).axis);
  int64_t start = 0;
  for (int i = 0; i < which; ++i) start += a.inputs[i].shape()[axis];
  return slice(At(a.g, a.output.node().where), axis, start, start + a.inputs[which].shape()[axis]);
}

// Parts of one dtype, rank and shape but for `axis`.
Tensor join(std::span<const Tensor> parts, int axis, std::source_location where) {
  if (parts.size() == 1) return parts[0];
  if (parts.size() > kMostParts) {
    std::vector<Tensor> joined;
    for (size_t i = 0; i < parts.size(); i += kMostParts)
      joined.push_back(join(parts.subspan(i, std::min(kMostParts, parts.size() - i)), axis, where));
    return join(joined, axis, where);
  }
  std::vector<NodePtr> nodes;
  int64_t size = 0;
  for (const Tensor& p : parts) {
    nodes.push_back(p.node_ptr());
    size += p.shape()[axis];
  }
  return Tensor(Recorder::current().record(kCat, nodes, parts[0].dtype(), parts[0].shape().with(axis, size),
                                           parts[0].device(), ConcatAttrs{axis}, where));
}

// [outer, size, inner] with the entries of one axis in the middle.
Tensor around_axis(At x, int axis) {
  const Shape& s = x.tensor.shape();
  int64_t outer = 1, inner = 1;
  for (int i = 0; i < axis; ++i) outer *= s[i];
  for (int i = axis + 1; i < s.rank(); ++i) inner *= s[i];
  return reshape(x, Shape{outer, s[axis], inner});
}

}  // namespace

Tensor cat(const std::vector<Tensor>& parts, int64_t axis, std::source_location where) {
  if (parts.empty()) fail(ErrorKind::shape, "[cat] needs at least one array", call_site(where));
  const Shape& first = parts[0].shape();
  const int a = normalize_axis(axis, first.rank(), "cat");
  DType type = parts[0].dtype();
  for (size_t i = 1; i < parts.size(); ++i) {
    const Shape& s = parts[i].shape();
    if (s.rank() != first.rank() || !(s.with(a, first[a]) == first))
      fail(ErrorKind::shape, "[cat] all sizes but that of axis ", a, " must be equal; got ", first,
           " and, at position ", i, ", ", s, call_site(where));
    if (parts[i].device() != parts[0].device())
      fail(ErrorKind::device, "[cat] arrays lie on different devices; got ", parts[0].device(), " and ",
           parts[i].device(), "; move one with to(device)", call_site(where));
    type = promote(type, parts[i].dtype());
  }
  std::vector<Tensor> same;
  for (const Tensor& p : parts)
    if (p.shape()[a] > 0) same.push_back(cast(At(p, where), type));
  if (same.empty()) return cast(At(parts[0], where), type);
  return join(same, a, where);
}

Tensor stack(const std::vector<Tensor>& parts, int64_t axis, std::source_location where) {
  if (parts.empty()) fail(ErrorKind::shape, "[stack] needs at least one array", call_site(where));
  const int a = normalize_axis(axis, parts[0].rank() + 1, "stack");
  std::vector<Tensor> longer;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!(parts[i].shape() == parts[0].shape()))
      fail(ErrorKind::shape, "[stack] all shapes must be equal; got ", parts[0].shape(), " and, at position ", i, ", ",
           parts[i].shape(), call_site(where));
    longer.push_back(reshape(At(parts[i], where), parts[i].shape().inserted(a, 1)));
  }
  return cat(longer, a, where);
}

std::vector<Tensor> split(At x, int64_t size, int64_t axis) {
  const Shape& s = x.tensor.shape();
  const int a = normalize_axis(axis, s.rank(), "split");
  if (size < 1) fail(ErrorKind::value, "[split] the size must be positive; got ", size, call_site(x.where));
  std::vector<Tensor> out;
  for (int64_t at = 0; at < s[a] || out.empty(); at += size) out.push_back(slice(x, a, at, std::min(at + size, s[a])));
  return out;
}

std::vector<Tensor> split(At x, const std::vector<int64_t>& sizes, int64_t axis) {
  const Shape& s = x.tensor.shape();
  const int a = normalize_axis(axis, s.rank(), "split");
  int64_t total = 0;
  for (int64_t size : sizes) {
    if (size < 0) fail(ErrorKind::value, "[split] a size must not be negative; got ", size, call_site(x.where));
    total += size;
  }
  if (total != s[a])
    fail(ErrorKind::value, "[split] the sizes must add up to ", s[a], ", the size of axis ", a, "; got ", total,
         " for ", s, call_site(x.where));
  std::vector<Tensor> out;
  int64_t at = 0;
  for (int64_t size : sizes) {
    out.push_back(slice(x, a, at, at + size));
    at += size;
  }
  return out;
}

std::vector<Tensor> chunk(At x, int64_t count, int64_t axis) {
  const int64_t size = x.tensor.size(axis);
  if (count < 1) fail(ErrorKind::value, "[chunk] the count must be positive; got ", count, call_site(x.where));
  return split(x, std::max<int64_t>(1, (size + count - 1) / count), axis);
}

std::vector<Tensor> unbind(At x, int64_t axis) {
  const int a = normalize_axis(axis, x.tensor.rank(), "unbind");
  std::vector<Tensor> out;
  for (int64_t i = 0; i < x.tensor.shape()[a]; ++i) out.push_back(select(x, a, i));
  return out;
}

Tensor roll(At x, int64_t shift, int64_t axis) {
  const Shape& s = x.tensor.shape();
  const int a = normalize_axis(axis, s.rank(), "roll");
  if (s[a] == 0) return x.tensor;
  const int64_t by = (shift % s[a] + s[a]) % s[a];
  if (by == 0) return x.tensor;
  return cat({slice(x, a, s[a] - by, s[a]), slice(x, a, 0, s[a] - by)}, a, x.where);
}

Tensor roll(At x, const std::vector<int64_t>& shifts, const std::vector<int64_t>& axes) {
  if (shifts.size() != axes.size())
    fail(ErrorKind::value, "[roll] needs one shift an axis; got ", shifts.size(), " shifts and ", axes.size(), " axes",
         call_site(x.where));
  Tensor out = x.tensor;
  for (size_t i = 0; i < axes.size(); ++i) out = roll(At(out, x.where), shifts[i], axes[i]);
  return out;
}

Tensor repeat(At x, const std::vector<int64_t>& times) {
  if (times.size() < static_cast<size_t>(x.tensor.rank()) || times.size() > kMaxRank)
    fail(ErrorKind::shape, "[repeat] needs a number for each of the ", x.tensor.rank(), " axes, at most ", kMaxRank,
         "; got ", times.size(), call_site(x.where));
  for (int64_t t : times)
    if (t < 0) fail(ErrorKind::value, "[repeat] a number must not be negative; got ", t, call_site(x.where));
  const int rank = static_cast<int>(times.size());
  Shape shape = x.tensor.shape();
  while (shape.rank() < rank) shape = shape.inserted(0, 1);
  Tensor out = reshape(x, shape);
  // From the last axis on: what is copied first is shortest.
  for (int axis = rank - 1; axis >= 0; --axis) {
    if (times[axis] == 1) continue;
    const Tensor parts = around_axis(At(out, x.where), axis);
    const int64_t outer = parts.shape()[0], whole = parts.shape()[1] * parts.shape()[2];
    shape = shape.with(axis, shape[axis] * times[axis]);
    const Tensor rows = reshape(At(parts, x.where), Shape{outer, 1, whole});
    out = reshape(At(expand(At(rows, x.where), Shape{outer, times[axis], whole}), x.where), shape);
  }
  return out;
}

Tensor tile(At x, const std::vector<int64_t>& times) {
  std::vector<int64_t> all = times;
  while (all.size() < static_cast<size_t>(x.tensor.rank())) all.insert(all.begin(), 1);
  return repeat(x, all);
}

Tensor repeat_interleave(At x, int64_t times, int64_t axis) {
  const Shape& s = x.tensor.shape();
  const int a = normalize_axis(axis, s.rank(), "repeat_interleave");
  if (times < 0)
    fail(ErrorKind::value, "[repeat_interleave] the number must not be negative; got ", times, call_site(x.where));
  const Tensor parts = around_axis(x, a);
  const int64_t entries = parts.shape()[0] * parts.shape()[1], inner = parts.shape()[2];
  const Tensor rows = reshape(At(parts, x.where), Shape{entries, 1, inner});
  return reshape(At(expand(At(rows, x.where), Shape{entries, times, inner}), x.where), s.with(a, s[a] * times));
}

Tensor repeat_interleave(At x, const std::vector<int64_t>& times, int64_t axis) {
  const Shape& s = x.tensor.shape();
  const int a = normalize_axis(axis, s.rank(), "repeat_interleave");
  if (static_cast<int64_t>(times.size()) != s[a])
    fail(ErrorKind::value, "[repeat_interleave] needs a number for each of the ", s[a], " entries of axis ", a,
         "; got ", times.size(), call_site(x.where));
  std::vector<int64_t> from;
  for (int64_t i = 0; i < s[a]; ++i) {
    if (times[i] < 0)
      fail(ErrorKind::value, "[repeat_interleave] a number must not be negative; got ", times[i], call_site(x.where));
    from.insert(from.end(), static_cast<size_t>(times[i]), i);
  }
  const Tensor index = Tensor::from(from, {static_cast<int64_t>(from.size())}, x.tensor.device());
  return detail::index_select_checked(x, a, index);
}

Tensor slice_assign(At x, int64_t axis, int64_t start, int64_t stop, const Tensor& value) {
  const Shape& s = x.tensor.shape();
  const int a = normalize_axis(axis, s.rank(), "slice_assign");
  const auto clamp = [&](int64_t i) { return std::clamp(i < 0 ? i + s[a] : i, int64_t{0}, s[a]); };
  start = clamp(start);
  stop = std::max(clamp(stop), start);
  const Shape part = s.with(a, stop - start);
  Shape joint;
  if (!broadcast_shapes(value.shape(), part, joint) || !(joint == part))
    fail(ErrorKind::shape, "[slice_assign] the value must fit entries ", start, " to ", stop - 1, " of axis ", a, ", ",
         part, "; got ", value.shape(), call_site(x.where));
  const Tensor wide = expand(At(cast(At(value, x.where), x.tensor.dtype()), x.where), part);
  return cat({slice(x, a, 0, start), wide, slice(x, a, stop, s[a])}, a, x.where);
}

Tensor select_assign(At x, int64_t axis, int64_t position, const Tensor& value) {
  const Shape& s = x.tensor.shape();
  const int a = normalize_axis(axis, s.rank(), "select_assign");
  if (position < -s[a] || position >= s[a])
    fail(ErrorKind::value, "[select_assign] axis ", a, " has ", s[a], " entries; got position ", position, " for ", s,
         call_site(x.where));
  if (position < 0) position += s[a];
  Shape joint;
  const Shape rest = s.without(a);
  if (!broadcast_shapes(value.shape(), rest, joint) || !(joint == rest))
    fail(ErrorKind::shape, "[select_assign] the value must fit an entry of axis ", a, ", ", rest, "; got ",
         value.shape(), call_site(x.where));
  const Tensor wide = expand(At(value, x.where), rest);
  return slice_assign(x, a, position, position + 1, reshape(At(wide, x.where), s.with(a, 1)));
}

const OpDef kCat(OpFacts{.name = "cat", .kind = OpKind::producer, .derivative = cat_derivative});

}  // namespace outrace
