#include "outrace/ops/sort.h"

#include <algorithm>
#include <cmath>

#include "outrace/graph/recorder.h"
#include "outrace/graph/scope.h"
#include "outrace/ops/concat.h"
#include "outrace/ops/elementwise.h"
#include "outrace/ops/index.h"
#include "outrace/ops/movement.h"
#include "outrace/ops/op_def.h"
#include "outrace/ops/reduce.h"
#include "outrace/ops/reduce_axes.h"

namespace outrace {
namespace {

// x with `axis` as its last: kernels work along rows. An array without axes is one row of one.
struct Rows {
  Tensor x;
  int axis = 0;
  bool scalar = false;

  Rows(const char* op, At at, int64_t along) : scalar(at.tensor.rank() == 0) {
    const Tensor t = scalar ? reshape(at, Shape{1}) : at.tensor;
    axis = normalize_axis(along, t.rank(), op);
    x = axis == t.rank() - 1 ? t : transpose(At(t, at.where), axis, -1);
  }
  int64_t size() const { return x.shape().back(); }
  // A result over rows, with its axis back in its place; or without that axis, of size 1.
  Tensor back(const Tensor& r) const {
    if (scalar) return reshape(r, Shape{});
    return axis == r.rank() - 1 ? r : transpose(r, axis, -1);
  }
  Tensor back(const Tensor& r, bool keepdim) const {
    if (scalar) return reshape(r, Shape{});
    return keepdim ? back(r) : squeeze(back(r), axis);
  }
  ValuesAndIndices take(const Tensor& indices) const {
    return {back(detail::gather_checked(x, -1, indices)), back(indices)};
  }
  ValuesAndIndices take(const Tensor& indices, bool keepdim) const {
    return {back(detail::gather_checked(x, -1, indices), keepdim), back(indices, keepdim)};
  }
};

Tensor order(const Tensor& rows, bool descending, std::source_location where) {
  return record(kArgsort, {&rows}, DType::i64, rows.shape(), SortAttrs{descending}, where);
}

Tensor selected(const Tensor& rows, const TopKAttrs& a, std::source_location where) {
  const int64_t count = a.selection == Selection::only_kth ? 1 : a.k;
  return record(kTopK, {&rows}, DType::i64, rows.shape().with(rows.rank() - 1, count), a, where);
}

void require_elements(const char* op, const Rows& rows, At x) {
  if (rows.size() == 0)
    fail(ErrorKind::shape, "[", op, "] no element along axis ", rows.axis, "; got shape ", x.tensor.shape(),
         call_site(x.where));
}

// Not a + w * (b - a), which is NaN beside an infinity. Equal neighbours stay as they are, whatever rounding does.
Tensor between(const Tensor& a, const Tensor& b, double w) { return select(equal(a, b), a, a * (1 - w) + b * w); }

struct Rank {
  int64_t below, above;  // from 0
  double part;           // of the way from one to the other
};

Rank rank_of(double q, int64_t n, At x) {
  if (!(q >= 0 && q <= 1)) fail(ErrorKind::value, "[quantile] q must lie between 0 and 1; got ", q, call_site(x.where));
  const double at = q * static_cast<double>(n - 1);
  const int64_t below = std::min(static_cast<int64_t>(std::floor(at)), n - 1);
  return {below, std::min(below + 1, n - 1), at - static_cast<double>(below)};
}

// `kth(rank)` gives the element of that rank of each row, the last of which is a NaN if there is one.
template <class Kth>
Tensor interpolate(const Rank& r, const Tensor& last, const Kth& kth) {
  const Tensor low = kth(r.below);
  const Tensor y = r.part == 0 ? low : between(low, kth(r.above), r.part);
  return select(equal(last, last), y, last);
}

// argsort and topk compare about log2 n numbers an element.
double order_flops(std::span<const Shape> inputs, const Shape&, const Attrs&) {
  const double n = static_cast<double>(std::max<int64_t>(inputs[0].back(), 2));
  return static_cast<double>(inputs[0].numel()) * std::log2(n);
}

}  // namespace

Tensor argsort(At x, int64_t axis, bool descending) {
  const Rows rows("argsort", x, axis);
  return rows.back(order(rows.x, descending, x.where));
}

ValuesAndIndices sort(At x, int64_t axis, bool descending) {
  const Rows rows("sort", x, axis);
  return rows.take(order(rows.x, descending, x.where));
}

ValuesAndIndices topk(At x, int64_t k, const TopKOptions& o) {
  const Rows rows("topk", x, o.axis);
  const int64_t least = rows.scalar ? 1 : 0;
  if (k < least || k > rows.size())
    fail(ErrorKind::value, "[topk] k must lie between ", least, " and the axis's size ", rows.size(), "; got ", k,
         call_site(x.where));
  return rows.take(selected(rows.x, {k, o.largest, o.sorted ? Selection::sorted : Selection::by_position}, x.where));
}

ValuesAndIndices kthvalue(At x, int64_t k, int64_t axis, bool keepdim) {
  const Rows rows("kthvalue", x, axis);
  if (k < 1 || k > rows.size())
    fail(ErrorKind::value, "[kthvalue] k must lie between 1 and the axis's size ", rows.size(), "; got ", k,
         call_site(x.where));
  return rows.take(selected(rows.x, {k, false, Selection::only_kth}, x.where), keepdim);
}

ValuesAndIndices median(At x, int64_t axis, bool keepdim) {
  const Rows rows("median", x, axis);
  require_elements("median", rows, x);
  Tensor at = selected(rows.x, {(rows.size() + 1) / 2, false, Selection::only_kth}, x.where);
  if (is_float(x.tensor.dtype())) {
    // The largest element is the first NaN, if there is one.
    const Tensor most = argmax(rows.x, -1, true);
    const Tensor value = detail::gather_checked(rows.x.detach(), -1, most);
    at = select(equal(value, value), at, most);
  }
  return rows.take(at, keepdim);
}

Tensor quantile(At x, double q, int64_t axis, bool keepdim) {
  require_float("quantile", x);
  const DType t = x.tensor.dtype();
  const Tensor wide = cast(x, t == DType::f64 ? t : DType::f32);
  const Rows rows("quantile", At(wide, x.where), axis);
  require_elements("quantile", rows, x);
  const Tensor last = max(rows.x.detach(), {{-1}, true});
  const Tensor y = interpolate(rank_of(q, rows.size(), x), last, [&](int64_t rank) {
    return detail::gather_checked(rows.x, -1, selected(rows.x, {rank + 1, false, Selection::only_kth}, x.where));
  });
  return cast(rows.back(y, keepdim), t);
}

Tensor quantile(At x, const std::vector<double>& q, int64_t axis, bool keepdim) {
  require_float("quantile", x);
  if (q.empty()) fail(ErrorKind::value, "[quantile] needs at least one q; got none", call_site(x.where));
  const DType t = x.tensor.dtype();
  const Tensor wide = cast(x, t == DType::f64 ? t : DType::f32);
  const Rows rows("quantile", At(wide, x.where), axis);
  require_elements("quantile", rows, x);
  const Tensor sorted = detail::gather_checked(rows.x, -1, order(rows.x, false, x.where));
  const int64_t n = rows.size();
  const Tensor last = slice(sorted.detach(), -1, n - 1, n);
  std::vector<Tensor> each;
  for (size_t i = 0; i < q.size(); ++i) {
    const Tensor y =
        interpolate(rank_of(q[i], n, x), last, [&](int64_t rank) { return slice(sorted, -1, rank, rank + 1); });
    each.push_back(cast(rows.back(y, keepdim), t));
  }
  return stack(each);
}

const OpDef kArgsort(OpFacts{.name = "argsort", .kind = OpKind::producer, .flops = order_flops});
const OpDef kTopK(OpFacts{.name = "topk", .kind = OpKind::producer, .flops = order_flops});

}  // namespace outrace
