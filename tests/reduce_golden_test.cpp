// Reductions, scans and sorting against PyTorch: values and gradients in f64, and what NaN, infinities and ties give.
#include <gtest/gtest.h>

#include <limits>

#include "outrace/graph/autograd.h"
#include "outrace/ops/ops.h"
#include "tests/golden.h"

namespace outrace {
namespace {

using Function = std::function<Tensor(const Tensor&)>;

const Golden& golden() {
  static const Golden file("reduce");
  return file;
}

Tensor array(const std::string& name) {
  const GoldenArray& a = golden().array(name);
  return Tensor::from(a.values, Shape(std::span<const int64_t>(a.shape)));
}

// "var/1/02" as {"var", "1", "02"}.
std::vector<std::string> parts_of(const std::string& name) {
  std::vector<std::string> out(1);
  for (char c : name)
    if (c == '/')
      out.emplace_back();
    else
      out.back() += c;
  return out;
}

std::vector<int64_t> axes_of(const std::string& digits) {
  std::vector<int64_t> out;
  for (char c : digits) out.push_back(c - '0');
  return out;
}

double number_of(const std::string& text) {
  return text == "inf" ? INFINITY : text == "-inf" ? -INFINITY : std::stod(text);
}

// What the golden file calls `name`.
Function function_of(const std::string& name) {
  const std::vector<std::string> p = parts_of(name);
  const std::string& op = p[0];
  const std::vector<int64_t> axes = axes_of(p.back() == "all" ? "" : p.back());
  const int64_t axis = axes.empty() ? 0 : axes[0];
  if (op == "min") return [=](const Tensor& x) { return min(x, {axes}); };
  if (op == "max") return [=](const Tensor& x) { return max(x, {axes}); };
  if (op == "sum") return [=](const Tensor& x) { return sum(x, {axes}); };
  if (op == "mean") return [=](const Tensor& x) { return mean(x, {axes}); };
  if (op == "prod") return [=](const Tensor& x) { return prod(x, {axes}); };
  if (op == "logsumexp") return [=](const Tensor& x) { return logsumexp(x, {axes}); };
  if (op == "var") return [=](const Tensor& x) { return var(x, {axes, false, std::stoi(p[1])}); };
  if (op == "std") return [=](const Tensor& x) { return outrace::std(x, {axes, false, std::stoi(p[1])}); };
  if (op == "norm") return [=](const Tensor& x) { return norm(x, number_of(p[1]), {axes}); };
  if (op == "cumsum") return [=](const Tensor& x) { return cumsum(x, axis); };
  if (op == "cumprod") return [=](const Tensor& x) { return cumprod(x, axis); };
  if (op == "cummax") return [=](const Tensor& x) { return cummax(x, axis).values; };
  if (op == "cummin") return [=](const Tensor& x) { return cummin(x, axis).values; };
  if (op == "cummax_at") return [=](const Tensor& x) { return cummax(x, axis).indices; };
  if (op == "sort") return [=](const Tensor& x) { return sort(x, axis).values; };
  if (op == "sort_down") return [=](const Tensor& x) { return sort(x, axis, true).values; };
  if (op == "topk") return [=](const Tensor& x) { return topk(x, 2, {.axis = axis}).values; };
  if (op == "smallest") return [=](const Tensor& x) { return topk(x, 2, {axis, false}).values; };
  if (op == "kthvalue") return [=](const Tensor& x) { return kthvalue(x, 2, axis).values; };
  if (op == "median") return [=](const Tensor& x) { return median(x, axis).values; };
  if (op == "max_with_indices") return [=](const Tensor& x) { return max_with_indices(x, axis).values; };
  if (op == "min_with_indices") return [=](const Tensor& x) { return min_with_indices(x, axis).values; };
  if (op == "quantile") return [=](const Tensor& x) { return quantile(x, number_of(p[1]), axis); };
  if (op == "argmax" && p[1] == "all") return [](const Tensor& x) { return argmax(x); };
  if (op == "argmax") return [=](const Tensor& x) { return argmax(x, axis); };
  if (op == "argmin") return [=](const Tensor& x) { return argmin(x, axis); };
  if (op == "argsort") return [=](const Tensor& x) { return argsort(x, axis); };
  if (op == "argsort_down") return [=](const Tensor& x) { return argsort(x, axis, true); };
  if (op == "histogram") return [](const Tensor& x) { return histogram(x, 7, -1.5, 1.25); };
  ADD_FAILURE() << "no function for " << name;
  return [](const Tensor& x) { return x; };
}

// Numbers of the golden file against ours: a few roundings apart.
void expect_equal(const std::vector<double>& got, const std::vector<double>& want, const std::string& name) {
  ASSERT_EQ(got.size(), want.size()) << name;
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(want[i]))
      EXPECT_TRUE(std::isnan(got[i])) << name << " at " << i;
    else if (std::isinf(want[i]))
      EXPECT_EQ(got[i], want[i]) << name << " at " << i;
    else
      EXPECT_NEAR(got[i], want[i], 1e-12 * (1 + std::abs(want[i]))) << name << " at " << i;
  }
}

// All names below a group that end in an array or in a case ("…/y").
void leaves(const std::string& group, const std::string& below, bool cases, std::vector<std::string>& out) {
  for (const std::string& n : golden().names(group)) {
    const std::string path = group + "/" + n, name = below.empty() ? n : below + "/" + n;
    if (golden().has(cases ? path + "/y" : path))
      out.push_back(name);
    else
      leaves(path, name, cases, out);
  }
}

TEST(ReduceGolden, ValuesAndGradients) {
  std::vector<std::string> names;
  leaves("differentiable", "", true, names);
  ASSERT_GT(names.size(), 80u);
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const std::string at = "differentiable/" + name;
    Tensor x = array("x").requires_grad_();
    const Tensor y = function_of(name)(x);
    expect_equal(y.to_vector<double>(), golden().values(at + "/y"), name);
    const Tensor g = Tensor::from(golden().values(at + "/g"), y.shape());
    expect_equal(grad(y, {x}, {}, g)[0].to_vector<double>(), golden().values(at + "/dx"), name + " gradient");
  }
}

TEST(ReduceGolden, Positions) {
  for (const std::string group : {"positions", "special"}) {
    std::vector<std::string> names;
    leaves("positions", "", false, names);
    ASSERT_GT(names.size(), 15u);
    for (const std::string& name : names) {
      if (!golden().has(group + "/" + name)) continue;  // a histogram has no special form
      const Tensor x = array(group == "special" ? "special_x" : "x");
      expect_equal(function_of(name)(x).to_vector<double>(), golden().values(group + "/" + name), group + " " + name);
    }
  }
}

TEST(ReduceGolden, NanAndInfinities) {
  const Tensor x = array("special_x");
  auto check = [&](const char* name, const Tensor& y) {
    expect_equal(y.to_vector<double>(), golden().values(std::string("special/") + name), name);
  };
  check("cumsum", cumsum(x, 2));
  check("cumprod", cumprod(x, 2));
  check("logsumexp", logsumexp(x, {{2}}));
  check("median", median(x, 2).values);
  check("sort", sort(x, 2).values);
  check("max", max_with_indices(x, 2).values);
  check("cummin", cummin(x, 2).values);
  check("quantile", quantile(x.slice(1, 0, 1), 0.4, 2));
}

TEST(ReduceGolden, ProductsOfZeros) {
  for (const std::string name : {"prod_of_zeros", "cumprod_of_zeros"}) {
    Tensor x = array(name + "/x").requires_grad_();
    const Tensor y = name == "prod_of_zeros" ? prod(x, {{1}}) : cumprod(x, 1);
    expect_equal(y.to_vector<double>(), golden().values(name + "/y"), name);
    expect_equal(grad(y, {x}, {}, array(name + "/g"))[0].to_vector<double>(), golden().values(name + "/dx"), name);
  }
}

}  // namespace
}  // namespace outrace
