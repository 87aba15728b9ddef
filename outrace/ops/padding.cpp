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

}  // namespace

Tensor pad(At x, const std::vector<int64_t>& pads, PadMode mode, double value) {
  const Shape& s = x.tensor.shape();
  if (pads.size() % 2 != 0 || pads.size() / 2 > static_cast<size_t>(s.rank()))
    fail(ErrorKind::shape, "[pad] needs a pair of numbers for each of at most ", s.rank(), " axes; got ", pads.size(),
         " numbers for ", s, call_site(x.where));
  Tensor cropped = x.tensor;
  std::vector<int64_t> before(static_cast<size_t>(s.rank())), after(before);
  for (size_t i = 0; i < pads.size() / 2; ++i) {
    const int axis = s.rank() - 1 - static_cast<int>(i);
    const int64_t b = pads[2 * i], a = pads[2 * i + 1];
    if (std::abs(a) > kMaxElements || std::abs(b) > kMaxElements || s[axis] + a + b < 0)
      fail(ErrorKind::value, "[pad] axis ", axis, " of size ", s[axis], " cannot be padded by ", b, " and ", a,
           call_site(x.where));
    before[axis] = std::max<int64_t>(b, 0);
    after[axis] = std::max<int64_t>(a, 0);
    // A crop that is longer than the axis goes on into what the other side adds.
    const int64_t first = std::min(std::max<int64_t>(-b, 0), s[axis]);
    const int64_t last = std::max(first, s[axis] - std::max<int64_t>(-a, 0));
    if (first > 0 || last < s[axis]) cropped = slice(At(cropped, x.where), axis, first, last);
    if (b < 0) after[axis] = std::max<int64_t>(0, s[axis] + a + b - (last - first));
    if (a < 0) before[axis] = std::max<int64_t>(0, s[axis] + a + b - (last - first));
  }
  if (mode != PadMode::constant) {
    for (int axis = 0; axis < s.rank(); ++axis) {
      if (before[axis] == 0 && after[axis] == 0) continue;
      const int64_t size = cropped.shape()[axis];
      require_room(mode, x, axis, size, before[axis], after[axis]);
      std::vector<int64_t> from(static_cast<size_t>(before[axis] + size + after[axis]));
      for (size_t i = 0; i < from.size(); ++i) from[i] = source(mode, static_cast<int64_t>(i) - before[axis], size);
      const Tensor index = Tensor::from(from, {static_cast<int64_t>(from.size())}, x.tensor.device());
      cropped = detail::index_select_checked(At(cropped, x.where), axis, index);
    }
    return cropped;
  }
  SliceAttrs attrs;
  attrs.step.fill(1);
  attrs.fill = value;
  Shape shape = cropped.shape();
  for (int axis = 0; axis < s.rank(); ++axis) {
    attrs.start[axis] = before[axis];
    shape = shape.with(axis, before[axis] + shape[axis] + after[axis]);
  }
  return shape == cropped.shape() ? cropped : pad(At(cropped, x.where), shape, attrs);
}

Tensor pad_constant(At x, const std::vector<int64_t>& pads, double value) {
  return pad(x, pads, PadMode::constant, value);
}

}  // namespace outrace
