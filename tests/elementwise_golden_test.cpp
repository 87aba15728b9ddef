// Elementwise ops and activations against PyTorch's values and gradients in float64 (tests/golden).
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include "outrace/outrace.h"
#include "tests/golden.h"

namespace outrace {
namespace {

using Args = std::vector<Tensor>;
using Fn = std::function<Tensor(const Args&)>;

// Both sides are within a few ulp of the truth, and sums of such numbers cancel: a few roundings of the inputs' size.
void expect_close(const Tensor& got, const std::vector<double>& expected, double size, const std::string& what,
                  double relative = 16 * 0x1p-53) {
  constexpr double kLeast = std::numeric_limits<double>::denorm_min();
  const std::vector<double> values = got.to_vector<double>();
  ASSERT_EQ(values.size(), expected.size()) << what;
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(expected[i])) {
      EXPECT_TRUE(std::isnan(values[i])) << what << " [" << i << "] = " << values[i] << ", not NaN";
    } else if (std::isinf(expected[i])) {
      EXPECT_EQ(values[i], expected[i]) << what << " [" << i << "]";
    } else {
      EXPECT_NEAR(values[i], expected[i], relative * (std::abs(expected[i]) + size) + kLeast)
          << what << " [" << i << "]";
    }
  }
}

Tensor leaf(const Golden& golden, const std::string& name) {
  const GoldenArray& a = golden.array(name);
  return Tensor::from(a.values, Shape(a.shape));
}

// Value, gradients of each named input, and the special values, which have only to be as precise as their own size.
void check(const Golden& golden, const std::string& group, const std::vector<std::string>& inputs, const Fn& fn) {
  SCOPED_TRACE(group);
  Args x;
  for (const std::string& name : inputs) x.push_back(leaf(golden, group + "/" + name).requires_grad_());
  const Tensor y = fn(x);
  expect_close(y, golden.values(group + "/y"), 1, "y");
  const std::vector<Tensor> gradients = y.requires_grad() ? grad(y, x, {}, leaf(golden, group + "/g")) : Args(x.size());
  // PyTorch multiplies hard_sigmoid's gradient by 1/6 in f32.
  const double slack = group == "unary/hard_sigmoid" ? 1e-7 : 16 * 0x1p-53;
  for (size_t i = 0; i < x.size(); ++i) {
    const std::vector<double>& expected = golden.values(group + "/d" + inputs[i]);
    if (gradients[i].defined())
      expect_close(gradients[i], expected, 4, "d" + inputs[i], slack);
    else
      for (const double v : expected) EXPECT_EQ(v, 0) << "no gradient of " << inputs[i];
  }
  if (!golden.has(group + "/special/y")) return;
  const std::vector<double>& special_y = golden.values(group + "/special/y");
  Args special;
  for (const std::string& name : inputs) special.push_back(leaf(golden, group + "/special/" + name));
  const Tensor out = fn(special);
  expect_close(out, special_y, group.ends_with("elu") || group.ends_with("mish") ? 1 : 0, "special");
  const std::vector<double> values = out.to_vector<double>();
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] == 0 && special_y[i] == 0) {
      EXPECT_EQ(std::signbit(values[i]), std::signbit(special_y[i])) << "special [" << i << "]";
    }
  }
}

std::map<std::string, Fn> rows(int arity, bool compares) {
  std::map<std::string, Fn> out;
#define UNARY(name, ...) \
  if (arity == 1) out[#name] = [](const Args& a) { return outrace::name(a[0]); };
#define BINARY(name, ...) \
  if (arity == 2 && !compares) out[#name] = [](const Args& a) { return outrace::name(a[0], a[1]); };
#define COMPARE(name, ...) \
  if (arity == 2 && compares) out[#name] = [](const Args& a) { return outrace::name(a[0], a[1]); };
#define SELECT(...)
#include "outrace/ops/ops.def"
#undef UNARY
#undef BINARY
#undef COMPARE
#undef SELECT
  return out;
}

TEST(ElementwiseGolden, EveryUnaryRow) {
  const Golden golden("elementwise");
  for (const auto& [name, fn] : rows(1, false)) check(golden, "unary/" + name, {"x"}, fn);
}

TEST(ElementwiseGolden, EveryBinaryRow) {
  const Golden golden("elementwise");
  for (const auto& [name, fn] : rows(2, false))
    if (name != "bce_pointwise")  // PyTorch has it as a loss only: losses.json
      check(golden, "binary/" + name, {"x", "z"}, fn);
}

TEST(ElementwiseGolden, EveryComparison) {
  const Golden golden("elementwise");
  for (const auto& [name, fn] : rows(2, true)) {
    const std::string group = "compare/" + name;
    EXPECT_EQ(fn({leaf(golden, group + "/x"), leaf(golden, group + "/z")}).to_vector<double>(),
              golden.values(group + "/y"))
        << name;
  }
}

TEST(ElementwiseGolden, EveryActivation) {
  const double nan = std::nan("");
  const std::map<std::string, std::pair<std::vector<std::string>, Fn>> cases = {
      {"leaky_relu", {{"x"}, [](const Args& a) { return leaky_relu(a[0], 0.2); }}},
      {"elu", {{"x"}, [](const Args& a) { return elu(a[0], 1.5); }}},
      {"celu", {{"x"}, [](const Args& a) { return celu(a[0], 0.5); }}},
      {"softplus", {{"x"}, [](const Args& a) { return softplus(a[0], 2, 3); }}},
      {"hardtanh", {{"x"}, [](const Args& a) { return hardtanh(a[0], -1, 2); }}},
      {"clamp", {{"x"}, [](const Args& a) { return clamp(a[0], -1, 1.5); }}},
      {"clamp_low", {{"x"}, [](const Args& a) { return clamp(a[0], -1); }}},
      {"clamp_high", {{"x"}, [](const Args& a) { return clamp(a[0], {}, 1.5); }}},
      {"clamp_crossed", {{"x"}, [](const Args& a) { return clamp(a[0], 1, -1); }}},
      {"clamp_nan", {{"x"}, [nan](const Args& a) { return clamp(a[0], nan); }}},
      {"clamp_tensors", {{"x", "low", "high"}, [](const Args& a) { return clamp(a[0], a[1], a[2]); }}},
      {"threshold", {{"x"}, [](const Args& a) { return threshold(a[0], 0.5, -2); }}},
      {"softshrink", {{"x"}, [](const Args& a) { return softshrink(a[0], 0.5); }}},
      {"hardshrink", {{"x"}, [](const Args& a) { return hardshrink(a[0], 0.5); }}},
      {"tanhshrink", {{"x"}, [](const Args& a) { return tanhshrink(a[0]); }}},
      {"prelu", {{"x", "weight"}, [](const Args& a) { return prelu(a[0], a[1]); }}},
      {"prelu_one", {{"x", "weight"}, [](const Args& a) { return prelu(a[0], a[1]); }}},
      {"glu", {{"x"}, [](const Args& a) { return glu(a[0], 1); }}},
      {"lerp", {{"x", "z"}, [](const Args& a) { return lerp(a[0], a[1], 0.3); }}},
      {"lerp_far", {{"x", "z"}, [](const Args& a) { return lerp(a[0], a[1], 0.8); }}},
      {"lerp_tensor", {{"x", "z", "weight"}, [](const Args& a) { return lerp(a[0], a[1], a[2]); }}},
  };
  const Golden golden("activation");
  for (const auto& [name, c] : cases) check(golden, name, c.first, c.second);
  for (const std::string& name : golden.names("")) EXPECT_TRUE(cases.contains(name)) << name << " is not tested";
}

}  // namespace
}  // namespace outrace
