#include "outrace/ops/padding.h"

#include <algorithm>

#include "outrace/graph/recorder.h"
#include "outrace/graph/scope.h"
#include "outrace/ops/index.h"
#include "outrace/ops/movement.h"

namespace outrace {
namespace {

const char* const kModes[] = {"constant", "reflect", "replicate", "circular"};

// The entry of an axis of `size` that stands at position i of the padded one; i may lie outside.
int64_t source(PadMode mode, int64_t i, int64_t size) {
  if (mode == PadMode::replicate) return std::clamp(i, int64_t{0}, size - 1);
  if (mode == PadMode::circular) return i < 0 ? i + size : i >= size ? i - size : i;
  return i < 0 ? -i : i >= size ? 2 * (size - 1) - i : i;
}

void require_room(PadMode mode, At x, int axis, int64_t size, int64_t before, int64_t after) {
  const int64_t most = mode == PadMode::reflect ? size - 1 : mode == PadMode::circular ? size : kMaxElements;
  if (before > most || after > most || (size == 0 && (before > 0 || after > 0)))
    fail(ErrorKind::value, "[pad] mode ", kModes[static_cast<int>(mode)], " takes at most ",
         size == 0 ? int64_t{0} : most, " entries on a side of axis ", axis, " of size ", size, "; got ", before,
         " and ", after, call_site(x.where));
}

// Every position named by where it comes from; negative pads crop what the others made.
Tensor pad_by_index(At x, const std::vector<int64_t>& before, const std::vector<int64_t>& after, PadMode mode) {
  Tensor out = x.tensor;
  for (int axis = 0; axis < out.rank(); ++axis) {
    if (before[axis] == 0 && after[axis] == 0) continue;
    const int64_t size = out.shape()[axis];
    require_room(mode, x, axis, size, before[axis], after[axis]);
    std::vector<int64_t> from(static_cast<size_t>(before[axis] + size + after[axis]));
    for (size_t i = 0; i < from.size(); ++i) from[i] = source(mode, static_cast<int64_t>(i) - before[axis], size);
    const Tensor index = Tensor::from(from, {static_cast<int64_t>(from.size())}, out.device());
    out = detail::index_select_checked(At(out, x.where), axis, index);
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
  return mode == PadMode::constant ? pad_by_number(x, before, after, value) : pad_by_index(x, before, after, mode);
}

Tensor pad_constant(At x, const std::vector<int64_t>& pads, double value) {
  return pad(x, pads, PadMode::constant, value);
}

}  // namespace outrace
