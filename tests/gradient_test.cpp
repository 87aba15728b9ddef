// Every differentiable op: derivative against central differences in float64, and the same of its gradient.
#include <gtest/gtest.h>

#include <set>

#include "op_cases.h"
#include "outrace/graph/autograd.h"
#include "outrace/ops/op_def.h"

namespace outrace {
namespace {

// PyTorch's gradcheck figures.
constexpr double kStep = 1e-6, kAbsolute = 1e-5, kRelative = 1e-3;

std::vector<Tensor> inputs_of(const OpCase& c) {
  std::vector<Tensor> out;
  for (size_t i = 0; i < c.inputs.size(); ++i) out.push_back(Tensor::from(case_values(c, i), c.inputs[i]));
  return out;
}

// One number that depends on every element of the result, each with its own weight.
Tensor weighed(const Tensor& y) {
  std::vector<double> w(static_cast<size_t>(y.numel()));
  for (size_t i = 0; i < w.size(); ++i) w[i] = 0.3 + 0.1 * static_cast<double>(i % 7);
  return sum(y * Tensor::from(w, y.shape()));
}

void check(const std::vector<Tensor>& x, const std::function<Tensor(std::span<const Tensor>)>& f,
           const std::vector<Tensor>& gradients, const std::string& what) {
  for (size_t k = 0; k < x.size(); ++k) {
    const std::vector<double> at = x[k].to_vector<double>();
    const std::vector<double> analytic =
        gradients[k].defined() ? gradients[k].to_vector<double>() : std::vector<double>(at.size(), 0);
    const size_t stride = at.size() > 40 ? at.size() / 20 : 1;  // of large inputs some elements
    for (size_t i = 0; i < at.size(); i += stride) {
      auto value = [&](double d) {
        std::vector<Tensor> moved = x;
        std::vector<double> v = at;
        v[i] += d;
        moved[k] = Tensor::from(v, x[k].shape());
        return f(moved).item();
      };
      const double numeric = (value(kStep) - value(-kStep)) / (2 * kStep);
      ASSERT_NEAR(analytic[i], numeric, kAbsolute + kRelative * std::abs(numeric))
          << what << ", input " << k << ", element " << i;
    }
  }
}

TEST(Gradient, EveryOpAgainstFiniteDifferences) {
  for (const OpCase& c : op_cases()) {
    SCOPED_TRACE(c.name);
    std::vector<Tensor> x = inputs_of(c);
    for (Tensor& t : x) t.requires_grad_();
    const std::vector<Tensor> g = grad(weighed(c.apply(x)), x);
    std::vector<Tensor> plain;
    for (const Tensor& t : x) plain.push_back(t.detach());
    check(
        plain, [&](std::span<const Tensor> a) { return weighed(c.apply(a)); }, g, c.name);
  }
}

TEST(Gradient, GradientsOfGradientsAgainstFiniteDifferences) {
  for (const OpCase& c : op_cases()) {
    SCOPED_TRACE(c.name);
    if (c.inputs[0].numel() > 40) continue;
    auto first = [&](std::span<const Tensor> a, bool again) {
      std::vector<Tensor> x(a.begin(), a.end());
      if (!again)
        for (Tensor& t : x) t = t.detach().requires_grad_();
      Tensor total;
      for (const Tensor& g : grad(weighed(c.apply(x)), x, {.create_graph = true}))
        if (g.defined()) total = total.defined() ? total + weighed(square(g)) : weighed(square(g));
      return total.defined() ? total : Tensor::from(std::vector<double>{0}, {});
    };
    std::vector<Tensor> x = inputs_of(c);
    for (Tensor& t : x) t.requires_grad_();
    const Tensor y = first(x, true);
    std::vector<Tensor> g(x.size());
    if (y.requires_grad()) g = grad(y, x);
    std::vector<Tensor> plain;
    for (const Tensor& t : x) plain.push_back(t.detach());
    check(
        plain, [&](std::span<const Tensor> a) { return first(a, false); }, g, c.name);
  }
}

TEST(Gradient, EveryDifferentiableOpHasACase) {
  std::set<std::string> covered;
  for (const OpCase& c : op_cases()) covered.insert(c.op);
  for (const OpDef* op : all_ops()) {
    if (op->derivative) {
      EXPECT_TRUE(covered.contains(op->name)) << "add a case for '" << op->name << "' to tests/op_cases.cpp";
    }
  }
}

// The decomposition is the reference of the kernel: both in float64, within a few roundings.
TEST(Gradient, DecompositionsEqualKernels) {
  const Tensor x = Tensor::from(case_values({"", "", {{6, 5}}, -3, 3, {}}, 0), {6, 5});
  const Tensor t = Tensor::from(std::vector<int64_t>{0, 4, -100, 2, 1, 1}, {6});
  for (const OpDef* op : {&kSoftmax, &kLogSoftmax}) {
    const std::vector<Tensor> in{x};
    const Tensor reference = op->decompose(in, NoAttrs{});
    const std::vector<double> a = reference.to_vector<double>();
    const auto b = (op == &kSoftmax ? softmax(x) : log_softmax(x)).to_vector<double>();
    for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-14) << op->name;
  }
  for (Reduction r : {Reduction::none, Reduction::mean, Reduction::sum}) {
    const CrossEntropyAttrs attrs{r, -100};
    const std::vector<Tensor> in{x, t};
    const Tensor in_ops = kCrossEntropy.decompose(in, attrs);
    const std::vector<double> a = in_ops.to_vector<double>();
    const auto b = cross_entropy(x, t, {r, -100}).to_vector<double>();
    for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-13);
    Tensor leaf = x.detach() * 1;
    leaf.eval();
    leaf.requires_grad_();
    const Tensor up = ones(r == Reduction::none ? Shape{6} : Shape{}, {.dtype = DType::f64});
    const auto kernel = grad(cross_entropy(leaf, t, {r, -100}), {leaf}, {}, up)[0].to_vector<double>();
    const std::vector<Tensor> gin{x, t, up};
    const Tensor gradient = kCrossEntropyGrad.decompose(gin, attrs);
    const std::vector<double> reference = gradient.to_vector<double>();
    for (size_t i = 0; i < kernel.size(); ++i) EXPECT_NEAR(kernel[i], reference[i], 1e-14);
  }
}

}  // namespace
}  // namespace outrace
