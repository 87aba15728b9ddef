#include "outrace/ops/activation.h"

#include "outrace/graph/scope.h"
#include "outrace/ops/ops.h"

namespace outrace {
namespace {

// x where `positive` does not hold, else 0: keeps exp from overflowing in the branch that is not chosen, where infinity
// times a gradient of 0 would be NaN.
Tensor negative_part(const Tensor& positive, At x) { return select(positive, 0, x); }

constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

Tensor leaky_relu(At x, double slope) { return select(x > 0, x, x * slope); }

Tensor elu(At x, double alpha) {
  const Tensor positive = x > 0;
  return select(positive, x, alpha * expm1(negative_part(positive, x)));
}

Tensor celu(At x, double alpha) {
  if (alpha == 0) fail(ErrorKind::value, "[celu] alpha must not be 0", call_site(x.where));
  const Tensor positive = x > 0;
  return select(positive, x, alpha * expm1(negative_part(positive, x / alpha)));
}

Tensor prelu(At x, At weight) {
  const Tensor& w = weight.tensor;
  if (w.numel() == 1) return select(x > 0, x, w.reshape(std::initializer_list<int64_t>{}) * x.tensor);
  const int64_t channels = x.tensor.rank() > 1 ? x.tensor.size(1) : 1;
  if (w.rank() != 1 || w.numel() != channels)
    fail(ErrorKind::shape, "[prelu] the weight must have one element or one for each of ", channels,
         " channels (axis 1); got ", w.shape(), " for x ", x.tensor.shape(), call_site(x.where));
  std::vector<int64_t> dims(static_cast<size_t>(x.tensor.rank()), 1);
  if (x.tensor.rank() > 1) dims[1] = channels;
  return select(x > 0, x, reshape(w, Shape(dims)) * x.tensor);
}

Tensor glu(At x, int64_t axis) {
  const int a = normalize_axis(axis, x.tensor.rank(), "glu");
  const int64_t size = x.tensor.shape()[a];
  if (size % 2 != 0)
    fail(ErrorKind::shape, "[glu] the size of axis ", axis, " must be even; got ", x.tensor.shape(),
         call_site(x.where));
  return slice(x, a, 0, size / 2) * sigmoid(slice(x, a, size / 2, size));
}

Tensor softplus(At x, double beta, double threshold) {
  const Tensor scaled = x * beta;
  return select(scaled > threshold, x, softplus(scaled) / beta);
}

Tensor hardtanh(At x, double low, double high) {
  if (low > high)
    fail(ErrorKind::value, "[hardtanh] low must not be above high; got ", low, " and ", high, call_site(x.where));
  return select(x <= low, low, select(x >= high, high, x));
}

Tensor clamp(At x, std::optional<double> low, std::optional<double> high) {
  if (!low && !high) fail(ErrorKind::value, "[clamp] needs at least one bound", call_site(x.where));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  if ((low && std::isnan(*low)) || (high && std::isnan(*high))) return x * 0 + nan;  // with a gradient of 0
  Tensor y = x.tensor;
  if (low) y = select(y <= *low, *low, y);
  if (high) y = select(y >= *high, *high, y);
  return y;
}

Tensor clamp(At x, At low, At high) { return minimum(maximum(x, low), high); }

Tensor threshold(At x, double threshold, double value) { return select(x <= threshold, value, x); }

Tensor softshrink(At x, double lambda) {
  if (!(lambda >= 0))
    fail(ErrorKind::value, "[softshrink] lambda must not be negative; got ", lambda, call_site(x.where));
  return select(x > lambda, x - lambda, select(x < -lambda, x + lambda, x * 0));
}

Tensor hardshrink(At x, double lambda) { return select(abs(x) <= lambda, 0, x); }

Tensor tanhshrink(At x) { return x - tanh(x); }

Tensor lerp(At x, At z, double weight) {
  if (weight < 0.5) return x + weight * (z - x);
  return z - (z - x) * (1 - weight);
}
Tensor lerp(At x, At z, At weight) {
  const Tensor distance = z - x;
  return select(abs(weight) < 0.5, x + weight * distance, z - distance * (1 - weight));
}

Tensor isnan(At x) { return not_equal(x, x); }
Tensor isinf(At x) { return is_float(x.tensor.dtype()) ? equal(abs(x), kInfinity) : isnan(x); }
Tensor isfinite(At x) { return is_float(x.tensor.dtype()) ? less(abs(x), kInfinity) : equal(x, x); }

Tensor where(At condition, At x, At z) { return select(condition, x, z); }
Tensor where(At condition, At x, double z) { return select(condition, x, z); }
Tensor where(At condition, double x, At z) { return select(condition, x, z); }

}  // namespace outrace
