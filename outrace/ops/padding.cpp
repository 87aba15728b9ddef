#include "outrace/ops/padding.h"

#include <algorithm>
#include <cstdlib>

#include "outrace/graph/recorder.h"
#include "outrace/graph/scope.h"
#include "outrace/ops/concat.h"
#include "outrace/ops/movement.h"

namespace outrace {
namespace {

const char* const kModes[] = {"constant", "reflect", "replicate", "circular"};

void require_room(PadMode mode, At x, int axis, int64_t size, int64_t before, int64_t after) {
  const int64_t most = mode == PadMode::reflect ? size - 1 : mode == PadMode::circular ? size : kMaxElements;
  if (before > most || after > most || (size == 0 && (before > 0 || after > 0)))
    fail(ErrorKind::value, "[pad] mode ", kModes[static_cast<int>(mode)], " takes at most ",
         size == 0 ? int64_t{0} : most, " entries on a side of axis ", axis, " of size ", size, "; got ", before,
         " and ", after, call_site(x.where));
}

// What stands before, or behind, the entries of `axis`: views of x, so that cat copies long rows.
Tensor added(PadMode mode, At x, int axis, int64_t count, bool in_front) {
  const int64_t size = x.tensor.shape()[axis];
  if (mode == PadMode::replicate) {
    const int64_t edge = in_front ? 0 : size - 1;
    const Tensor one = slice(x, axis, edge, edge + 1);
    return expand(At(one, x.where), x.tensor.shape().with(axis, count));
  }
  if (mode == PadMode::circular) return in_front ? slice(x, axis, size - count, size) : slice(x, axis, 0, count);
  const Tensor next = in_front ? slice(x, axis, 1, count + 1) : slice(x, axis, size - 1 - count, size - 1);
  return flip(At(next, x.where), {axis});
}

// Negative pads crop what the others made.
Tensor pad_by_pieces(At x, const std::vector<int64_t>& before, const std::vector<int64_t>& after, PadMode mode) {
  Tensor out = x.tensor;
  for (int axis = 0; axis < out.rank(); ++axis) {
    const int64_t size = out.shape()[axis], front = before[axis], behind = after[axis];
    if (front == 0 && behind == 0) continue;
    require_room(mode, x, axis, size, front, behind);
    std::vector<Tensor> parts{out};
    if (front > 0) parts.insert(parts.begin(), added(mode, At(out, x.where), axis, front, true));
    if (behind > 0) parts.push_back(added(mode, At(out, x.where), axis, behind, false));
    out = cat(parts, axis, x.where);
    const int64_t first = std::max<int64_t>(-front, 0);
    out = slice(At(out, x.where), axis, first, first + front + size + behind);
  }
  return out;
}

Tensor pad_by_number(At x, const std::vector<int64_t>& before, const std::vector<int64_t>& after, double value) {
  SliceAttrs attrs;
  attrs.step.fill(1);
  attrs.fill = value;
  Tensor cropped = x.tensor;
  Shape shape = cropped.shape();
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const int64_t size = shape[axis], padded = before[axis] + size + after[axis];
    // A crop that is longer than the axis goes on into what the other side adds.
    const int64_t first = std::min(std::max<int64_t>(-before[axis], 0), size);
    const int64_t last = std::max(first, size - std::max<int64_t>(-after[axis], 0));
    cropped = slice(At(cropped, x.where), axis, first, last);
    attrs.start[axis] = std::min(std::max<int64_t>(before[axis], 0), padded - (last - first));
    shape = shape.with(axis, padded);
  }
  return shape == cropped.shape() ? cropped : pad(At(cropped, x.where), shape, attrs);
}

}  // namespace

Tensor pad(At x, const std::vector<int64_t>& pads, PadMode mode, double value) {
  const Shape& s = x.tensor.shape();
  if (pads.size() % 2 != 0 || pads.size() / 2 > static_cast<size_t>(s.rank()))
    fail(ErrorKind::shape, "[pad] needs a pair of numbers for each of at most ", s.rank(), " axes; got ", pads.size(),
         " numbers for ", s, call_site(x.where));
  std::vector<int64_t> before(static_cast<size_t>(s.rank())), after(before);
  for (size_t i = 0; i < pads.size() / 2; ++i) {
    const int axis = s.rank() - 1 - static_cast<int>(i);
    const int64_t b = pads[2 * i], a = pads[2 * i + 1];
    if (std::abs(a) > kMaxElements || std::abs(b) > kMaxElements || s[axis] + a + b < 0)
      fail(ErrorKind::value, "[pad] axis ", axis, " of size ", s[axis], " cannot be padded by ", b, " and ", a,
           call_site(x.where));
    before[axis] = b;
    after[axis] = a;
  }
  return mode == PadMode::constant ? pad_by_number(x, before, after, value) : pad_by_pieces(x, before, after, mode);
}

Tensor pad_constant(At x, const std::vector<int64_t>& pads, double value) {
  return pad(x, pads, PadMode::constant, value);
}

}  // namespace outrace
