// Initial values: distributions within computed bounds, gains, orthogonality.
#include "outrace/nn/init.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numbers>

#include "expect_error.h"
#include "outrace/outrace.h"

namespace outrace {
namespace {

using namespace nn;
using Values = std::vector<double>;

// Mean and deviation of n samples against those of the distribution: within 5 deviations of the estimates themselves
// (a chance of 6e-7 each), the variance's being sqrt((kurtosis - 1) / n) of it.
void expect_moments(const Values& v, double mean, double deviation, double kurtosis) {
  const auto n = static_cast<double>(v.size());
  double sum = 0, square = 0;
  for (double x : v) sum += x;
  for (double x : v) square += (x - mean) * (x - mean);
  EXPECT_NEAR(sum / n, mean, 5 * deviation / std::sqrt(n));
  EXPECT_NEAR(square / n, deviation * deviation, 5 * deviation * deviation * std::sqrt((kurtosis - 1) / n));
}

void expect_uniform(const Tensor& t, double low, double high) {
  const Values v = t.to_vector<double>();
  const auto [least, most] = std::minmax_element(v.begin(), v.end());
  const double width = high - low, n = static_cast<double>(v.size());
  EXPECT_GE(*least, low - 1e-6 * width);  // rounding of the element type
  EXPECT_LE(*most, high + 1e-6 * width);
  EXPECT_LT(*least, low + 15 * width / n);  // missed with a chance of e^-15
  EXPECT_GT(*most, high - 15 * width / n);
  expect_moments(v, (low + high) / 2, width / std::sqrt(12.0), 1.8);
}

void expect_normal(const Tensor& t, double mean, double deviation) {
  expect_moments(t.to_vector<double>(), mean, deviation, 3);
}

TEST(Init, GainsArePyTorchs) {
  EXPECT_EQ(calculate_gain(Nonlinearity::linear), 1);
  EXPECT_EQ(calculate_gain(Nonlinearity::conv), 1);
  EXPECT_EQ(calculate_gain(Nonlinearity::sigmoid), 1);
  EXPECT_EQ(calculate_gain(Nonlinearity::tanh), 5.0 / 3);
  EXPECT_EQ(calculate_gain(Nonlinearity::relu), std::sqrt(2.0));
  EXPECT_DOUBLE_EQ(calculate_gain(Nonlinearity::leaky_relu), 1.4141428569978354);
  EXPECT_DOUBLE_EQ(calculate_gain(Nonlinearity::leaky_relu, 0.2), 1.3867504905630728);
  EXPECT_EQ(calculate_gain(Nonlinearity::selu), 0.75);
}

TEST(Init, Fans) {
  const Fans linear = calculate_fan_in_and_fan_out({30, 20});
  EXPECT_EQ(linear.in, 20);
  EXPECT_EQ(linear.out, 30);
  const Fans conv = calculate_fan_in_and_fan_out({8, 4, 3, 5});
  EXPECT_EQ(conv.in, 60);
  EXPECT_EQ(conv.out, 120);
  expect_has(error_of([] { calculate_fan_in_and_fan_out({7}); }, ErrorKind::shape), "[7]");
  expect_has(error_of([] { xavier_normal({}); }, ErrorKind::shape), "two or more axes");
}

TEST(Init, ScaledDistributions) {
  manual_seed(17);
  const Shape shape{120, 40, 5};  // fan in 200, fan out 600
  for (DType dtype : {DType::f32, DType::f64}) {
    Tensor t = zeros(shape, {.dtype = dtype}).requires_grad_();
    expect_uniform(init::uniform_(t, -2, 5), -2, 5);
    expect_normal(init::normal_(t, 3, 0.5), 3, 0.5);
    const double xavier = std::sqrt(6.0 / 800);
    expect_uniform(init::xavier_uniform_(t, 2), -2 * xavier, 2 * xavier);
    expect_normal(init::xavier_normal_(t, 3), 0, 3 * std::sqrt(2.0 / 800));
    const double kaiming = std::sqrt(2.0) * std::sqrt(3.0 / 200);
    expect_uniform(init::kaiming_uniform_(t), -kaiming, kaiming);
    const double tanh_bound = 5.0 / 3 * std::sqrt(3.0 / 600);
    expect_uniform(init::kaiming_uniform_(t, {.mode = FanMode::fan_out, .nonlinearity = Nonlinearity::tanh}),
                   -tanh_bound, tanh_bound);
    expect_normal(init::kaiming_normal_(t, {.a = 1}), 0, std::sqrt(1.0 / 200));
    expect_uniform(xavier_uniform(shape, 1, {.dtype = dtype}), -xavier, xavier);
    EXPECT_TRUE(t.requires_grad());
    EXPECT_EQ(t.dtype(), dtype);
  }
}

TEST(Init, NarrowTypesAreFilledToo) {
  for (DType dtype : {DType::f16, DType::bf16}) {
    Tensor t = zeros({50, 40}, {.dtype = dtype});
    const Values v = init::xavier_uniform_(t).to_vector<double>();
    const double bound = std::sqrt(6.0 / 90);
    for (double x : v) EXPECT_LE(std::abs(x), bound * (1 + epsilon_of(dtype)));
    expect_moments(v, 0, bound / std::sqrt(3.0), 1.8);
    init::orthogonal_(t);
    EXPECT_EQ(t.dtype(), dtype);
  }
}

TEST(Init, AnInPlaceFillIsTheSameSequenceAsTheValue) {
  manual_seed(5);
  const std::vector<float> value = xavier_normal({6, 4}).to_vector<float>();
  manual_seed(5);
  Tensor t = ones({6, 4});
  const Tensor shared = t;
  init::xavier_normal_(t);
  EXPECT_EQ(t.to_vector<float>(), value);
  EXPECT_EQ(shared.to_vector<float>(), value);
}

TEST(Init, ConstantsAndIdentities) {
  Tensor t = zeros({2, 3});
  EXPECT_EQ(init::constant_(t, 2.5).to_vector<double>(), Values(6, 2.5));
  EXPECT_EQ(init::ones_(t).to_vector<double>(), Values(6, 1));
  EXPECT_EQ(init::zeros_(t).to_vector<double>(), Values(6, 0));
  EXPECT_EQ(init::eye_(t).to_vector<double>(), (Values{1, 0, 0, 0, 1, 0}));
  Tensor conv = ones({4, 2, 3});
  const Values v = init::dirac_(conv, 2).to_vector<double>();
  for (int64_t o = 0; o < 4; ++o)
    for (int64_t i = 0; i < 2; ++i)
      for (int64_t k = 0; k < 3; ++k)
        EXPECT_EQ(v[static_cast<size_t>((o * 2 + i) * 3 + k)], i == o % 2 && k == 1 ? 1 : 0) << o << i << k;
  const Values square = dirac({1, 1, 2, 4}).to_vector<double>();
  EXPECT_EQ(square[1 * 4 + 2], 1);
  expect_has(error_of([&] { init::dirac_(conv, 3); }, ErrorKind::value), "got 3");
  expect_has(error_of([&] { init::dirac_(t); }, ErrorKind::shape), "[2, 3]");
  expect_has(error_of([&] { init::eye_(conv); }, ErrorKind::shape), "[4, 2, 3]");
}

TEST(Init, OrthogonalRowsOrColumns) {
  manual_seed(9);
  for (const Shape& shape : {Shape{40, 60}, Shape{60, 40}, Shape{16, 4, 3, 3}, Shape{1, 5}, Shape{5, 1}, Shape{1, 1}})
    for (DType dtype : {DType::f32, DType::f64}) {
      const double gain = 1.5, tolerance = dtype == DType::f64 ? 1e-13 : 1e-6;
      const Values q = orthogonal(shape, gain, {.dtype = dtype}).to_vector<double>();
      const int64_t rows = shape[0], columns = shape.numel() / rows, count = std::min(rows, columns);
      const auto at = [&](int64_t i, int64_t k) {  // k-th entry of the i-th row or column
        return q[static_cast<size_t>(rows <= columns ? i * columns + k : k * columns + i)] / gain;
      };
      for (int64_t i = 0; i < count; ++i)
        for (int64_t j = 0; j <= i; ++j) {
          double product = 0;
          for (int64_t k = 0; k < std::max(rows, columns); ++k) product += at(i, k) * at(j, k);
          EXPECT_NEAR(product, i == j ? 1 : 0, tolerance) << shape.str() << " " << i << " " << j;
        }
    }
  // Of uniformly distributed ones every entry has the variance 1 / n, and no sign is preferred.
  Values all;
  for (int i = 0; i < 300; ++i)
    for (double v : orthogonal({4, 4}).to_vector<double>()) all.push_back(v);
  expect_moments(all, 0, 0.5, 3);
  expect_has(error_of([] { orthogonal({5}); }, ErrorKind::shape), "[5]");
  EXPECT_EQ(orthogonal({0, 3}).numel(), 0);
}

TEST(Init, TruncatedNormal) {
  manual_seed(21);
  const Shape shape{20000};
  const double phi2 = std::exp(-2.0) / std::sqrt(2 * std::numbers::pi), inside = std::erf(std::sqrt(2.0));
  const double variance = 1 - 4 * phi2 / inside;  // of a standard normal within +-2
  Values v = trunc_normal(shape).to_vector<double>();
  for (double x : v) EXPECT_LE(std::abs(x), 2);
  expect_moments(v, 0, std::sqrt(variance), 3);
  Tensor t = zeros(shape, {.dtype = DType::f64});
  v = init::trunc_normal_(t, 10, 2, 6, 14).to_vector<double>();
  for (double x : v) EXPECT_LE(std::abs(x - 10), 4);
  expect_moments(v, 10, 2 * std::sqrt(variance), 3);
  // Far in the tail it is nearly exponential (kurtosis 9): mean lambda = density / probability, variance
  // 1 - lambda * (lambda - 8).
  const double lambda = std::exp(-32.0) / std::sqrt(2 * std::numbers::pi) / (std::erfc(8 / std::numbers::sqrt2) / 2);
  v = trunc_normal(shape, 0, 1, 8, 100, {.dtype = DType::f64}).to_vector<double>();
  for (double x : v) EXPECT_GE(x, 8);
  expect_moments(v, lambda, std::sqrt(1 - lambda * (lambda - 8)), 9);
  v = trunc_normal(shape, 0, 1, -std::numeric_limits<double>::infinity(), 0).to_vector<double>();
  expect_moments(v, -std::sqrt(2 / std::numbers::pi), std::sqrt(1 - 2 / std::numbers::pi), 3.87);
  for (double x : v) EXPECT_TRUE(std::isfinite(x));
  expect_has(error_of([] { trunc_normal({2}, 0, 1, 3, 3); }, ErrorKind::value), "got 3 and 3");
  expect_has(error_of([] { trunc_normal({2}, 0, 0); }, ErrorKind::value), "got 0");
  expect_has(error_of([] { trunc_normal({2}, 0, 1, 50, 51); }, ErrorKind::value), "no probability");
}

}  // namespace
}  // namespace outrace
