#include "op_cases.h"

#include "outrace/core/random.h"

namespace outrace {
namespace {

using Args = std::span<const Tensor>;

void add_elementwise(std::vector<OpCase>& out) {
  auto unary = [&](const char* op, double low, double high, Tensor (*fn)(At), bool integers) {
    for (const Shape& s : {Shape{3, 4}, Shape{}, Shape{1}, Shape{37}})
      out.push_back({op, cat(op, " ", s), {s}, low, high, [fn](Args a) { return fn(a[0]); }, 8, integers});
    out.push_back(
        {op, cat(op, " transposed"), {{3, 5}}, low, high, [fn](Args a) { return fn(a[0].t()); }, 8, integers});
  };
  auto binary = [&](const char* op, double low, double high, Tensor (*fn)(At, At), bool integers) {
    const std::vector<std::vector<Shape>> shapes = {{{3, 4}, {3, 4}},    {{3, 4}, {4}}, {{3, 1}, {1, 4}},
                                                    {{2, 3, 4}, {3, 1}}, {{}, {5}},     {{1}, {1}}};
    for (const auto& s : shapes)
      out.push_back(
          {op, cat(op, " ", s[0], " ", s[1]), s, low, high, [fn](Args a) { return fn(a[0], a[1]); }, 8, integers});
  };
#define UNARY(name, value, gx, types, autocast, low, high) unary(#name, low, high, name, !detail::types);
#define BINARY(name, value, gx, gz, types, autocast, low, high) \
  binary(#name, low, high, static_cast<Tensor (*)(At, At)>(name), !detail::types);
#define COMPARE(name, value)
#define SELECT(name, value, gz, gw, low, high)                                  \
  out.push_back({#name,                                                         \
                 #name,                                                         \
                 {{3, 4}, {4}},                                                 \
                 low,                                                           \
                 high,                                                          \
                 [](Args a) { return select(a[0] > a[1], a[0] * a[1], a[1]); }, \
                 8,                                                             \
                 true});
#include "outrace/ops/ops.def"
#undef UNARY
#undef BINARY
#undef COMPARE
#undef SELECT
  out.push_back({"cast", "cast f64 -> f64 through reshape", {{4, 3}}, -2, 2, [](Args a) {
                   return cast(a[0], a[0].dtype()).reshape({12}) * 2;
                 }});
}

// Composed from rows; each range lies on one side of a kink or holds none that a random number meets.
void add_activations(std::vector<OpCase>& out) {
  const auto one = [&](const char* op, const char* name, double low, double high, Tensor (*fn)(const Tensor&)) {
    out.push_back({op, name, {{3, 4}}, low, high, [fn](Args a) { return fn(a[0]); }, 8});
  };
  one("selu", "selu of positives", 0.1, 3, [](const Tensor& x) { return selu(x); });
  one("relu6", "relu6 past its bounds", -9, 9, [](const Tensor& x) { return relu6(x); });
  one("hard_sigmoid", "hard_sigmoid past its bounds", -5, 5, [](const Tensor& x) { return hard_sigmoid(x); });
  one("hard_swish", "hard_swish past its bounds", -5, 5, [](const Tensor& x) { return hard_swish(x); });
  one("softsign", "softsign of negatives", -3, -0.2, [](const Tensor& x) { return softsign(x); });
  one("pow", "cube of negatives", -3, -0.5, [](const Tensor& x) { return pow(x, 3); });
  one("pow", "powers of a number", -3, 3, [](const Tensor& x) { return pow(1.5, x); });
  one("select", "leaky_relu", -3, 3, [](const Tensor& x) { return leaky_relu(x, 0.2); });
  one("select", "elu of negatives", -3, -0.1, [](const Tensor& x) { return elu(x, 1.5); });
  one("select", "elu of positives", 0.1, 3, [](const Tensor& x) { return elu(x, 1.5); });
  one("select", "celu of negatives", -3, -0.1, [](const Tensor& x) { return celu(x, 0.7); });
  one("select", "hardtanh", -3, 3, [](const Tensor& x) { return hardtanh(x, -1, 2); });
  one("select", "clamp", -3, 3, [](const Tensor& x) { return clamp(x, -1, 1.5); });
  one("select", "softplus with beta", -3, 3, [](const Tensor& x) { return softplus(x, 2); });
  one("select", "threshold", -3, 3, [](const Tensor& x) { return threshold(x, 0.5, -2); });
  one("select", "softshrink", -3, 3, [](const Tensor& x) { return softshrink(x * x, 0.7); });
  one("select", "hardshrink", -3, 3, [](const Tensor& x) { return hardshrink(x * x, 0.7); });
  one("tanh", "tanhshrink", -3, 3, [](const Tensor& x) { return tanhshrink(x); });
  one("sigmoid", "glu", -3, 3, [](const Tensor& x) { return glu(x); });
  one("add", "lerp", -3, 3, [](const Tensor& x) { return lerp(x, square(x), 0.3); });
  out.push_back({"select", "prelu", {{2, 3, 4}, {3}}, -3, 3, [](Args a) { return prelu(a[0], a[1]); }, 8});
  out.push_back(
      {"select", "clamp to tensors", {{3, 4}, {4}, {}}, -3, 3, [](Args a) { return clamp(a[0], a[1], a[2]); }, 8});
  out.push_back(
      {"select", "lerp by a tensor", {{3, 4}, {4}, {3, 1}}, -3, 3, [](Args a) { return lerp(a[0], a[1], a[2]); }, 32});
}

void add_products(std::vector<OpCase>& out) {
  for (bool ta : {false, true})
    for (bool tb : {false, true})
      for (auto [m, n, k] : {std::array<int64_t, 3>{3, 4, 5}, {1, 7, 2}, {17, 9, 33}, {6, 1, 6}}) {
        const Shape a = ta ? Shape{k, m} : Shape{m, k}, b = tb ? Shape{n, k} : Shape{k, n};
        out.push_back({"matmul",
                       cat("matmul ", a, ta ? "^T " : " ", b, tb ? "^T" : ""),
                       {a, b},
                       -2,
                       2,
                       [ta, tb](Args x) {
                         return matmul(x[0], x[1], {ta, tb});
                       },
                       8.0 * static_cast<double>(k),
                       true});
      }
  out.push_back(
      {"matmul", "matmul batched", {{2, 3, 4}, {2, 4, 5}}, -2, 2, [](Args x) { return matmul(x[0], x[1]); }, 32});
  out.push_back({"matmul",
                 "matmul batch broadcast",
                 {{2, 1, 3, 4}, {3, 4, 2}},
                 -2,
                 2,
                 [](Args x) { return matmul(x[0], x[1]); },
                 32});
  out.push_back({"matmul",
                 "linear with bias and relu",
                 {{4, 6}, {5, 6}, {5}},
                 -2,
                 2,
                 [](Args x) { return relu(linear(x[0], x[1], x[2])); },
                 64});
  out.push_back({"matmul",
                 "matmul of a permuted view",
                 {{4, 3, 2}, {4, 5}},
                 -2,
                 2,
                 [](Args x) {
                   return matmul(x[0].permute({1, 2, 0}), x[1]);
                 },
                 32});
}

void add_movement(std::vector<OpCase>& out) {
  out.push_back({"reshape", "reshape", {{3, 4}}, -2, 2, [](Args a) { return a[0].reshape({2, -1}) * 2; }, 1, true});
  out.push_back({"reshape",
                 "reshape of a transposed view",
                 {{3, 4}},
                 -2,
                 2,
                 [](Args a) { return a[0].t().reshape({12}); },
                 1,
                 true});
  out.push_back({"permute", "permute", {{2, 3, 4}}, -2, 2, [](Args a) { return a[0].permute({2, 0, 1}); }, 1, true});
  out.push_back({"permute", "transpose used twice", {{3, 3}}, -2, 2, [](Args a) { return a[0].t() * a[0]; }, 4, true});
  out.push_back({"expand", "expand", {{3, 1}}, -2, 2, [](Args a) { return expand(a[0], {2, 3, 4}); }, 1, true});
  out.push_back(
      {"slice", "slice", {{5, 6}}, -2, 2, [](Args a) { return a[0].slice(1, 1, 6, 2).slice(0, -3, 5); }, 1, true});
  out.push_back({"slice", "index", {{5, 6}}, -2, 2, [](Args a) { return a[0][2] + a[0][-1]; }, 4, true});
  out.push_back({"pad", "pad", {{2, 3}}, -2, 2, [](Args a) {
                   SliceAttrs to;
                   to.step.fill(1);
                   to.start[1] = 1;
                   to.step[1] = 2;
                   return pad(a[0], {4, 7}, to);
                 }});
  out.push_back(
      {"transfer", "to the same device and back", {{3}}, -2, 2, [](Args a) { return a[0].to(a[0].device()) * 2; }});
}

void add_losses(std::vector<OpCase>& out) {
  for (const Shape& s : {Shape{3, 4}, Shape{5, 1}, Shape{2, 3, 10}, Shape{7}}) {
    out.push_back({"softmax", cat("softmax ", s), {s}, -3, 3, [](Args a) { return softmax(a[0]); }, 32});
    out.push_back({"log_softmax", cat("log_softmax ", s), {s}, -3, 3, [](Args a) { return log_softmax(a[0]); }, 32});
  }
  out.push_back(
      {"softmax", "softmax along the first axis", {{3, 4}}, -3, 3, [](Args a) { return softmax(a[0], 0); }, 32});
  out.push_back({"log_softmax",
                 "log_softmax along a middle axis",
                 {{2, 3, 4}},
                 -3,
                 3,
                 [](Args a) { return log_softmax(a[0], 1); },
                 32});
  for (Reduction r : {Reduction::none, Reduction::mean, Reduction::sum})
    out.push_back({"cross_entropy",
                   cat("cross_entropy ", static_cast<int>(r)),
                   {{4, 5}},
                   -3,
                   3,
                   [r](Args a) {
                     const Tensor target = Tensor::from(std::vector<int64_t>{1, 4, -7, 0}, {4}, a[0].device());
                     return cross_entropy(a[0], target, {.reduction = r, .ignore_index = -7});
                   },
                   64});
}

}  // namespace

std::vector<OpCase> op_cases() {
  std::vector<OpCase> out;
  add_elementwise(out);
  add_activations(out);
  add_reduce_cases(out);
  add_products(out);
  add_movement(out);
  add_losses(out);
  add_normalization_cases(out);
  add_image_cases(out);
  add_index_cases(out);
  return out;
}

std::vector<double> case_values(const OpCase& c, size_t input) {
  std::vector<double> v(static_cast<size_t>(c.inputs[input].numel()));
  for (size_t i = 0; i < v.size(); ++i) v[i] = c.low + (c.high - c.low) * uniform_f64({7, input}, i);
  return v;
}

}  // namespace outrace
