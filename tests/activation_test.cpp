// What activations and special functions do at edges that tests/golden does not hold: integers, errors, far arguments,
// stability, fusion.
#include <gtest/gtest.h>

#include <limits>

#include "outrace/graph/program_cache.h"
#include "outrace/outrace.h"

namespace outrace {
namespace {

using Values = std::vector<double>;
using Whole = std::vector<int64_t>;
constexpr double kInf = std::numeric_limits<double>::infinity();

template <class Fn>
void expect_error(ErrorKind kind, const std::string& part, const Fn& fn) {
  try {
    fn();
    ADD_FAILURE() << "no error with '" << part << "'";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), kind) << e.what();
    EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
  }
}

TEST(Activation, IntegersRoundToThemselvesAndDivideByZeroQuietly) {
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  const Tensor x = Tensor::from(Whole{7, -7, 7, kLeast, 5}, {5}), z = Tensor::from(Whole{3, 3, -3, -1, 0}, {5});
  EXPECT_EQ(fmod(x, z).to_vector<int64_t>(), (Whole{1, -1, 1, 0, 0}));
  for (const Tensor& y : {floor(x), ceil(x), round(x), trunc(x)})
    EXPECT_EQ(y.to_vector<int64_t>(), x.to_vector<int64_t>());
  EXPECT_EQ(relu6(x).to_vector<int64_t>(), (Whole{6, 0, 6, 0, 5}));
  EXPECT_EQ(clamp(x, 0, 6).to_vector<int64_t>(), (Whole{6, 0, 6, 0, 5}));
  EXPECT_EQ(logical_not(z).to_vector<double>(), (Values{0, 0, 0, 0, 1}));
  EXPECT_EQ(logical_and(x, z).to_vector<double>(), (Values{1, 1, 1, 1, 0}));
  EXPECT_EQ(logical_not(z > 0).to_vector<double>(), (Values{0, 0, 1, 1, 1}));
  for (const Tensor& none : {isnan(x), isinf(x)}) EXPECT_EQ(none.to_vector<double>(), Values(5, 0));
  EXPECT_EQ(isfinite(x).to_vector<double>(), Values(5, 1));
}

TEST(Activation, NumbersThatAreNone) {
  const double nan = std::nan("");
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    const Tensor x = Tensor::from(Values{0, -1, kInf, -kInf, nan}, {5}).to(dtype);
    EXPECT_EQ(isnan(x).to_vector<double>(), (Values{0, 0, 0, 0, 1}));
    EXPECT_EQ(isinf(x).to_vector<double>(), (Values{0, 0, 1, 1, 0}));
    EXPECT_EQ(isfinite(x).to_vector<double>(), (Values{1, 1, 0, 0, 0}));
    EXPECT_EQ(logical_not(x).to_vector<double>(), (Values{1, 0, 0, 0, 0}));  // NaN is true
  }
}

// pytorch#1835
TEST(Activation, LogSigmoidOfLargeNumbers) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    Tensor x = Tensor::from(Values{-300, -1e4, 0, 300}, {4}).to(dtype).requires_grad_();
    const Tensor y = log_sigmoid(x);
    sum(y).backward();
    const Values value = y.to_vector<double>(), gradient = x.grad().to_vector<double>();
    EXPECT_EQ(value[0], -300);
    EXPECT_EQ(value[1], -1e4);
    EXPECT_NEAR(value[2], -0.69314718, 1e-7);
    EXPECT_NEAR(value[3], dtype == DType::f32 ? 0 : -5.148e-131, 1e-134);
    EXPECT_EQ(gradient[0], 1);
    EXPECT_EQ(gradient[1], 1);
    EXPECT_EQ(gradient[2], 0.5);
    EXPECT_NEAR(gradient[3], 0, 1e-30);
  }
}

// Neither the value nor the first or second derivative may be NaN where the function is smooth, however far out.
TEST(Activation, StableFarFromZero) {
  const std::pair<const char*, Tensor (*)(const Tensor&)> functions[] = {
      {"softplus", [](const Tensor& x) { return softplus(x); }},
      {"softplus with beta", [](const Tensor& x) { return softplus(x, 2); }},
      {"log_sigmoid", [](const Tensor& x) { return log_sigmoid(x); }},
      {"sigmoid", [](const Tensor& x) { return sigmoid(x); }},
      {"silu", [](const Tensor& x) { return silu(x); }},
      {"mish", [](const Tensor& x) { return mish(x); }},
      {"gelu", [](const Tensor& x) { return gelu(x); }},
      {"gelu_tanh", [](const Tensor& x) { return gelu_tanh(x); }},
      {"selu", [](const Tensor& x) { return selu(x); }},
      {"elu", [](const Tensor& x) { return elu(x); }},
      {"celu", [](const Tensor& x) { return celu(x, 0.5); }},
      {"softsign", [](const Tensor& x) { return softsign(x); }},
      {"tanh", [](const Tensor& x) { return tanh(x); }},
      {"erf", [](const Tensor& x) { return erf(x); }},
      {"hard_swish", [](const Tensor& x) { return hard_swish(x); }},
  };
  for (const auto& [name, fn] : functions)
    for (const DType dtype : {DType::f32, DType::f64}) {
      Tensor x = Tensor::from(Values{-5000, -800, -100, -89, 89, 100, 800, 5000}, {8}).to(dtype).requires_grad_();
      const Tensor y = fn(x);
      const Tensor first = grad(sum(y), {x}, {.create_graph = true})[0];
      const Tensor second = grad(sum(first), {x})[0];
      for (const Tensor& t : {y, first, second}) {
        if (!t.defined()) continue;
        for (const double v : t.to_vector<double>()) EXPECT_TRUE(std::isfinite(v)) << name << " " << t.str();
      }
    }
}

// gelu's negative tail keeps its digits: 0.5 x erfc(-x / sqrt(2)), not a difference of two numbers near 1.
TEST(Activation, GeluTailKeepsItsDigits) {
  const Tensor x = Tensor::from(Values{-10, -6}, {2});
  const Values y = gelu(x).to_vector<double>();
  EXPECT_NEAR(y[0] / -7.619853024160526e-23, 1, 1e-12);
  EXPECT_NEAR(y[1] / -5.9195258702261888e-09, 1, 1e-13);
}

TEST(Activation, WrongArgumentsAreErrors) {
  const Tensor x = ones({2, 3});
  expect_error(ErrorKind::value, "[celu]", [&] { celu(x, 0); });
  expect_error(ErrorKind::value, "[hardtanh]", [&] { hardtanh(x, 2, 1); });
  expect_error(ErrorKind::value, "[clamp]", [&] { clamp(x, {}, {}); });
  expect_error(ErrorKind::value, "[softshrink]", [&] { softshrink(x, -1); });
  expect_error(ErrorKind::shape, "[glu]", [&] { glu(x); });
  expect_error(ErrorKind::shape, "glu", [&] { glu(x, 2); });
  expect_error(ErrorKind::shape, "[prelu]", [&] { prelu(x, ones({2})); });
  expect_error(ErrorKind::shape, "[prelu]", [&] { prelu(x, ones({3, 1})); });
  expect_error(ErrorKind::dtype, "[sin]", [&] { sin(Tensor::from(Whole{1}, {1})); });
  expect_error(ErrorKind::dtype, "[select]", [&] { where(x, x, x); });
  EXPECT_EQ(prelu(ones({0, 3}), ones({3})).shape(), (Shape{0, 3}));
  EXPECT_EQ(prelu(-ones({}), full({1}, 0.5)).item(), -0.5);
  EXPECT_EQ(where(x > 0, 2, x).to_vector<double>(), Values(6, 2));
}

TEST(Activation, FusesIntoTheProductBeforeIt) {
  const Tensor x = ones({4, 6}), w = ones({5, 6}), b = ones({5});
  ProgramCache::global().clear();
  const Tensor y = mish(elu(clamp(gelu(linear(x, w, b)), -1, 3)));
  EXPECT_NEAR(y.to_vector<float>()[0], 3 * std::tanh(std::log1p(std::exp(3.0))), 1e-6);
  EXPECT_EQ(ProgramCache::global().all().at(0)->executable->plan().calls.size(), 1u);
}

}  // namespace
}  // namespace outrace
