#include "outrace/nn/init.h"

#include "outrace/ops/random.h"

namespace outrace::nn {

Tensor kaiming_uniform(const Shape& shape, int64_t fan_in, CreateOptions options, double a) {
  const double bound = std::sqrt(2.0 / (1 + a * a)) * std::sqrt(3.0 / static_cast<double>(fan_in));
  return uniform(shape, -bound, bound, options);
}

Tensor fan_in_uniform(const Shape& shape, int64_t fan_in, CreateOptions options) {
  const double bound = 1 / std::sqrt(static_cast<double>(fan_in));
  return uniform(shape, -bound, bound, options);
}

}  // namespace outrace::nn
