// Layers equal PyTorch's: output, gradients of input and parameters, buffers after a step, output in evaluation.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "expect_near.h"
#include "golden.h"
#include "outrace/outrace.h"

namespace outrace {
namespace {

Tensor tensor(const GoldenArray& a, DType dtype = DType::f64) {
  return Tensor::from(a.values, Shape(std::span<const int64_t>(a.shape))).to(dtype).eval();
}

struct Case {
  std::shared_ptr<nn::Module> layer;
  std::function<Tensor(const std::vector<Tensor>&)> call;
};

template <class M, class... Args>
Case of(Args&&... args) {
  auto layer = std::make_shared<M>(std::forward<Args>(args)...);
  return {layer, [layer](const std::vector<Tensor>& x) { return (*layer)(x[0]); }};
}

std::map<std::string, Case> cases() {
  constexpr DType f64 = DType::f64;
  auto bilinear = std::make_shared<nn::Bilinear>(4, 3, 2, nn::LinearOptions{.dtype = f64});
  return {
      {"linear", of<nn::Linear>(4, 3, nn::LinearOptions{.dtype = f64})},
      {"linear_without_bias", of<nn::Linear>(4, 3, nn::LinearOptions{.bias = false, .dtype = f64})},
      {"bilinear", {bilinear, [bilinear](const std::vector<Tensor>& x) { return (*bilinear)(x[0], x[1]); }}},
      {"embedding", of<nn::Embedding>(6, 3, nn::EmbeddingOptions{.dtype = f64})},
      {"embedding_padding", of<nn::Embedding>(6, 3, nn::EmbeddingOptions{.padding_idx = -1, .dtype = f64})},
      {"layer_norm", of<nn::LayerNorm>(Shape{3, 4}, nn::LayerNormOptions{.dtype = f64})},
      {"layer_norm_without_bias", of<nn::LayerNorm>(Shape{4}, nn::LayerNormOptions{.bias = false, .dtype = f64})},
      {"layer_norm_plain",
       of<nn::LayerNorm>(Shape{4}, nn::LayerNormOptions{.eps = 1e-2, .affine = false, .dtype = f64})},
      {"rms_norm", of<nn::RMSNorm>(Shape{4}, nn::RMSNormOptions{.dtype = f64})},
      {"group_norm", of<nn::GroupNorm>(2, 4, nn::GroupNormOptions{.dtype = f64})},
      {"batch_norm", of<nn::BatchNorm1d>(3, nn::BatchNormOptions{.dtype = f64})},
      {"batch_norm_3d", of<nn::BatchNorm1d>(3, nn::BatchNormOptions{.eps = 1e-3, .momentum = 0.3, .dtype = f64})},
      {"batch_norm_plain", of<nn::BatchNorm1d>(3, nn::BatchNormOptions{.affine = false, .dtype = f64})},
      {"prelu", of<nn::PReLU>(3, 0.25, CreateOptions{.dtype = f64})},
      {"glu", of<nn::GLU>(1)},
  };
}

TEST(LayerGolden, EveryLayerEqualsPyTorch) {
  const Golden file("layers");
  const auto known = cases();
  for (const std::string& name : file.names()) {
    SCOPED_TRACE(name);
    ASSERT_TRUE(known.contains(name));
    const Case& c = known.at(name);
    nn::NamedTensors state;
    for (const std::string& key : file.names(name + "/state"))
      state.emplace_back(key, tensor(file.array(name + "/state/" + key)));
    c.layer->load_state_dict(state);
    std::vector<Tensor> x;
    for (int i = 0; file.has(cat(name, "/x", i)); ++i) {
      const bool index = !file.has(cat(name, "/dx", i));
      x.push_back(tensor(file.array(cat(name, "/x", i)), index ? DType::i64 : DType::f64));
      if (!index) x.back().requires_grad_();
    }
    const Tensor y = c.call(x);
    sum(y * tensor(file.array(name + "/g"))).backward();
    expect_near(y, file.values(name + "/y"), {1e-12, 1e-12}, "output");
    for (size_t i = 0; i < x.size(); ++i)
      if (x[i].requires_grad())
        expect_near(x[i].grad(), file.values(cat(name, "/dx", i)), {1e-12, 1e-12}, cat("input ", i));
    for (const auto& [key, p] : c.layer->named_parameters())
      expect_near(p.grad(), file.values(name + "/gradients/" + key), {1e-12, 1e-12}, key);
    for (const auto& [key, buffer] : c.layer->named_buffers())
      expect_near(buffer, file.values(name + "/after/" + key), {1e-12, 1e-12}, key);
    if (file.has(name + "/evaluated")) {
      c.layer->eval();
      expect_near(c.call(x), file.values(name + "/evaluated"), {1e-12, 1e-12}, "evaluated");
    }
  }
}

// pytorch#6411, pytorch#1812: padding keeps the gradient away, not the value
TEST(EmbeddingCases, PaddingRowIsLookedUpAndNotTrained) {
  nn::Embedding layer(3, 2, {.padding_idx = 0});
  EXPECT_EQ(layer.weight.slice(0, 0, 1).to_vector<float>(), (std::vector<float>{0, 0}));
  layer.load_state_dict({{"weight", full({3, 2}, 5)}});
  optim::SGD sgd(layer.parameters(), {.lr = 1});
  const Tensor y = layer(Tensor::from(std::vector<int64_t>{0, 1, 1}, {3}));
  sum(y).backward();
  EXPECT_EQ(layer.weight.grad().to_vector<float>(), (std::vector<float>{0, 0, 2, 2, 0, 0}));
  sgd.step();
  EXPECT_EQ(y.to_vector<float>(), std::vector<float>(6, 5));
  EXPECT_EQ(layer.weight.to_vector<float>(), (std::vector<float>{5, 5, 3, 3, 5, 5}));
}

// fairseq#4076: no padding zeroes nothing, -1 is the last row, others are errors
TEST(EmbeddingCases, PaddingIndexAbsentOrNegative) {
  const std::vector<float> all = sum(abs(nn::Embedding(4, 4).weight), {{1}}).to_vector<float>();
  for (const float row : all) EXPECT_GT(row, 0);
  const std::vector<float> last = sum(abs(nn::Embedding(4, 4, {.padding_idx = -1}).weight), {{1}}).to_vector<float>();
  EXPECT_EQ(last[3], 0);
  EXPECT_GT(last[0], 0);
  EXPECT_THROW(nn::Embedding(4, 4, {.padding_idx = 4}), Error);
  EXPECT_THROW(nn::Embedding(4, 4, {.padding_idx = -5}), Error);
  nn::Embedding layer(4, 4);
  for (const int64_t index : {int64_t{-1}, int64_t{4}})
    EXPECT_THROW(layer(Tensor::from(std::vector<int64_t>{index}, {1})).eval(), Error);
}

}  // namespace
}  // namespace outrace
