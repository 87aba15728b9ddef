// Modules: names, hooks, state, modes, containers, the summary; layers against their definitions.
#include <gtest/gtest.h>

#include <cmath>

#include "expect_error.h"
#include "expect_near.h"
#include "outrace/graph/program_cache.h"
#include "outrace/outrace.h"

namespace outrace {
namespace {

using Values = std::vector<double>;

struct Net : nn::Module {
  nn::Linear fc1{4, 3};
  nn::BatchNorm1d norm{3};
  nn::Linear fc2{3, 2};
  Net() {
    register_module("fc1", fc1);
    register_module("norm", norm);
    register_module("fc2", fc2);
  }
  Tensor forward(const Tensor& x) override { return fc2(relu(norm(fc1(x)))); }
};

std::vector<std::string> names_of(const nn::NamedTensors& all) {
  std::vector<std::string> out;
  for (const auto& [name, tensor] : all) out.push_back(name);
  return out;
}

TEST(Module, NamesArePyTorchs) {
  Net net;
  EXPECT_EQ(names_of(net.state_dict()),
            (std::vector<std::string>{"fc1.weight", "fc1.bias", "norm.weight", "norm.bias", "norm.running_mean",
                                      "norm.running_var", "norm.num_batches_tracked", "fc2.weight", "fc2.bias"}));
  EXPECT_EQ(names_of(net.named_buffers()),
            (std::vector<std::string>{"norm.running_mean", "norm.running_var", "norm.num_batches_tracked"}));
  EXPECT_EQ(net.named_parameters().size(), 6u);
  EXPECT_EQ(net.parameter_count(), 4 * 3 + 3 + 3 + 3 + 3 * 2 + 2);
  std::vector<std::string> modules;
  for (const auto& [name, module] : net.named_modules()) modules.push_back(name + ":" + module->type());
  EXPECT_EQ(modules, (std::vector<std::string>{":Net", "fc1:Linear", "norm:BatchNorm1d", "fc2:Linear"}));
}

TEST(Module, StateIsLoadedByNameStrictlyOrNot) {
  Net net;
  nn::NamedTensors state;
  for (const auto& [name, tensor] : net.state_dict()) state.emplace_back(name, full(tensor.shape(), 0.25));
  EXPECT_TRUE(net.load_state_dict(state).missing.empty());
  EXPECT_EQ(net.fc1.weight.to_vector<float>()[0], 0.25f);

  nn::NamedTensors other(state.begin() + 1, state.end());
  for (auto& [name, tensor] : other) tensor = full(tensor.shape(), 0.75);
  other.emplace_back("extra", ones({1}));
  const std::string text = error_of([&] { net.load_state_dict(other); });
  EXPECT_NE(text.find("missing: fc1.weight"), std::string::npos) << text;
  EXPECT_NE(text.find("unexpected: extra"), std::string::npos) << text;
  EXPECT_EQ(net.fc2.weight.to_vector<float>()[0], 0.25f);  // nothing was changed

  const nn::LoadResult result = net.load_state_dict(other, {.strict = false});
  EXPECT_EQ(result.missing, std::vector<std::string>{"fc1.weight"});
  EXPECT_EQ(result.unexpected, std::vector<std::string>{"extra"});
  EXPECT_EQ(net.fc1.weight.to_vector<float>()[0], 0.25f);
  EXPECT_EQ(net.fc2.weight.to_vector<float>()[0], 0.75f);

  other.emplace_back("fc1.weight", ones({3, 3}));
  EXPECT_NE(error_of([&] { net.load_state_dict(other, {.strict = false}); }).find("[3, 3] given, [3, 4] needed"),
            std::string::npos);
}

TEST(Module, HooksSeeAndReplace) {
  nn::Linear layer(2, 2);
  layer.load_state_dict({{"weight", Tensor::from(Values{1, 0, 0, 1}, {2, 2})}, {"bias", zeros({2})}});
  int calls = 0;
  nn::HookHandle before = layer.register_forward_pre_hook([&](nn::Module& m, const Tensor& x) {
    EXPECT_EQ(m.type(), "Linear");
    ++calls;
    return x * 2;
  });
  nn::HookHandle after = layer.register_forward_hook([&](nn::Module&, const Tensor& x, const Tensor& y) {
    EXPECT_EQ(x.to_vector<float>(), y.to_vector<float>());
    ++calls;
    return y + 1;
  });
  nn::HookHandle watcher = layer.register_forward_hook([&](nn::Module&, const Tensor&, const Tensor&) {
    ++calls;
    watcher.remove();
    return Tensor();
  });
  expect_near(layer(ones({1, 2})), {3, 3}, 0);
  EXPECT_EQ(calls, 3);
  expect_near(layer(ones({1, 2})), {3, 3}, 0);
  EXPECT_EQ(calls, 5);
  before.remove();
  before.remove();
  expect_near(layer(ones({1, 2})), {2, 2}, 0);
  after.remove();
  expect_near(layer(ones({1, 2})), {1, 1}, 0);
  nn::HookHandle left =
      nn::Identity().register_forward_hook([](nn::Module&, const Tensor&, const Tensor&) { return Tensor(); });
  left.remove();  // its module is gone
}

TEST(Module, ContainersNameTheirModules) {
  nn::ModuleList list(std::make_shared<nn::Linear>(2, 3), std::make_shared<nn::Linear>(3, 1));
  EXPECT_EQ(names_of(list.state_dict()), (std::vector<std::string>{"0.weight", "0.bias", "1.weight", "1.bias"}));
  EXPECT_EQ(list[1](list[0](ones({5, 2}))).shape(), (Shape{5, 1}));
  EXPECT_NE(error_of([&] { list[2]; }).find("no module 2; there are 2"), std::string::npos);
  EXPECT_NE(error_of([&] { list(ones({1})); }).find("[ModuleList]"), std::string::npos);
  nn::ModuleDict dict;
  dict.add("b", std::make_shared<nn::Linear>(2, 3)).add("a", std::make_shared<nn::ReLU>());
  EXPECT_EQ(names_of(dict.state_dict()), (std::vector<std::string>{"b.weight", "b.bias"}));
  EXPECT_EQ(dict["a"](ones({2})).shape(), (Shape{2}));
  EXPECT_NE(error_of([&] { dict["c"]; }).find("no module 'c'"), std::string::npos);
  EXPECT_NE(error_of([&] { dict.add("a", std::make_shared<nn::ReLU>()); }).find("'a' already"), std::string::npos);
}

TEST(Module, FrozenParametersGetNoGradient) {
  Net net;
  net.fc1.requires_grad_(false);
  sum(net(ones({4, 4}))).backward();
  EXPECT_FALSE(net.fc1.weight.grad().defined());
  EXPECT_TRUE(net.fc2.weight.grad().defined());
}

TEST(Module, SummaryComputesNothing) {
  Net net;
  ProgramCache::global().clear();
  const std::string text = summary(net, {64, 4});
  EXPECT_EQ(ProgramCache::global().compiled(), 0);
  EXPECT_EQ(text,
            "Layer  Type           Output   Parameters\n"
            "(all)  Net            [64, 2]\n"
            "fc1    Linear 4, 3    [64, 3]          15\n"
            "norm   BatchNorm1d 3  [64, 3]           6\n"
            "fc2    Linear 3, 2    [64, 2]           8\n"
            "29 parameters, 29 of them trained; 116 B\n");
  EXPECT_TRUE(net.training());
  EXPECT_EQ(net.norm.num_batches_tracked.item(), 0);
  EXPECT_THROW(summary(net, {64, 5}), Error);
  EXPECT_TRUE(net.norm.training());
}

TEST(Layers, DropoutKeepsAShareAndItsDerivativeTheSame) {
  manual_seed(3);
  nn::Dropout drop(0.3);
  Tensor x = ones({200, 500}).requires_grad_();
  const Tensor y = drop(x);
  sum(y).backward();
  EXPECT_EQ(y.to_vector<float>(), x.grad().to_vector<float>());
  double kept = 0;
  for (const float v : y.to_vector<float>()) {
    EXPECT_TRUE(v == 0 || v == static_cast<float>(1 / 0.7)) << v;
    kept += v != 0;
  }
  EXPECT_NEAR(kept / 100000, 0.7, 5 * std::sqrt(0.21 / 100000));
  EXPECT_NE(drop(x).to_vector<float>(), y.to_vector<float>());
  drop.eval();
  EXPECT_EQ(drop(x).to_vector<float>(), x.to_vector<float>());
  EXPECT_EQ(sum(dropout(x, 1)).item(), 0);
  EXPECT_NE(error_of([&] { dropout(x, 1.5); }).find("1.5"), std::string::npos);
  EXPECT_NE(error_of([] { nn::Dropout(-0.1); }).find("-0.1"), std::string::npos);
}

TEST(Layers, DropoutDrawsAnewAtEachReplay) {
  manual_seed(3);
  const Tensor x = ones({1000});
  auto step = capture([&](const Tensor& a) { return dropout(a); });
  const std::vector<float> first = step(x).to_vector<float>(), second = step(x).to_vector<float>();
  EXPECT_NE(first, second);
  manual_seed(3);
  EXPECT_EQ(dropout(x).to_vector<float>(), first);
  EXPECT_EQ(dropout(x).to_vector<float>(), second);
}

TEST(Layers, Bilinear) {
  nn::Bilinear layer(2, 3, 2);
  const Tensor a = randn({4, 2}), b = randn({4, 3});
  const Values x1 = a.to_vector<double>(), x2 = b.to_vector<double>(), w = layer.weight.to_vector<double>(),
               bias = layer.bias.to_vector<double>();
  Values expected;
  for (int n = 0; n < 4; ++n)
    for (int k = 0; k < 2; ++k) {
      double y = bias[k];
      for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 3; ++j) y += x1[n * 2 + i] * w[(k * 2 + i) * 3 + j] * x2[n * 3 + j];
      expected.push_back(y);
    }
  expect_near(layer(a, b), expected, 1e-5);
  EXPECT_NE(error_of([&] { layer(a, a); }).find("[bilinear]"), std::string::npos);
  EXPECT_NE(error_of([&] { layer.Module::operator()(a); }).find("[Bilinear]"), std::string::npos);
}

// pytorch#1381: one value per channel in training
TEST(BatchNorm, OneValuePerChannelIsAnErrorThatChangesNothing) {
  nn::BatchNorm1d norm(1);
  for (const Tensor& x : {full({1, 1}, 3), full({1, 1, 1}, 3)}) {
    EXPECT_NE(error_of([&] { norm(x); }).find("more than one value per channel"), std::string::npos);
    EXPECT_EQ(norm.running_mean.item(), 0);
    EXPECT_EQ(norm.running_var.item(), 1);
    EXPECT_EQ(norm.num_batches_tracked.item(), 0);
  }
  norm.eval();
  EXPECT_NEAR(norm(full({1, 1}, 3)).item(), 2.9999850, 1e-6);
}

// pytorch#60528, pytorch#19916: biased variance for the output, unbiased for the running one
TEST(BatchNorm, BiasedOutputUnbiasedStatistics) {
  for (const bool captured : {false, true}) {
    nn::BatchNorm1d norm(1);
    const Tensor x = Tensor::from(std::vector<float>{2, 4, 6, 8}, {4, 1});
    auto step = capture([&](const Tensor& a) { return norm(a); });
    expect_near(captured ? step(x) : norm(x), {-1.3416394, -0.4472131, 0.4472131, 1.3416394}, 1e-6);
    EXPECT_NEAR(norm.running_mean.item(), 0.5, 1e-7);
    EXPECT_NEAR(norm.running_var.item(), 1.5666667, 1e-6);
    EXPECT_EQ(norm.num_batches_tracked.item(), 1);
    norm.eval();
    EXPECT_NEAR(norm(full({1, 1}, 5)).item(), 3.5951981, 1e-6);
  }
}

// pytorch#12013: an empty batch
TEST(BatchNorm, EmptyBatch) {
  nn::BatchNorm1d norm(5);
  const Tensor y = norm(zeros({0, 5, 9}));
  EXPECT_EQ(y.shape(), (Shape{0, 5, 9}));
  sum(y).backward();
  expect_near(norm.weight.grad(), Values(5, 0), 0);
  expect_near(norm.bias.grad(), Values(5, 0), 0);
  expect_near(norm.running_mean, Values(5, 0), 0);
  expect_near(norm.running_var, Values(5, 1), 0);
  EXPECT_EQ(norm.num_batches_tracked.item(), 0);
}

// Flux.jl#2715, mxnet#18499: gradients in evaluation, accumulated by a second backward
TEST(BatchNorm, GradientsInEvaluation) {
  Tensor x = full({1, 1}, 3).requires_grad_(), gamma = full({1}, 2).requires_grad_(),
         beta = zeros({1}).requires_grad_();
  for (int pass = 1; pass <= 2; ++pass) {
    const Tensor y = batch_norm(x, full({1}, 1), full({1}, 3), gamma, beta, {.eps = 1});
    EXPECT_EQ(y.item(), 2);
    sum(y).backward();
    for (const Tensor& t : {x, gamma, beta}) EXPECT_EQ(t.grad().item(), pass);
  }
}

// pytorch#21679, flashlight#55: loaded statistics are used; a new module trains
TEST(BatchNorm, LoadedStatistics) {
  for (const bool train : {true, false}) {
    nn::BatchNorm1d norm(2);
    norm.load_state_dict({{"weight", ones({2})},
                          {"bias", full({2}, 3)},
                          {"running_mean", full({2}, 2)},
                          {"running_var", full({2}, 4)},
                          {"num_batches_tracked", zeros({}, {.dtype = DType::i64})}});
    EXPECT_TRUE(norm.training());
    norm.train(train);
    expect_near(norm(ones({1, 2, 4})), Values(8, train ? 3 : 2.5000006), train ? 0 : 1e-6);
    expect_near(norm.running_mean, Values(2, train ? 1.9 : 2), 1e-6);
    expect_near(norm.running_var, Values(2, train ? 3.6 : 4), 1e-6);
  }
}

TEST(Module, HooksOfModulesOfTwoInputsRun) {
  nn::Bilinear layer(2, 3, 2);
  int calls = 0;
  layer.register_forward_hook([&](nn::Module&, const Tensor& x, const Tensor& y) {
    EXPECT_EQ(x.shape(), (Shape{4, 2}));
    EXPECT_EQ(y.shape(), (Shape{4, 2}));
    ++calls;
    return Tensor();
  });
  layer(ones({4, 2}), ones({4, 3}));
  EXPECT_EQ(calls, 1);
}

TEST(Module, ACopiedHandleRemovesNoOtherHook) {
  nn::ReLU layer;
  int calls = 0;
  const auto count = [&](nn::Module&, const Tensor&, const Tensor&) {
    ++calls;
    return Tensor();
  };
  nn::HookHandle first = layer.register_forward_hook(count), copy = first;
  first.remove();
  layer.register_forward_hook(count);
  copy.remove();
  layer(ones({1}));
  EXPECT_EQ(calls, 1);
}

// A captured step sees what modules hold when it is replayed: running statistics, frozen parameters.
TEST(Captured, ReadsCurrentBuffers) {
  nn::BatchNorm1d norm(2);
  norm.eval();
  auto step = capture([&](const Tensor& x) {
    NoGrad off;
    return norm(x);
  });
  const Tensor x = Tensor::from(std::vector<float>{1, 2, 3, 4, 5, 9}, {3, 2});
  EXPECT_EQ(step(x).to_vector<float>(), norm(x).to_vector<float>());
  norm.train();
  norm(x).eval();
  auto training = capture([&](const Tensor& a) { return norm(a); });
  training(x);
  training(x);
  norm.eval();
  EXPECT_EQ(norm.num_batches_tracked.item(), 3);
  EXPECT_EQ(step(x).to_vector<float>(), norm(x).to_vector<float>());
}

TEST(Captured, FreezingIsSeen) {
  nn::Linear layer(2, 1);
  optim::SGD sgd(layer.parameters(), {.lr = 0.1});
  const Tensor x = ones({3, 2});
  auto step = capture([&](const Tensor& a) {
    sgd.zero_grad();
    Tensor loss = sum(layer(a));
    loss.backward();
    sgd.step();
    return loss;
  });
  step(x);
  layer.weight.requires_grad_(false);
  const std::vector<float> frozen = layer.weight.to_vector<float>(), bias = layer.bias.to_vector<float>();
  step(x);
  EXPECT_EQ(layer.weight.to_vector<float>(), frozen);
  EXPECT_NE(layer.bias.to_vector<float>(), bias);
  layer.load_state_dict({{"weight", full({1, 2}, 7)}, {"bias", full({1}, 1)}});
  EXPECT_EQ(step(x).item(), 45);
  // The first recording counts the updates of both alike, which is no longer so.
  layer.weight.requires_grad_(true);
  EXPECT_NE(error_of([&] { step(x); }).find("capture it anew"), std::string::npos);
}

TEST(Captured, InPlaceChangeOfAnArgumentIsRefused) {
  auto bad = capture([](const Tensor& a) {
    Tensor x = a;
    x.add_(1.0);
    return x;
  });
  EXPECT_NE(error_of([&] { bad(full({1}, 1)); }).find("changes its argument 0 in place"), std::string::npos);
  auto good = capture([](const Tensor& a) {
    Tensor h = relu(a), k = relu(a);
    h.add_(1.0);
    k.mul_(2.0);
    return h + k;
  });
  for (const double v : {1.0, 10.0, -3.0}) EXPECT_EQ(good(full({1}, v)).item(), 3 * std::max(v, 0.0) + 1);
}

}  // namespace
}  // namespace outrace
