#include "outrace/ops/creation.h"

#include <cmath>

#include "outrace/core/number.h"
#include "outrace/ops/movement.h"

namespace outrace {
namespace {

// Fills by writing one element in the dtype's form, then copying it on.
template <class Fn>
Tensor make(const Shape& shape, CreateOptions o, Fn&& value) {
  return visit_dtype(o.dtype, [&](auto zero) {
    using T = decltype(zero);
    const int64_t n = shape.numel();
    std::unique_ptr<T[]> data(new T[static_cast<size_t>(n)]);
    for (int64_t i = 0; i < n; ++i) data[i] = from_number<T>(value(i));
    return Tensor::from(std::span<const T>(data.get(), static_cast<size_t>(n)), shape, o.device);
  });
}

}  // namespace

Tensor full(const Shape& shape, double v, CreateOptions options) {
  return make(shape, options, [v](int64_t) { return v; });
}
Tensor zeros(const Shape& shape, CreateOptions options) { return full(shape, 0, options); }
Tensor ones(const Shape& shape, CreateOptions options) { return full(shape, 1, options); }
Tensor zeros_like(const Tensor& x) { return zeros(x.shape(), {.dtype = x.dtype(), .device = x.device()}); }
Tensor ones_like(const Tensor& x) { return ones(x.shape(), {.dtype = x.dtype(), .device = x.device()}); }
Tensor full_like(const Tensor& x, double value) {
  return full(x.shape(), value, {.dtype = x.dtype(), .device = x.device()});
}
Tensor arange(int64_t count, CreateOptions options) {
  return make(Shape{count}, options, [](int64_t i) { return static_cast<double>(i); });
}
Tensor arange(double start, double stop, double step, CreateOptions options) {
  const double count = std::ceil((stop - start) / step);
  if (step == 0 || !(count >= 0) || count > static_cast<double>(kMaxElements))
    fail(ErrorKind::value, "[arange] the step must lead from start to stop; got ", start, ", ", stop, " and step ",
         step);
  return make(Shape{static_cast<int64_t>(count)}, options,
              [=](int64_t i) { return start + static_cast<double>(i) * step; });
}
Tensor linspace(double start, double stop, int64_t count, CreateOptions options) {
  if (count < 0) fail(ErrorKind::value, "[linspace] the count must not be negative; got ", count);
  const double step = count > 1 ? (stop - start) / static_cast<double>(count - 1) : 0;
  return make(Shape{count}, options, [=](int64_t i) {
    return i < (count + 1) / 2 ? start + step * static_cast<double>(i)
                               : stop - step * static_cast<double>(count - 1 - i);
  });
}
Tensor eye(int64_t rows, int64_t columns, CreateOptions options) {
  const int64_t n = columns == -1 ? rows : columns;
  return make(Shape{rows, n}, options, [n](int64_t i) { return i / n == i % n ? 1 : 0; });
}

std::vector<Tensor> meshgrid(const std::vector<Tensor>& vectors, Indexing indexing) {
  std::vector<int64_t> sizes;
  for (const Tensor& v : vectors) {
    if (v.rank() > 1) fail(ErrorKind::shape, "[meshgrid] needs vectors; got ", v.shape());
    sizes.push_back(v.numel());
  }
  const bool exchanged = indexing == Indexing::xy && sizes.size() >= 2;
  if (exchanged) std::swap(sizes[0], sizes[1]);
  const Shape grid{std::span<const int64_t>(sizes)};
  std::vector<Tensor> out;
  for (int i = 0; i < grid.rank(); ++i) {
    const int axis = exchanged && i < 2 ? 1 - i : i;
    std::vector<int64_t> dims(sizes.size(), 1);
    dims[axis] = grid[axis];
    out.push_back(expand(reshape(vectors[i], Shape(std::span<const int64_t>(dims))), grid));
  }
  return out;
}

}  // namespace outrace
