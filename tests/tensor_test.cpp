// Semantics of tensors: when things run, what is shared, what errors say.
#include <gtest/gtest.h>

#include <thread>

#include "expect_error.h"
#include "outrace/graph/program_cache.h"
#include "outrace/graph/recorder.h"
#include "outrace/outrace.h"

namespace outrace {
namespace {

using Values = std::vector<double>;

Tensor matrix(const Values& v, const Shape& s) { return Tensor::from(v, s); }

TEST(Tensor, NothingRunsBeforeItIsAsked) {
  const Tensor x = matrix({1, 2, 3, 4}, {2, 2});
  const Tensor y = x * 3 + 1;
  EXPECT_FALSE(y.computed());
  EXPECT_EQ(y.to_vector<double>(), (Values{4, 7, 10, 13}));
  EXPECT_TRUE(y.computed());
}

TEST(Tensor, EqualExpressionsAreOneNode) {
  const Tensor x = matrix({1, 2}, {2});
  EXPECT_EQ(exp(x).node_ptr(), exp(x).node_ptr());
  EXPECT_NE(rand({2}).node_ptr(), rand({2}).node_ptr());
}

TEST(Tensor, CopiesShareAndViewsNeverAlias) {
  Tensor x = matrix({1, 2, 3, 4}, {2, 2});
  const Tensor same = x;
  const Tensor row = x[1];
  const Tensor flat = x.reshape({4});
  x += matrix({10, 10, 10, 10}, {2, 2});
  EXPECT_EQ(same.to_vector<double>(), (Values{11, 12, 13, 14}));
  EXPECT_EQ(row.to_vector<double>(), (Values{3, 4}));
  EXPECT_EQ(flat.to_vector<double>(), (Values{1, 2, 3, 4}));
}

// Case P-044: in place through a repeated view cannot happen, since views never alias.
TEST(Tensor, InPlaceOnARepeatedView) {
  const Tensor x = matrix({2}, {1});
  Tensor wide = expand(x, {3});
  wide *= matrix({3}, {1});
  EXPECT_EQ(wide.to_vector<double>(), (Values{6, 6, 6}));
  EXPECT_EQ(x.to_vector<double>(), (Values{2}));
}

// Case P-047: the gradient of a broadcast is summed back.
TEST(Tensor, GradientThroughABroadcast) {
  Tensor a = matrix({1, 2, 3}, {3, 1}).requires_grad_();
  Tensor b = matrix({1, 2}, {2}).requires_grad_();
  Tensor c = matrix({5}, {}).requires_grad_();
  sum(a * b + c).backward();
  EXPECT_EQ(a.grad().to_vector<double>(), (Values{3, 3, 3}));
  EXPECT_EQ(b.grad().to_vector<double>(), (Values{6, 6}));
  EXPECT_EQ(c.grad().to_vector<double>(), (Values{6}));
}

TEST(Tensor, EmptyAndScalarShapes) {
  const Tensor empty = zeros({0, 3});
  EXPECT_EQ((empty * 2 + 1).to_vector<float>().size(), 0u);
  EXPECT_EQ(sum(empty).item(), 0);
  EXPECT_TRUE(std::isnan(mean(empty).item()));
  EXPECT_EQ(sum(empty, {{0}}).to_vector<float>(), (std::vector<float>{0, 0, 0}));
  EXPECT_EQ(matmul(zeros({2, 0}), zeros({0, 3})).to_vector<float>(), std::vector<float>(6, 0));
  EXPECT_EQ(softmax(zeros({0, 4})).to_vector<float>().size(), 0u);
  EXPECT_EQ(linear(zeros({0, 4}), zeros({2, 4})).shape(), (Shape{0, 2}));
  const Tensor s = matrix({3}, {});
  EXPECT_EQ((s * s).item(), 9);
  EXPECT_EQ(sum(s).item(), 3);
  EXPECT_NE(error_of([&] { max(empty); }).find("[max]"), std::string::npos);
}

TEST(Tensor, ThreeWaysToAskMidway) {
  Tensor w = matrix({2}, {1}).requires_grad_();
  Tensor loss = sum(exp(w) * w);
  const double before = loss.item();
  if (!std::isfinite(before)) FAIL();
  loss.backward();
  const double gradient = w.grad().to_vector<double>()[0];
  EXPECT_NEAR(gradient, 3 * std::exp(2.0), 1e-12);
  EXPECT_EQ(loss.item(), before);
}

// The upstream gradient of the loss is then a bare number, which a product must read from memory.
TEST(Tensor, ScaledLosses) {
  const Tensor x = matrix({1, 2, 3, 4}, {2, 2});
  Tensor w = matrix({1, 0, 0, 1}, {2, 2}).requires_grad_();
  (sum(matmul(x, w)) * 0.3).backward();
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(w.grad().to_vector<double>()[i], 0.3 * (i < 2 ? 4 : 6), 1e-15);
  w.zero_grad();
  (cross_entropy(linear(x, w), Tensor::from(std::vector<int64_t>{0, 1}, {2})) * 0.3).backward();
  const Values scaled = w.grad().to_vector<double>();
  w.zero_grad();
  cross_entropy(linear(x, w), Tensor::from(std::vector<int64_t>{0, 1}, {2})).backward();
  const Values whole = w.grad().to_vector<double>();
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(scaled[i], 0.3 * whole[i], 1e-15);
}

TEST(Tensor, BackwardTwice) {
  Tensor w = matrix({2}, {1}).requires_grad_();
  Tensor loss = sum(w * w * w);
  loss.backward({.retain_graph = true});
  loss.backward();
  EXPECT_EQ(w.grad().to_vector<double>()[0], 24);
  EXPECT_NE(error_of([&] { loss.backward(); }).find("retain_graph"), std::string::npos);
  EXPECT_NE(error_of([&] { (w * w).detach().backward(); }).find("requires a gradient"), std::string::npos);
}

// A metric read from the network's output after backward() used it, without NoGrad: common, and no reason to keep old
// weights.
TEST(Tensor, MetricsOfAUsedGraph) {
  nn::Linear layer(4, 3);
  optim::SGD sgd(layer.parameters(), {.lr = 0.1});
  Tensor x = ones({2, 4});
  std::vector<Tensor> metrics;
  for (int i = 0; i < 3; ++i) {
    sgd.zero_grad();
    Tensor out = layer(x);
    Tensor metric = mean(softmax(out) * out);
    sum(out * out).backward();
    sgd.step();
    metrics.push_back(metric);
    EXPECT_TRUE(std::isfinite(metric.item()));
    EXPECT_EQ(layer.weight.node().buffer->refs.load(), 1);
    EXPECT_EQ(layer.weight.node().refs.load(), 1);
  }
  EXPECT_NE(error_of([&] { metrics[0].backward(); }).find("retain_graph"), std::string::npos);
}

TEST(Tensor, NoGradRecordsNoHistory) {
  Tensor w = matrix({2}, {1}).requires_grad_();
  NoGrad off;
  EXPECT_FALSE((w * 2).requires_grad());
}

TEST(Tensor, AConsumedGradientSaysHowToKeepIt) {
  Tensor w = matrix({2}, {1}).requires_grad_();
  optim::SGD sgd({w}, {.lr = 0.5});
  sum(w * w).backward();
  sgd.step();
  EXPECT_NE(error_of([&] { (void)w.grad(); }).find("keep_grads"), std::string::npos);
  EXPECT_EQ(w.to_vector<double>()[0], 0);
  sgd.zero_grad();
  sum(w * w + w).backward();
  sgd.step({.keep_grads = true});
  EXPECT_EQ(w.grad().to_vector<double>()[0], 1);
}

TEST(Tensor, WrongShapesNameEverything) {
  struct Net : nn::Module {
    nn::Linear fc1{1000, 512};
    Net() { register_module("fc1", fc1); }
    Tensor forward(const Tensor& x) override { return fc1(x); }
  } net;
  const std::string text = error_of([&] { net(zeros({64, 784})); });
  EXPECT_NE(text.find("[linear]"), std::string::npos) << text;
  EXPECT_NE(text.find("[64, 784]"), std::string::npos) << text;
  EXPECT_NE(text.find("[512, 1000]"), std::string::npos) << text;
  EXPECT_NE(text.find("fc1"), std::string::npos) << text;
  EXPECT_NE(text.find("tensor_test.cpp"), std::string::npos) << text;
  const std::string plain = error_of([&] { (void)(zeros({2, 3}) + zeros({4})); });
  EXPECT_NE(plain.find("[add]"), std::string::npos) << plain;
  EXPECT_NE(plain.find("[2, 3]"), std::string::npos) << plain;
  EXPECT_NE(plain.find(cat("tensor_test.cpp:", __LINE__ - 3)), std::string::npos) << plain;
}

TEST(Tensor, PendingInAnotherThreadIsAnError) {
  const Tensor x = matrix({1}, {1});
  const Tensor pending = x + 1;
  std::string text;
  std::thread([&] { text = error_of([&] { (void)(pending * 2).item(); }); }).join();
  EXPECT_NE(text.find("another thread"), std::string::npos) << text;
  pending.eval();
  double value = 0;
  std::thread([&] { value = (pending * 2).item(); }).join();
  EXPECT_EQ(value, 4);
}

TEST(Tensor, DeepGraphsNeitherRecurseNorGrowWithoutBound) {
  Tensor x = matrix({0}, {1});
  for (int i = 0; i < 100000; ++i) x = x + 1;
  EXPECT_EQ(x.item(), 100000);
  Tensor w = matrix({1}, {1}).requires_grad_();
  Tensor y = w;
  for (int i = 0; i < 15000; ++i) y = y + w;
  sum(y).backward();
  EXPECT_EQ(w.grad().item(), 15001);
}

TEST(Tensor, RandomNumbersFollowTheSeed) {
  manual_seed(42);
  const auto a = randn({100}).to_vector<float>();
  const auto b = randn({100}).to_vector<float>();
  manual_seed(42);
  EXPECT_EQ(randn({100}).to_vector<float>(), a);
  EXPECT_EQ(randn({100}).to_vector<float>(), b);
  EXPECT_NE(a, b);
  for (int64_t v : randint(-3, 4, {1000}).to_vector<int64_t>()) EXPECT_TRUE(v >= -3 && v < 4);
}

TEST(Tensor, CapturedRandomNumbersMoveOn) {
  auto noise = [](const Tensor& x) { return x + rand({4}); };
  auto captured = capture(noise);
  const Tensor x = zeros({4});
  manual_seed(1);
  std::vector<std::vector<float>> plain, replayed;
  for (int i = 0; i < 3; ++i) plain.push_back(noise(x).to_vector<float>());
  manual_seed(1);
  for (int i = 0; i < 3; ++i) replayed.push_back(captured(x).to_vector<float>());
  EXPECT_EQ(plain, replayed);
}

TEST(Tensor, CaptureRecordsAnewForOtherShapesAndModes) {
  nn::Linear layer(3, 2);
  int recorded = 0;
  auto f = capture([&](const Tensor& x) {
    ++recorded;
    return layer(x) * 2;
  });
  f(zeros({4, 3}));
  f(ones({4, 3}));
  EXPECT_EQ(recorded, 1);
  EXPECT_EQ(f(zeros({5, 3})).shape(), (Shape{5, 2}));
  EXPECT_EQ(recorded, 2);
  layer.train(false);
  f(zeros({5, 3}));
  EXPECT_EQ(recorded, 3);
  layer.train();
  f(zeros({4, 3}));
  EXPECT_EQ(recorded, 3);
  auto asks = capture([](const Tensor& x) {
    (void)(x + 1).item();
    return x;
  });
  EXPECT_NE(error_of([&] { asks(zeros({1})); }).find("[capture]"), std::string::npos);
  EXPECT_EQ((zeros({1}) + 1).item(), 1);
}

TEST(Tensor, CapturedStepsReadTheirArgumentsThroughViews) {
  auto reshaped = capture([](const Tensor& x) { return x.reshape({4}) * 3.0 + x[0][0] + x.detach().reshape({4}); });
  auto batched = capture([](const Tensor& x) { return matmul(x, matrix({1, 2}, {2, 1})); });
  reshaped(matrix({0, 0, 0, 0}, {2, 2}));
  EXPECT_EQ(reshaped(matrix({1, 2, 3, 4}, {2, 2})).to_vector<double>(), (Values{5, 9, 13, 17}));
  batched(matrix({0, 0, 0, 0}, {1, 2, 2}));
  EXPECT_EQ(batched(matrix({1, 2, 3, 4}, {1, 2, 2})).to_vector<double>(), (Values{5, 11}));
}

TEST(Tensor, CapturedStepsReturnAndAssignWhatPassesThrough) {
  auto same = capture([](const Tensor& x) { return x; });
  same(matrix({1}, {1}));
  EXPECT_EQ(same(matrix({2}, {1})).item(), 2);
  Tensor kept = matrix({0}, {1});
  auto keep = capture([&](const Tensor& x) {
    NoGrad off;
    kept.assign(x);
  });
  keep(matrix({1}, {1}));
  keep(matrix({5}, {1}));
  EXPECT_EQ(kept.item(), 5);
  Tensor w = matrix({1, 1, 1, 1}, {4});
  auto update = capture([&](const Tensor& x) {
    NoGrad off;
    w.assign(w + 1.0);
    return x * sum(w);
  });
  update(w);
  EXPECT_EQ(update(w).to_vector<double>(), Values(4, 24));
}

TEST(Tensor, CapturedStepsRefuseWhatTheyCannotReplay) {
  Tensor w = matrix({2}, {1}).requires_grad_();
  auto leaves_gradient = capture([&](const Tensor& x) {
    Tensor loss = sum(w * x);
    loss.backward();
    return loss;
  });
  EXPECT_NE(error_of([&] { leaves_gradient(ones({1}, {.dtype = DType::f64})); }).find("[capture]"), std::string::npos);
  w.zero_grad();
  auto sgd = std::make_unique<optim::SGD>(std::vector<Tensor>{w}, optim::SGDOptions{.lr = 1});
  auto step = capture([&](const Tensor& x) {
    Tensor loss = sum(w * x);
    loss.backward();
    sgd->step();
    return loss;
  });
  const Tensor x = ones({1}, {.dtype = DType::f64});
  EXPECT_EQ(step(x).item(), 2);
  EXPECT_EQ(step(x).item(), 1);
  sgd.reset();
  EXPECT_NE(error_of([&] { step(x); }).find("destroyed"), std::string::npos);
}

TEST(Tensor, AFailedCapturedStepChangesNothing) {
  Tensor w = matrix({1, 2}, {1, 2}).requires_grad_();
  optim::SGD sgd({w}, {.lr = 1});
  auto step = capture([&](const Tensor& t) {
    sgd.zero_grad();
    Tensor loss = cross_entropy(w * 1.0, t);
    loss.backward();
    sgd.step();
    return loss;
  });
  auto label = [](int64_t t) { return Tensor::from(std::vector<int64_t>{t}, {1}); };
  EXPECT_THROW(step(label(9)), Error);
  EXPECT_EQ(sgd.steps(), 0);
  EXPECT_EQ(w.to_vector<double>(), (Values{1, 2}));
  step(label(0));
  const Values after = w.to_vector<double>();
  EXPECT_NE(after, (Values{1, 2}));
  EXPECT_THROW(step(label(9)), Error);
  EXPECT_EQ(sgd.steps(), 1);
  EXPECT_EQ(w.to_vector<double>(), after);
}

// The packed weight of a layer, read in other types: panels of another width must not leak out.
TEST(Tensor, PackedWeightsInOtherTypes) {
  nn::Linear layer(4, 32);
  layer(ones({2, 4})).eval();
  const Values before = layer.weight.to_vector<double>();
  const std::vector<uint8_t> positive = (layer.weight.detach() > 0.0).to_vector<uint8_t>();
  for (size_t i = 0; i < before.size(); ++i) EXPECT_EQ(positive[i], before[i] > 0);
  EXPECT_EQ(layer.weight.detach().to(DType::f64).to_vector<double>(), before);
  layer.to(DType::f64);
  EXPECT_EQ(layer.weight.to_vector<double>(), before);
}

TEST(Tensor, WeightsThatAreViews) {
  const Tensor all = randn({2, 32, 16}).eval();
  Tensor w = all[1];
  w.requires_grad_();
  const std::vector<float> y = linear(ones({4, 16}), w).to_vector<float>();
  EXPECT_NEAR(y[0], sum(all[1][0]).item(), 1e-5);
}

TEST(Tensor, BroadcastBatchesOfProducts) {
  const Tensor a = randn({3, 2, 4}).eval(), b = randn({2, 1, 3, 4, 5}).eval();
  const std::vector<float> y = matmul(a, b).to_vector<float>();
  for (int64_t i = 0; i < 2; ++i)
    for (int64_t k = 0; k < 3; ++k) {
      const std::vector<float> one = matmul(a[k], b[i][0][k]).to_vector<float>();
      EXPECT_TRUE(std::equal(one.begin(), one.end(), y.begin() + (i * 3 + k) * 10)) << i << " " << k;
    }
}

// Other assignments of the thread outlive a failed value, and a failed flush undoes what it had overwritten.
TEST(Tensor, FailuresStayWhereTheyAre) {
  auto bad = [] { return cross_entropy(zeros({1, 2}), Tensor::from(std::vector<int64_t>{7}, {1})); };
  Tensor w = zeros({1});
  w += ones({1});
  {
    const Tensor loss = bad();
    EXPECT_THROW(loss.item(), Error);
  }
  EXPECT_EQ(w.item(), 1);
  Tensor average = zeros({4});
  average.assign(average * 0.5 + 1.0);
  {
    const Tensor loss = bad();
    optim::SGD sgd({ones({1}).requires_grad_()});
    EXPECT_THROW(sgd.step(), Error);
  }
  EXPECT_EQ(average.to_vector<float>(), std::vector<float>(4, 0));
}

TEST(Tensor, ValuesOfOldParametersCannotBeDifferentiated) {
  Tensor w = matrix({1}, {1}).requires_grad_();
  optim::SGD sgd({w}, {.lr = 0.1});
  Tensor early = exp(w);
  for (int i = 0; i < 2; ++i) {
    sgd.zero_grad();
    sum(w * w).backward();
    sgd.step();
    Tensor held = exp(w);
    sgd.zero_grad();
    sum(w * w).backward();
    sgd.step();
    EXPECT_NE(error_of([&] { held.backward(); }).find("updated since"), std::string::npos);
  }
  EXPECT_NE(error_of([&] { early.backward(); }).find("updated since"), std::string::npos);
}

TEST(Tensor, GradOfAnIntermediateKeepsItsHistory) {
  Tensor w = matrix({1, 2}, {2}).requires_grad_();
  Tensor h = w * 3.0;
  const Tensor gh = grad(sum(h * h), {h})[0];
  EXPECT_EQ(grad(h, {w}, {}, gh)[0].to_vector<double>(), (Values{18, 36}));
}

TEST(Tensor, NarrowIntegersWrapFusedOrNot) {
  const Tensor a = full({1}, 200, {.dtype = DType::u8});
  EXPECT_EQ(greater(a + a, 250.0).item(), 0);
  const Tensor big = full({1}, 2147483647.0, {.dtype = DType::i32});
  EXPECT_EQ(((big + 1.0) < 0.0).item(), 1);
}

TEST(Tensor, TypesPromote) {
  EXPECT_EQ((zeros({1}, {.dtype = DType::i64}) + zeros({1})).dtype(), DType::f32);
  EXPECT_EQ((zeros({1}, {.dtype = DType::f64}) + zeros({1})).dtype(), DType::f64);
  EXPECT_EQ((zeros({1}, {.dtype = DType::i32}) * 2).dtype(), DType::i32);
  EXPECT_EQ((ones({1}, {.dtype = DType::i64}) * 0.25).item(), 0.25);
  EXPECT_NE(error_of([] { exp(zeros({1}, {.dtype = DType::i64})); }).find("i64"), std::string::npos);
  EXPECT_EQ(cast(matrix({-2.7, 2.7}, {2}), DType::i64).to_vector<int64_t>(), (std::vector<int64_t>{-2, 2}));
  const double rounded = matrix({1.0009765625 * 3}, {1}).to(DType::bf16).to(DType::f64).item();
  EXPECT_EQ(rounded, 3.0);
}

TEST(Tensor, StateDictRoundTrip) {
  nn::Sequential net(std::make_shared<nn::Linear>(4, 3), std::make_shared<nn::Tanh>(),
                     std::make_shared<nn::Linear>(3, 2));
  std::vector<std::string> names;
  for (const auto& [name, tensor] : net.state_dict()) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"0.weight", "0.bias", "2.weight", "2.bias"}));
  EXPECT_EQ(net.parameter_count(), 4 * 3 + 3 + 3 * 2 + 2);
  nn::NamedTensors state;
  for (const auto& [name, tensor] : net.state_dict()) state.emplace_back(name, full(tensor.shape(), 0.5));
  net.load_state_dict(state);
  EXPECT_EQ(net.parameters()[2].to_vector<float>(), std::vector<float>(6, 0.5f));
  state[0].first = "nonsense";
  const std::string text = error_of([&] { net.load_state_dict(state); });
  EXPECT_NE(text.find("missing: 0.weight"), std::string::npos) << text;
  EXPECT_NE(text.find("unexpected: nonsense"), std::string::npos) << text;
}

TEST(Tensor, MovesBetweenDtypes) {
  nn::Linear layer(4, 3);
  const auto before = layer.weight.to_vector<float>();
  layer.to(DType::f64);
  EXPECT_EQ(layer.weight.dtype(), DType::f64);
  EXPECT_EQ(layer.weight.to_vector<float>(), before);
  EXPECT_TRUE(layer.weight.requires_grad());
  sum(layer(ones({2, 4}, {.dtype = DType::f64}))).backward();
  EXPECT_TRUE(layer.weight.grad().defined());
}

// Results that share an operand and that nobody reads are one call, unless one of them waits for all its elements.
TEST(Tensor, ResultsOfOneOperandMayWaitForDifferentThings) {
  const Tensor x = Tensor::from(std::vector<double>{1, -2, 3, 0.5}, {2, 2});
  const Tensor w = Tensor::from(std::vector<double>{1, 0, 0, 2}, {2, 2});
  const Tensor y = matmul(x, w);  // 1 -4 3 1
  const Tensor positive = relu(y), below = y - max(y), twice = (y + 1.0) * 2.0, shifted = (y + 1.0) - sum(y);
  Recorder::current().flush();
  EXPECT_EQ(below.to_vector<double>(), (std::vector<double>{-2, -7, 0, -2}));
  EXPECT_EQ(positive.to_vector<double>(), (std::vector<double>{1, 0, 3, 1}));
  EXPECT_EQ(twice.to_vector<double>(), (std::vector<double>{4, -6, 8, 4}));
  EXPECT_EQ(shifted.to_vector<double>(), (std::vector<double>{1, -4, 3, 1}));
}

TEST(Tensor, NumbersBeyondIntegersAreTheirBounds) {
  const double inf = std::numeric_limits<double>::infinity();
  const Tensor i = Tensor::from(std::vector<int64_t>{-5, 0, 7}, {3});
  EXPECT_EQ(clamp(i, 0.0, inf).to_vector<int64_t>(), (std::vector<int64_t>{0, 0, 7}));
  EXPECT_EQ((i < 1e20).to_vector<uint8_t>(), (std::vector<uint8_t>{1, 1, 1}));
  EXPECT_EQ(full({1}, -inf, {.dtype = DType::i32}).to_vector<int32_t>()[0], std::numeric_limits<int32_t>::min());
  EXPECT_EQ(full({1}, NAN, {.dtype = DType::i64}).item(), 0);
  EXPECT_EQ(arange(10).slice(0, 0, 10, std::numeric_limits<int64_t>::max()).shape(), (Shape{1}));
}

TEST(Tensor, TheGradientOfManyEqualHalvesIsShared) {
  Tensor x = zeros({70000}, {.dtype = DType::f16}).requires_grad_();
  max(x).backward();
  EXPECT_NEAR(x.grad().to_vector<float>()[0], 1 / 70000.0, 1e-7);
}

}  // namespace
}  // namespace outrace
