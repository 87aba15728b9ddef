// Losses: values and gradients equal PyTorch's for every option and reduction; the reports of other frameworks.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "expect_error.h"
#include "expect_near.h"
#include "golden.h"
#include "outrace/outrace.h"

namespace outrace {
namespace {

using Values = std::vector<double>;
constexpr float kInf = std::numeric_limits<float>::infinity();

Tensor tensor(const GoldenArray& a, DType dtype) {
  return Tensor::from(a.values, Shape(std::span<const int64_t>(a.shape))).to(dtype).eval();
}

using LossFn = std::function<Tensor(const Tensor& x, const Tensor& z, const Tensor& w, const std::string& variant,
                                    const std::string& reduction)>;

Reduction reduction_of(const std::string& name) {
  return name == "none" ? Reduction::none : name == "sum" ? Reduction::sum : Reduction::mean;
}

// What each variant of losses.json means here; `file` brings the weights.
std::map<std::string, LossFn> losses(const Golden& file, DType dtype) {
  const Tensor weight = tensor(file.array("weight_values"), dtype);
  const Tensor pos_weight = tensor(file.array("pos_weight_values"), dtype);
  const auto weight_if = [weight](const std::string& variant) { return variant == "weight" ? weight : Tensor(); };
  using S = const std::string&;
  using T = const Tensor&;
  return {
      {"mse_loss", [](T x, T z, T, S, S r) { return mse_loss(x, z, {reduction_of(r)}); }},
      {"l1_loss", [](T x, T z, T, S, S r) { return l1_loss(x, z, {reduction_of(r)}); }},
      {"huber_loss",
       [](T x, T z, T, S v, S r) {
         return huber_loss(x, z, {v == "delta" ? 0.3 : 1, reduction_of(r)});
       }},
      {"smooth_l1_loss",
       [](T x, T z, T, S v, S r) {
         return smooth_l1_loss(x, z, {v == "beta" ? 0.3 : v == "beta_0" ? 0 : 1.0, reduction_of(r)});
       }},
      {"binary_cross_entropy",
       [=](T x, T z, T, S v, S r) {
         return binary_cross_entropy(x, z, {weight_if(v), reduction_of(r)});
       }},
      {"binary_cross_entropy_with_logits",
       [=](T x, T z, T, S v, S r) {
         return binary_cross_entropy_with_logits(
             x, z, {weight_if(v), v == "pos_weight" ? pos_weight : Tensor(), reduction_of(r)});
       }},
      {"kl_div",
       [](T x, T z, T, S, S r) {
         return kl_div(x, z, {false, r == "batchmean", reduction_of(r)});
       }},
      {"kl_div_log",
       [](T x, T z, T, S, S r) {
         return kl_div(x, z, {true, r == "batchmean", reduction_of(r)});
       }},
      {"nll_loss",
       [=](T x, T z, T, S v, S r) {
         return nll_loss(x, z.to(DType::i64), {reduction_of(r), -100, weight_if(v)});
       }},
      {"cross_entropy_images",
       [=](T x, T z, T, S v, S r) {
         return cross_entropy(x, z.to(DType::i64), {reduction_of(r), -100, weight_if(v), v == "weight" ? 0.1 : 0.0});
       }},
      {"cosine_embedding_loss",
       [](T x, T z, T w, S v, S r) {
         return cosine_embedding_loss(x, z, w, {v == "margin" ? 0.2 : 0, reduction_of(r)});
       }},
      {"triplet_margin_loss",
       [](T x, T z, T w, S v, S r) {
         TripletMarginOptions o{.swap = v == "swap", .reduction = reduction_of(r)};
         if (v == "p1") o.p = 1, o.margin = 0.5;
         return triplet_margin_loss(x, z, w, o);
       }},
  };
}

TEST(LossGolden, EveryLossWithItsOptionsEqualsPyTorch) {
  const Golden file("losses");
  for (const DType dtype : {DType::f64, DType::f32}) {
    const double tolerance = dtype == DType::f64 ? 1e-12 : 2e-6;
    const auto known = losses(file, dtype);
    for (const std::string& name : file.names()) {
      if (name.ends_with("_values")) continue;
      ASSERT_TRUE(known.contains(name)) << name;
      for (const std::string& variant : file.names(name))
        for (const std::string& reduction : file.names(name + "/" + variant)) {
          const std::string at = name + "/" + variant + "/" + reduction;
          SCOPED_TRACE(at);
          std::map<std::string, Tensor> in;
          for (const char* letter : {"x", "z", "w"})
            if (file.has(at + "/" + letter)) {
              in[letter] = tensor(file.array(at + "/" + letter), dtype);
              if (file.has(at + "/d" + letter)) in[letter].requires_grad_();
            }
          const Tensor loss = known.at(name)(in["x"], in["z"], in["w"], variant, reduction);
          EXPECT_EQ(loss.shape(), Shape(std::span<const int64_t>(file.array(at + "/y").shape)));
          std::vector<Tensor> leaves;
          std::vector<std::string> letters;
          for (const auto& [letter, t] : in)
            if (t.defined() && t.requires_grad()) leaves.push_back(t), letters.push_back(letter);
          const std::vector<Tensor> g =
              grad(loss, leaves, {.retain_graph = true}, tensor(file.array(at + "/g"), dtype));
          expect_near(loss, file.values(at + "/y"), {tolerance, tolerance});
          for (size_t i = 0; i < g.size(); ++i) {
            SCOPED_TRACE(letters[i]);
            expect_near(g[i], file.values(at + "/d" + letters[i]), {4 * tolerance, 4 * tolerance});
          }
        }
    }
  }
}

TEST(LossGolden, CrossEntropyWithWeightsSmoothingAndProbabilities) {
  const Golden file("cross_entropy");
  for (const DType dtype : {DType::f64, DType::f32}) {
    const Tensor weight = tensor(file.array("weight_values"), dtype);
    for (const std::string& name : file.names()) {
      if (name.ends_with("_value") || name.ends_with("_values")) continue;
      const bool probabilities = name == "probabilities";
      for (const std::string reduction : {"none", "mean", "sum"}) {
        SCOPED_TRACE(name + " " + reduction);
        CrossEntropyOptions o{.reduction = reduction_of(reduction)};
        if (name == "weight" || name == "all") o.weight = weight;
        if (name == "label_smoothing" || name == "all") o.label_smoothing = file.number("smoothing_value");
        Tensor x = tensor(file.array(name + "/x"), dtype).requires_grad_();
        const Tensor target = tensor(file.array(name + "/target"), probabilities ? dtype : DType::i64);
        const Tensor loss = cross_entropy(x, target, o);
        const std::string at = name + "/" + reduction;
        const Tensor g = grad(loss, {x}, {.retain_graph = true}, tensor(file.array(at + "/g"), dtype))[0];
        // Logits of a few hundreds round before the exponential.
        const double tolerance = (dtype == DType::f64 ? 1e-12 : 2e-6) * (name == "large_logits" ? 100 : 1);
        expect_near(loss, file.values(at + "/y"), {tolerance, tolerance});
        expect_near(g, file.values(at + "/dx"), {tolerance, tolerance});
      }
    }
  }
}

// optax#896: a masked class whose target is 0 counts nothing
TEST(LossCases, MaskedClassWithSoftTargetZero) {
  Tensor x = Tensor::from(std::vector<float>{-kInf, 0}, {1, 2}).requires_grad_();
  Tensor loss = cross_entropy(x, Tensor::from(std::vector<float>{0, 1}, {1, 2}));
  loss.backward();
  EXPECT_EQ(loss.item(), 0);
  expect_near(x.grad(), {0, 0}, 0);
  Tensor y = Tensor::from(std::vector<float>{-kInf, 0, 0}, {1, 3}).requires_grad_();
  Tensor half = cross_entropy(y, Tensor::from(std::vector<float>{0, .5, .5}, {1, 3}));
  half.backward();
  EXPECT_NEAR(half.item(), std::log(2.0), 1e-7);
  expect_near(y.grad(), {0, 0, 0}, 1e-7);
  EXPECT_EQ(cross_entropy(x, Tensor::from(std::vector<float>{1, 0}, {1, 2})).item(), kInf);
}

// pytorch#73205, pytorch#91383, pytorch#72056: smoothing leaves ignored rows out
TEST(LossCases, SmoothingSkipsIgnoredRows) {
  const Tensor x = Tensor::from(std::vector<float>{1, 0, 0, 1, 0, 0, 1, 0, 0}, {3, 3});
  const Tensor t = Tensor::from(std::vector<int64_t>{0, 1, -100}, {3});
  for (const bool weighed : {false, true}) {
    CrossEntropyOptions o{.label_smoothing = 0.1};
    if (weighed) o.weight = ones({3});
    o.reduction = Reduction::none;
    expect_near(cross_entropy(x, t, o), {0.6181114, 1.5181114, 0}, 1e-6);
    o.reduction = Reduction::sum;
    EXPECT_NEAR(cross_entropy(x, t, o).item(), 2.1362228, 1e-6);
    o.reduction = Reduction::mean;
    EXPECT_NEAR(cross_entropy(x, t, o).item(), 1.0681114, 1e-6);
  }
}

// tensorflow#8484: a label out of range is an error whatever the options are
TEST(LossCases, LabelsOutOfRange) {
  const Tensor x = Tensor::from(std::vector<float>{0, 1}, {1, 2});
  for (const int64_t label : {int64_t{2}, int64_t{-1}, std::numeric_limits<int64_t>::max()})
    for (const double smoothing : {0.0, 0.1}) {
      const std::string text = error_of([&] {
        cross_entropy(x, Tensor::from(std::vector<int64_t>{label}, {1}), {.label_smoothing = smoothing}).item();
      });
      EXPECT_NE(text.find(std::to_string(label)), std::string::npos) << text;
      EXPECT_NE(text.find('2'), std::string::npos) << text;
    }
  EXPECT_NEAR(cross_entropy(x, Tensor::from(std::vector<int64_t>{1}, {1})).item(), 0.31326169, 1e-6);
}

// pytorch#16413, tensorflow#37770: [N] against [N, 1] does not broadcast
TEST(LossCases, ShapesMustBeEqual) {
  const Tensor x = Tensor::from(std::vector<float>{.1f, .2f, .3f}, {3}), z = x.reshape({3, 1});
  const std::vector<std::function<Tensor(const Tensor&)>> all = {
      [&](const Tensor& t) { return mse_loss(x, t); },
      [&](const Tensor& t) { return l1_loss(x, t); },
      [&](const Tensor& t) { return huber_loss(x, t); },
      [&](const Tensor& t) { return smooth_l1_loss(x, t); },
      [&](const Tensor& t) { return binary_cross_entropy(x, t); },
      [&](const Tensor& t) { return binary_cross_entropy_with_logits(x, t); },
      [&](const Tensor& t) { return kl_div(x, t); }};
  for (const auto& loss : all) {
    const std::string text = error_of([&] { loss(z); });
    EXPECT_NE(text.find("[3] and [3, 1]"), std::string::npos) << text;
    EXPECT_NO_THROW(loss(x).item());
  }
  EXPECT_EQ(mse_loss(x, x).item(), 0);
}

// transformers#34191: sums over micro-batches divided by all tokens equal one batch
TEST(LossCases, AccumulatedSumsEqualOneBatch) {
  const Values a{4, 1, 1, 1};
  Tensor w = Tensor::from(Values{1}, {1}).requires_grad_();
  double accumulated = 0;
  for (const auto& [first, last] : {std::pair{0, 1}, {1, 4}}) {
    const Tensor part = Tensor::from(Values(a.begin() + first, a.begin() + last), {last - first});
    Tensor loss = sum(part * w) / 4;
    loss.backward();
    accumulated += loss.item();
  }
  EXPECT_EQ(accumulated, 1.75);
  EXPECT_EQ(w.grad().item(), 1.75);
}

TEST(LossCases, SaturatedProbabilities) {
  Tensor p = Tensor::from(Values{0, 1, 0, 1}, {4}).requires_grad_();
  const Tensor t = Tensor::from(Values{0, 1, 1, 0}, {4});
  const Tensor loss = binary_cross_entropy(p, t, {.reduction = Reduction::none});
  const Tensor g = grad(loss, {p}, {.retain_graph = true}, ones({4}, {.dtype = DType::f64}))[0];
  expect_near(loss, {0, 0, 100, 100}, 0);
  expect_near(g, {0, 0, -1e12, 1e12}, {1e-12, 1e-12});  // as PyTorch
  const Tensor large = Tensor::from(Values{-1000, 1000, 0}, {3});
  expect_near(
      binary_cross_entropy_with_logits(large, Tensor::from(Values{0, 1, 1}, {3}), {.reduction = Reduction::none}),
      {0, 0, std::log(2.0)}, 1e-15);
}

TEST(LossCases, WrongOptionsAreNamed) {
  const Tensor x = ones({2, 3});
  EXPECT_NE(error_of([&] { huber_loss(x, x, {.delta = 0}); }).find("delta must be positive; got 0"), std::string::npos);
  EXPECT_NE(error_of([&] { smooth_l1_loss(x, x, {.beta = -1}); }).find("-1"), std::string::npos);
  EXPECT_NE(error_of([&] { triplet_margin_loss(x, x, x, {.margin = -2}); }).find("-2"), std::string::npos);
  const Tensor t = Tensor::from(std::vector<int64_t>{0, 1}, {2});
  EXPECT_NE(error_of([&] { cross_entropy(x, t, {.label_smoothing = 1.5}); }).find("1.5"), std::string::npos);
  EXPECT_NE(error_of([&] { cross_entropy(x, t, {.weight = ones({2})}); }).find("[3]"), std::string::npos);
  EXPECT_NE(error_of([&] { cosine_embedding_loss(x, x, ones({3})); }).find("[2]"), std::string::npos);
  EXPECT_NE(error_of([&] { mse_loss(x, x.to(DType::f64)); }).find("f64"), std::string::npos);
}

TEST(LossCases, IgnoredRowsOfInfinitiesInBothGradients) {
  for (const bool again : {false, true}) {
    Tensor x = Tensor::from(std::vector<float>{1, 2, -kInf, -kInf}, {2, 2}).requires_grad_();
    const Tensor loss = cross_entropy(x, Tensor::from(std::vector<int64_t>{0, -100}, {2}));
    const std::vector<float> g = grad(loss, {x}, {.create_graph = again})[0].to_vector<float>();
    EXPECT_EQ(g[2], 0);
    EXPECT_EQ(g[3], 0);
  }
}

}  // namespace
}  // namespace outrace
