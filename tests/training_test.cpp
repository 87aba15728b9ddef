// Training equals PyTorch's, step by step, and does not depend on threads, instruction set's width aside, capture or
// flushes.
#include <gtest/gtest.h>

#include "golden.h"
#include "outrace/core/cpu_info.h"
#include "outrace/core/thread.h"
#include "outrace/graph/program_cache.h"
#include "outrace/outrace.h"

namespace outrace {
namespace {

enum class Loop { plain, item, captured, kept };

struct Net : nn::Module {
  std::vector<std::unique_ptr<nn::Linear>> layers;
  bool use_tanh = false;
  Net(const std::vector<int64_t>& sizes, bool tanh_net, DType dtype) : use_tanh(tanh_net) {
    for (size_t i = 0; i + 1 < sizes.size(); ++i) {
      layers.push_back(std::make_unique<nn::Linear>(sizes[i], sizes[i + 1], nn::LinearOptions{.dtype = dtype}));
      register_module(std::to_string(i), *layers.back());
    }
  }
  Tensor forward(const Tensor& x) override {
    Tensor y = x;
    for (size_t i = 0; i < layers.size(); ++i) {
      y = (*layers[i])(y);
      if (i + 1 < layers.size()) y = use_tanh ? tanh(y) : relu(y);
    }
    return y;
  }
};

std::unique_ptr<optim::Optimizer> make_optimizer(const std::string& name, std::vector<Tensor> p) {
  if (name == "sgd") return std::make_unique<optim::SGD>(std::move(p), optim::SGDOptions{.lr = 0.1});
  if (name == "sgd_momentum_decay")
    return std::make_unique<optim::SGD>(std::move(p),
                                        optim::SGDOptions{.lr = 0.1, .momentum = 0.9, .weight_decay = 1e-2});
  if (name == "adam") return std::make_unique<optim::Adam>(std::move(p), optim::AdamOptions{.lr = 1e-2});
  if (name == "adam_decay")
    return std::make_unique<optim::Adam>(std::move(p), optim::AdamOptions{.lr = 1e-2, .weight_decay = 1e-2});
  if (name == "adamw")
    return std::make_unique<optim::AdamW>(std::move(p), optim::AdamWOptions{.lr = 1e-2, .weight_decay = 1e-2});
  throw std::runtime_error("no optimizer " + name);
}

class GoldenTraining : public testing::TestWithParam<std::string> {};

TEST_P(GoldenTraining, TwentyStepsEqualPyTorch) {
  const Golden g(GetParam());
  const GoldenArray& inputs = g.array("inputs");
  const int64_t batch = inputs.shape[1];
  for (const std::string& name : g.names()) {
    if (!g.has(name + "/f32/losses")) continue;
    for (DType dtype : {DType::f32, DType::f64}) {
      SCOPED_TRACE(cat(name, " ", name_of(dtype)));
      std::vector<int64_t> sizes{inputs.shape[2]};
      for (int i = 0; g.has(cat("start/", i, ".bias")); ++i)
        sizes.push_back(g.array(cat("start/", i, ".bias")).shape[0]);
      Net net(sizes, GetParam() == "train_tanh", dtype);
      nn::NamedTensors start;
      for (const auto& [key, tensor] : net.state_dict()) {
        const GoldenArray& a = g.array("start/" + key);
        start.emplace_back(key, Tensor::from(a.values, Shape(std::span<const int64_t>(a.shape))).to(dtype));
      }
      net.load_state_dict(start);
      auto optimizer = make_optimizer(name, net.parameters());
      const Tensor x = Tensor::from(inputs.values, Shape(std::span<const int64_t>(inputs.shape))).to(dtype).eval();
      const std::vector<double>& labels = g.values("targets");
      const std::vector<int64_t> ids(labels.begin(), labels.end());
      const Tensor t = Tensor::from(ids, {inputs.shape[0], batch});
      const std::string key = cat(name, "/", name_of(dtype));
      const std::vector<double>& expected = g.values(key + "/losses");
      const double tolerance = dtype == DType::f32 ? 1e-6 : 1e-10;
      for (size_t i = 0; i < expected.size(); ++i) {
        optimizer->zero_grad();
        Tensor loss = cross_entropy(net(x[static_cast<int64_t>(i)]), t[static_cast<int64_t>(i)]);
        loss.backward();
        optimizer->step();
        ASSERT_NEAR(loss.item(), expected[i], tolerance * expected[i]) << "step " << i;
      }
      for (const auto& [parameter, tensor] : net.state_dict()) {
        const std::vector<double>& end = g.values(key + "/end/" + parameter);
        const std::vector<double> ours = tensor.to_vector<double>();
        for (size_t i = 0; i < end.size(); ++i)
          ASSERT_NEAR(ours[i], end[i], 20 * tolerance * (1 + std::abs(end[i]))) << parameter;
      }
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Networks, GoldenTraining, testing::Values("train_relu", "train_tanh"),
                         [](const auto& info) { return info.param; });

struct Outcome {
  std::vector<double> losses;
  std::vector<double> weights;
  int64_t programs = 0;
};

Outcome train(Loop loop, const std::vector<int64_t>& sizes, int64_t batch, int steps,
              const std::string& optimizer_name) {
  manual_seed(11);
  Net net(sizes, false, DType::f32);
  auto optimizer = make_optimizer(optimizer_name, net.parameters());
  const Tensor x = randn({steps, batch, sizes.front()}).eval();
  const Tensor t = randint(0, sizes.back(), {steps, batch}).eval();
  ProgramCache::global().clear();
  auto step = [&](const Tensor& inputs, const Tensor& labels) {
    optimizer->zero_grad();
    Tensor outputs = net(inputs);
    Tensor loss = cross_entropy(outputs, labels);
    double early = 0;
    if (loop == Loop::item) early = loss.item();
    loss.backward();
    optimizer->step({.keep_grads = loop == Loop::kept});
    if (loop == Loop::item) {
      EXPECT_EQ(early, loss.item());
    }
    return loss;
  };
  auto captured = capture([&](const Tensor& a, const Tensor& b) { return step(a, b); });
  Outcome out;
  for (int i = 0; i < steps; ++i) {
    const Tensor loss = loop == Loop::captured ? captured(x[i], t[i]) : step(x[i], t[i]);
    out.losses.push_back(loss.item());
  }
  out.programs = ProgramCache::global().compiled();
  for (const Tensor& p : net.parameters())
    for (float v : p.to_vector<float>()) out.weights.push_back(v);
  return out;
}

class TrainingBits : public testing::TestWithParam<std::string> {};

TEST_P(TrainingBits, AreTheSameHoweverTheLoopIsWritten) {
  const std::vector<int64_t> sizes{100, 70, 40, 10};
  const Outcome plain = train(Loop::plain, sizes, 24, 12, GetParam());
  for (Loop loop : {Loop::item, Loop::captured, Loop::kept}) {
    const Outcome other = train(loop, sizes, 24, 12, GetParam());
    EXPECT_EQ(plain.losses, other.losses) << static_cast<int>(loop);
    EXPECT_EQ(plain.weights, other.weights) << static_cast<int>(loop);
    EXPECT_LE(other.programs, 2) << static_cast<int>(loop);
  }
  EXPECT_EQ(plain.programs, 1);
}

TEST_P(TrainingBits, AreTheSameForAnyThreadCountOnEachInstructionSet) {
  const int before = num_threads();
  const Isa isa = active_isa();
  for (Isa each : {Isa::avx2, Isa::avx512}) {
    if (!cpu_info().supports(each)) continue;
    set_active_isa(each);
    set_num_threads(1);
    const Outcome one = train(Loop::plain, {1000, 512, 10}, 64, 5, GetParam());
    set_num_threads(2);
    const Outcome two = train(Loop::plain, {1000, 512, 10}, 64, 5, GetParam());
    EXPECT_EQ(one.losses, two.losses);
    EXPECT_EQ(one.weights, two.weights);
  }
  set_active_isa(isa);
  set_num_threads(before);
}
INSTANTIATE_TEST_SUITE_P(Optimizers, TrainingBits, testing::Values("sgd", "sgd_momentum_decay", "adam", "adamw"),
                         [](const auto& info) { return info.param; });

TEST(Training, AThousandStepsMakeAtMostTwoPrograms) {
  EXPECT_LE(train(Loop::plain, {16, 32, 4}, 32, 1000, "adam").programs, 2);
  EXPECT_LE(train(Loop::item, {16, 32, 4}, 32, 1000, "adam").programs, 2);
  EXPECT_LE(train(Loop::captured, {16, 32, 4}, 32, 1000, "adam").programs, 2);
}

TEST(Training, ValuesHeldAcrossStepsStayRight) {
  manual_seed(3);
  Net net({20, 16, 5}, false, DType::f32);
  optim::Adam optimizer(net.parameters());
  const Tensor x = randn({6, 8, 20}).eval();
  const Tensor t = randint(0, 5, {6, 8}).eval();
  std::vector<Tensor> losses;
  std::vector<double> loss_values;
  const Tensor old_weight = net.parameters()[0].detach();
  const std::vector<float> old_values = old_weight.to_vector<float>();
  Tensor gradient;
  std::vector<float> gradient_values;
  for (int i = 0; i < 6; ++i) {
    optimizer.zero_grad();
    Tensor loss = cross_entropy(net(x[i]), t[i]);
    loss.backward();
    if (i == 1) gradient = net.parameters()[0].grad();
    optimizer.step();
    if (i == 1) gradient_values = gradient.to_vector<float>();
    losses.push_back(loss);
    loss_values.push_back(loss.item());
  }
  for (size_t i = 0; i < losses.size(); ++i) EXPECT_EQ(losses[i].item(), loss_values[i]);
  EXPECT_EQ(old_weight.to_vector<float>(), old_values);
  EXPECT_NE(net.parameters()[0].to_vector<float>(), old_values);
  EXPECT_EQ(gradient.to_vector<float>(), gradient_values);
}

TEST(Training, AccumulationEqualsOneBatch) {
  const Tensor x = Tensor::from(std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8}, {4, 2});
  Tensor w = Tensor::from(std::vector<double>{0.5, -0.25, 1, 2}, {2, 2}).requires_grad_();
  auto loss = [&](const Tensor& rows) { return sum(square(linear(rows, w))) / 4; };
  loss(x).backward();
  const std::vector<double> whole = w.grad().to_vector<double>();
  w.zero_grad();
  ProgramCache::global().clear();
  for (int i = 0; i < 4; ++i) loss(x.slice(0, i, i + 1)).backward();
  const std::vector<double> parts = w.grad().to_vector<double>();
  for (size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(whole[i], parts[i], 1e-12 * std::abs(whole[i]));
  EXPECT_LE(ProgramCache::global().compiled(), 3);
}

TEST(Training, AFailedStepChangesNothingAndTheNextWorks) {
  manual_seed(5);
  Net net({6, 4, 3}, false, DType::f32);
  optim::Adam optimizer(net.parameters());
  const Tensor x = randn({4, 6}).eval();
  auto step = [&](std::vector<int64_t> labels) {
    optimizer.zero_grad();
    Tensor loss = cross_entropy(net(x), Tensor::from(labels, {4}));
    loss.backward();
    optimizer.step();
    return loss.item();
  };
  step({0, 1, 2, 0});
  const std::vector<float> before = net.parameters()[0].to_vector<float>();
  for (int64_t bad : {int64_t{3}, int64_t{-1}, INT64_MAX}) {
    try {
      step({0, 1, bad, 0});
      FAIL() << "label " << bad << " was accepted";
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(std::to_string(bad)), std::string::npos) << e.what();
      EXPECT_NE(std::string(e.what()).find("3"), std::string::npos) << e.what();
    }
    EXPECT_EQ(net.parameters()[0].to_vector<float>(), before);
    EXPECT_EQ(optimizer.steps(), 1);
  }
  EXPECT_TRUE(std::isfinite(step({0, 1, 2, 0})));
  EXPECT_NE(net.parameters()[0].to_vector<float>(), before);
}

// Nobody holds the loss: the lookup itself is not run, and its derivative alone sees the wrong index.
TEST(Training, AWrongIndexOfALossNobodyHoldsChangesNothing) {
  Tensor a = full({4, 2}, 1).requires_grad_(), b = full({4, 2}, 1).requires_grad_();
  optim::SGD sgd({a, b}, {.lr = 1});
  const Tensor good = Tensor::from(std::vector<int64_t>{0, 1}, {2}),
               bad = Tensor::from(std::vector<int64_t>{0, 9}, {2});
  (sum(embedding(a, good)) + sum(embedding(b, bad))).backward();
  EXPECT_THROW(sgd.step(), Error);
  EXPECT_EQ(a.to_vector<float>(), std::vector<float>(8, 1));
  EXPECT_EQ(b.to_vector<float>(), std::vector<float>(8, 1));
  EXPECT_EQ(sgd.steps(), 0);
}

}  // namespace
}  // namespace outrace
