#include "outrace/nn/init.h"

#include <numbers>

#include "outrace/ops/creation.h"
#include "outrace/ops/movement.h"
#include "outrace/ops/random.h"

namespace outrace::nn {
namespace {

double fan_of(const Shape& shape, FanMode mode) {
  const Fans fans = calculate_fan_in_and_fan_out(shape);
  return static_cast<double>(mode == FanMode::fan_in ? fans.in : fans.out);
}

double kaiming_gain(const KaimingOptions& k) { return calculate_gain(k.nonlinearity, k.a); }

// Host values in the wanted dtype.
Tensor from_host(const std::vector<double>& values, const Shape& shape, CreateOptions options) {
  return Tensor::from(values, shape, options.device).to(options.dtype).eval();
}

CreateOptions options_of(const Tensor& t) { return {t.dtype(), t.device()}; }

Tensor fill(Tensor t, const Tensor& value) {
  NoGrad off;
  value.eval();
  t.assign(value);
  return t;
}

// v -= (v . u) u for rows of `n` numbers.
void remove_part(double* v, const double* u, int64_t n) {
  double part = 0;
  for (int64_t i = 0; i < n; ++i) part += v[i] * u[i];
  for (int64_t i = 0; i < n; ++i) v[i] -= part * u[i];
}

double normal_cdf(double x) { return std::erfc(-x / std::numbers::sqrt2) / 2; }

// Where a standard normal variable has probability p (0 < p < 1) to lie below. For p <= 1/2 by Newton's method on the
// logarithm of the distribution, which is concave: from a start left of the answer it rises to it. The distribution is
// at most exp(-x^2 / 2) / 2 there, so the start below is left of it.
double normal_quantile(double p) {
  if (p > 0.5) return -normal_quantile(1 - p);
  double x = -std::sqrt(-2 * std::log(p));
  for (int i = 0; i < 100; ++i) {
    const double below = normal_cdf(x), density = std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
    const double next = x + std::log(p / below) * below / density;
    if (std::abs(next - x) <= 1e-15 * (1 + std::abs(x))) return next;
    x = next;
  }
  return x;
}

}  // namespace

Tensor kaiming_uniform(const Shape& shape, int64_t fan_in, CreateOptions options, double a) {
  const double bound = std::sqrt(2.0 / (1 + a * a)) * std::sqrt(3.0 / static_cast<double>(fan_in));
  return uniform(shape, -bound, bound, options);
}

Tensor fan_in_uniform(const Shape& shape, int64_t fan_in, CreateOptions options) {
  const double bound = 1 / std::sqrt(static_cast<double>(fan_in));
  return uniform(shape, -bound, bound, options);
}

double calculate_gain(Nonlinearity nonlinearity, double negative_slope) {
  switch (nonlinearity) {
    case Nonlinearity::tanh: return 5.0 / 3;
    case Nonlinearity::relu: return std::numbers::sqrt2;
    case Nonlinearity::leaky_relu: return std::sqrt(2 / (1 + negative_slope * negative_slope));
    case Nonlinearity::selu: return 0.75;
    case Nonlinearity::linear:
    case Nonlinearity::conv:
    case Nonlinearity::sigmoid: break;
  }
  return 1;
}

Fans calculate_fan_in_and_fan_out(const Shape& shape) {
  if (shape.rank() < 2)
    fail(ErrorKind::shape, "[calculate_fan_in_and_fan_out] needs a weight of two or more axes; got shape ", shape);
  int64_t kernel = 1;
  for (int i = 2; i < shape.rank(); ++i) kernel *= shape[i];
  return {shape[1] * kernel, shape[0] * kernel};
}

Tensor xavier_uniform(const Shape& shape, double gain, CreateOptions options) {
  const Fans fans = calculate_fan_in_and_fan_out(shape);
  const double bound = gain * std::sqrt(6.0 / static_cast<double>(fans.in + fans.out));
  return uniform(shape, -bound, bound, options);
}

Tensor xavier_normal(const Shape& shape, double gain, CreateOptions options) {
  const Fans fans = calculate_fan_in_and_fan_out(shape);
  return normal(shape, 0, gain * std::sqrt(2.0 / static_cast<double>(fans.in + fans.out)), options);
}

Tensor kaiming_uniform(const Shape& shape, const KaimingOptions& k, CreateOptions options) {
  const double bound = kaiming_gain(k) * std::sqrt(3.0 / fan_of(shape, k.mode));
  return uniform(shape, -bound, bound, options);
}

Tensor kaiming_normal(const Shape& shape, const KaimingOptions& k, CreateOptions options) {
  return normal(shape, 0, kaiming_gain(k) / std::sqrt(fan_of(shape, k.mode)), options);
}

// The rows (or columns, whichever are fewer) of a normal matrix made orthonormal one by one. The factor R of such a
// decomposition has a positive diagonal, so Q is distributed uniformly, as PyTorch's after its change of signs.
Tensor orthogonal(const Shape& shape, double gain, CreateOptions options) {
  if (shape.rank() < 2) fail(ErrorKind::shape, "[orthogonal] needs two or more axes; got shape ", shape);
  if (shape.numel() == 0) return zeros(shape, options);
  const int64_t rows = shape[0], columns = shape.numel() / rows;
  const int64_t count = std::min(rows, columns), length = std::max(rows, columns);
  std::vector<double> q = randn({count, length}, {.dtype = DType::f64}).to_vector<double>();
  for (int64_t i = 0; i < count; ++i) {
    double* v = q.data() + i * length;
    for (int pass = 0; pass < 2; ++pass)
      for (int64_t k = 0; k < i; ++k) remove_part(v, q.data() + k * length, length);
    double square = 0;
    for (int64_t k = 0; k < length; ++k) square += v[k] * v[k];
    const double scale = 1 / std::sqrt(square);
    for (int64_t k = 0; k < length; ++k) v[k] *= scale;
  }
  std::vector<double> out(q.size());
  for (int64_t i = 0; i < count; ++i)
    for (int64_t k = 0; k < length; ++k)
      out[static_cast<size_t>(rows <= columns ? i * length + k : k * count + i)] =
          gain * q[static_cast<size_t>(i * length + k)];
  return from_host(out, shape, options);
}

Tensor trunc_normal(const Shape& shape, double mean, double deviation, double low, double high, CreateOptions options) {
  if (!(low < high)) fail(ErrorKind::value, "[trunc_normal] low must be below high; got ", low, " and ", high);
  if (!(deviation > 0)) fail(ErrorKind::value, "[trunc_normal] deviation must be positive; got ", deviation);
  // Bounds above the mean are mirrored: close to 1 the distribution cannot be told from 1.
  const double sign = low > mean ? -deviation : deviation;
  const double a = (low - mean) / sign, b = (high - mean) / sign;
  const double from = normal_cdf(std::min(a, b)), to = normal_cdf(std::max(a, b));
  if (!(from < to))
    fail(ErrorKind::value, "[trunc_normal] no probability between the bounds; got ", low, " and ", high, " for mean ",
         mean);
  std::vector<double> values = rand(shape, {.dtype = DType::f64}).to_vector<double>();
  for (double& v : values) {
    const double p = std::min(std::max(from + v * (to - from), 1e-300), 1 - 0x1p-53);  // bounds may be infinite
    v = std::min(std::max(mean + sign * normal_quantile(p), low), high);
  }
  return from_host(values, shape, options);
}

Tensor dirac(const Shape& shape, int64_t groups, CreateOptions options) {
  if (shape.rank() < 3 || shape.rank() > 5)
    fail(ErrorKind::shape, "[dirac] needs a convolution's weight of 3, 4 or 5 axes; got shape ", shape);
  if (groups < 1 || shape[0] % groups != 0)
    fail(ErrorKind::value, "[dirac] groups must divide the output channels; got ", groups, " for shape ", shape);
  std::vector<double> values(static_cast<size_t>(shape.numel()));
  const int64_t out = shape[0] / groups;
  int64_t kernel = 1, center = 0;
  for (int i = 2; i < shape.rank(); ++i) {
    kernel *= shape[i];
    center = center * shape[i] + shape[i] / 2;
  }
  if (kernel > 0)
    for (int64_t g = 0; g < groups; ++g)
      for (int64_t c = 0; c < std::min(out, shape[1]); ++c)
        values[static_cast<size_t>(((g * out + c) * shape[1] + c) * kernel + center)] = 1;
  return from_host(values, shape, options);
}

namespace init {

Tensor uniform_(Tensor t, double low, double high) { return fill(t, uniform(t.shape(), low, high, options_of(t))); }
Tensor normal_(Tensor t, double mean, double deviation) {
  return fill(t, normal(t.shape(), mean, deviation, options_of(t)));
}
Tensor constant_(Tensor t, double value) { return fill(t, full(t.shape(), value, options_of(t))); }
Tensor zeros_(Tensor t) { return constant_(std::move(t), 0); }
Tensor ones_(Tensor t) { return constant_(std::move(t), 1); }
Tensor eye_(Tensor t) {
  if (t.rank() != 2) fail(ErrorKind::shape, "[eye_] needs a matrix; got shape ", t.shape());
  return fill(t, outrace::eye(t.size(0), t.size(1), options_of(t)));
}
Tensor dirac_(Tensor t, int64_t groups) { return fill(t, dirac(t.shape(), groups, options_of(t))); }
Tensor xavier_uniform_(Tensor t, double gain) { return fill(t, xavier_uniform(t.shape(), gain, options_of(t))); }
Tensor xavier_normal_(Tensor t, double gain) { return fill(t, xavier_normal(t.shape(), gain, options_of(t))); }
Tensor kaiming_uniform_(Tensor t, const KaimingOptions& kaiming) {
  return fill(t, kaiming_uniform(t.shape(), kaiming, options_of(t)));
}
Tensor kaiming_normal_(Tensor t, const KaimingOptions& kaiming) {
  return fill(t, kaiming_normal(t.shape(), kaiming, options_of(t)));
}
Tensor orthogonal_(Tensor t, double gain) { return fill(t, orthogonal(t.shape(), gain, options_of(t))); }
Tensor trunc_normal_(Tensor t, double mean, double deviation, double low, double high) {
  return fill(t, trunc_normal(t.shape(), mean, deviation, low, high, options_of(t)));
}

}  // namespace init

}  // namespace outrace::nn
