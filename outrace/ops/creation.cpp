#include "outrace/ops/creation.h"

#include <cstring>

namespace outrace {
namespace {

// Fills by writing one element in the dtype's form, then copying it on.
template <class Fn>
Tensor make(const Shape& shape, CreateOptions o, Fn&& value) {
  return visit_dtype(o.dtype, [&](auto zero) {
    using T = decltype(zero);
    const int64_t n = shape.numel();
    std::unique_ptr<T[]> data(new T[static_cast<size_t>(n)]);
    for (int64_t i = 0; i < n; ++i) {
      if constexpr (std::is_same_v<T, bf16> || std::is_same_v<T, f16>)
        data[i] = T(static_cast<float>(value(i)));
      else
        data[i] = static_cast<T>(value(i));
    }
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
Tensor arange(int64_t count, CreateOptions options) {
  return make(Shape{count}, options, [](int64_t i) { return static_cast<double>(i); });
}

}  // namespace outrace
