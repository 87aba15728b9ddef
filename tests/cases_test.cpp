// Real failures of other frameworks with the right answers, as far as the ops exist: each test names the behaviour, the
// comment the report it comes from.
#include <gtest/gtest.h>

#include <limits>
#include <thread>

#include "expect_near.h"
#include "outrace/core/thread.h"
#include "outrace/outrace.h"

namespace outrace {
namespace {

using Values = std::vector<double>;

Tensor f32(const std::vector<float>& v, const Shape& s) { return Tensor::from(v, s); }
Tensor ids(const std::vector<int64_t>& v) { return Tensor::from(v, {static_cast<int64_t>(v.size())}); }

// pytorch#11752
TEST(Cases, EqualButHugeLogits) {
  for (float big : {1e8f, -1e8f}) {
    Tensor x = f32({big, big}, {1, 2}).requires_grad_();
    Tensor loss = cross_entropy(x, ids({1}));
    loss.backward();
    EXPECT_NEAR(loss.item(), std::log(2.0), 1e-6);
    expect_near(x.grad(), {0.5, -0.5}, 0);
  }
  Tensor half = f32({6e4f, 6e4f}, {1, 2}).to(DType::f16);
  EXPECT_NEAR(cross_entropy(half, ids({1})).item(), std::log(2.0), 1e-3);
}

// pytorch#3240
TEST(Cases, LogSoftmaxOverOneClassIsZero) {
  for (float v : {0.7f, 88.72284f, -3e38f}) {
    Tensor x = f32({v}, {1}).requires_grad_();
    Tensor y = log_softmax(x);
    sum(y).backward();
    EXPECT_EQ(y.item(), 0);
    EXPECT_EQ(x.grad().item(), 0);
  }
  expect_near(log_softmax(f32({1, 2, 3, 4}, {4, 1}), 1), {0, 0, 0, 0}, 0);
  EXPECT_EQ(cross_entropy(f32({3}, {1, 1}), ids({0})).item(), 0);
}

// pytorch#70348: the loss is NaN (the mean of nothing, as PyTorch), the gradient exactly zero, the weights untouched.
TEST(Cases, AllTargetsIgnored) {
  for (Reduction r : {Reduction::none, Reduction::mean, Reduction::sum}) {
    Tensor w = f32({1, 2, 3}, {1, 3}).requires_grad_();
    optim::SGD sgd({w}, {.lr = 0.1});
    Tensor loss = cross_entropy(w * 1.5, ids({-1}), {.reduction = r, .ignore_index = -1});
    (r == Reduction::none ? sum(loss) : loss).backward();
    const Tensor g = w.grad();
    sgd.step();
    EXPECT_TRUE(r == Reduction::mean ? std::isnan(loss.item()) : loss.item() == 0);
    expect_near(g, {0, 0, 0}, 0);
    expect_near(w, {1, 2, 3}, 0);
  }
}

// pytorch#63004
TEST(Cases, IgnoredClassStaysInTheDenominator) {
  const Tensor x = ones({2, 3});
  EXPECT_NEAR(cross_entropy(x, ids({1, 2}), {.ignore_index = 0}).item(), std::log(3.0), 1e-6);
  EXPECT_NEAR(cross_entropy(x, ids({0, 2}), {.ignore_index = 0}).item(), std::log(3.0), 1e-6);
}

// aprender#2182
TEST(Cases, BackwardFollowsTheReduction) {
  auto gradient = [](const CrossEntropyOptions& o, const Values& upstream) {
    Tensor x = Tensor::from(Values(4, 0), {2, 2}).requires_grad_();
    const Tensor loss = cross_entropy(x, ids({0, 1}), o);
    return grad(loss, {x}, {}, Tensor::from(upstream, loss.shape()))[0];
  };
  expect_near(gradient({.reduction = Reduction::sum}, {1}), {-.5, .5, .5, -.5}, 0);
  expect_near(gradient({.reduction = Reduction::mean}, {1}), {-.25, .25, .25, -.25}, 0);
  expect_near(gradient({.reduction = Reduction::none}, {1, 3}), {-.5, .5, 1.5, -1.5}, 0);
}

// pytorch#131060: plain softmax of an undefined row is NaN
TEST(Cases, SoftmaxOfInfinities) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  expect_near(softmax(f32({-inf, -inf}, {2})), {NAN, NAN}, 0);
  expect_near(softmax(f32({inf, 0}, {2})), {NAN, NAN}, 0);
  expect_near(softmax(f32({nan, 0}, {2})), {NAN, NAN}, 0);
  expect_near(softmax(f32({-inf, 0}, {2})), {0, 1}, 0);
}

// pytorch/ao#4915: bias correction counts on the host, whatever the parameters' dtype
TEST(Cases, AdamForAThousandSteps) {
  for (DType t : {DType::f32, DType::f64}) {
    Tensor p = ones({1}, {.dtype = t}).requires_grad_();
    optim::Adam adam({p}, {.lr = 1e-3});
    for (int i = 0; i < 1000; ++i) {
      adam.zero_grad();
      sum(p * 0.1).backward();
      adam.step();
    }
    EXPECT_EQ(adam.steps(), 1000);
    EXPECT_NEAR(p.item(), 0, 2e-4);
  }
}

// oneflow#5960: eps stands beside the root of the corrected moment
TEST(Cases, AdamEpsOutsideTheBiasCorrection) {
  Tensor p = zeros({1}, {.dtype = DType::f64}).requires_grad_();
  optim::Adam adam({p}, {.lr = 1e-3, .eps = 1e-8});
  sum(p * 1e-8).backward();
  adam.step();
  EXPECT_NEAR(p.item(), -5.0e-4, 5e-8);
}

// A parameter that joins late starts its own bias correction: its first update is lr, as PyTorch's.
TEST(Cases, AdamCountsEachParametersUpdates) {
  Tensor a = zeros({1}, {.dtype = DType::f64}).requires_grad_(), b = zeros({1}, {.dtype = DType::f64}).requires_grad_();
  optim::Adam adam({a, b}, {.lr = 1e-3});
  for (int i = 0; i < 50; ++i) {
    adam.zero_grad();
    (i < 49 ? sum(a) : sum(a + b)).backward();
    adam.step();
  }
  EXPECT_NEAR(a.item(), -50e-3, 1e-6);
  EXPECT_NEAR(b.item(), -1e-3, 1e-9);
}

// optax#1754: a zero gradient changes nothing
TEST(Cases, ZeroGradientsLeaveParametersAlone) {
  for (DType t : {DType::f32, DType::f64}) {
    Tensor p = Tensor::from(Values{1, -2, 0.5}, {3}).to(t).eval();
    p = p.detach().requires_grad_();
    optim::Adam adam({p}, {});
    for (int i = 0; i < 3; ++i) {
      adam.zero_grad();
      sum(p * 0.0).backward();
      adam.step();
    }
    expect_near(p, {1, -2, 0.5}, 0);
  }
}

// dotnet/runtime#92820: no element is processed twice in place
TEST(Cases, InPlaceTails) {
  for (int64_t n = 1; n <= 70; ++n) {
    Tensor x = full({n}, 2);
    x.assign(square(x));
    expect_near(x, Values(static_cast<size_t>(n), 4), 0);
    for (int64_t offset = 0; offset < 8; ++offset) {
      const Tensor part = arange(n + 8).slice(0, offset, offset + n);
      EXPECT_EQ(exp(part * -1).to_vector<float>(), exp(-(part + zeros({n}))).to_vector<float>());
    }
  }
}

// mlx#610: reading an intermediate changes no gradient
TEST(Cases, BroadcastGradientAfterReadingIntermediates) {
  Tensor x = ones({3, 3}).requires_grad_();
  Tensor s = x + ones({3, 3, 3});
  Tensor y = square(s);
  EXPECT_EQ(s.to_vector<float>()[0], 2);
  EXPECT_FALSE(y.str().empty());
  sum(y).backward();
  expect_near(x.grad(), Values(9, 12), 0);
}

// pytorch#34907
TEST(Cases, ReductionsOfNothing) {
  const Tensor a = zeros({0, 4}), b = zeros({2, 0});
  EXPECT_EQ(sum(a).item(), 0);
  EXPECT_TRUE(std::isnan(mean(a).item()));
  EXPECT_THROW(max(a), Error);
  EXPECT_THROW(max(a, {{0}}), Error);
  EXPECT_THROW(max(b, {{1}}), Error);
  EXPECT_EQ(softmax(a).shape(), (Shape{0, 4}));
  EXPECT_EQ(softmax(b).shape(), (Shape{2, 0}));
  expect_near(sum(b, {{1}}), {0, 0}, 0);
  expect_near(mean(b, {{1}}), {NAN, NAN}, 0);
}

// pytorch#165873
TEST(Cases, ScalarsAndHugeShapes) {
  const Tensor five = full({}, 5);
  EXPECT_EQ(sum(five).item(), 5);
  EXPECT_EQ(flatten(five).shape(), (Shape{1}));
  const int64_t big = int64_t{1} << 40;
  EXPECT_EQ((Shape{0, big, big}).numel(), 0);
  EXPECT_THROW((Shape{big, big}), Error);
  EXPECT_THROW(zeros({big, 1 << 20}), std::exception);
}

// numpy#22956
TEST(Cases, MeanOfManyOnes) {
  const Tensor x = ones({20'000'000});
  EXPECT_NEAR(sum(x).item(), 2e7, 20);
  EXPECT_NEAR(mean(x).item(), 1, 1e-6);
  expect_near(mean(x.reshape({10'000'000, 2}), {{0}}), {1, 1}, 1e-6);
  expect_near(sum(x.reshape({10'000'000, 2}), {{0}}), {1e7, 1e7}, 10);
}

// pytorch#44350: summed and divided in f32, then narrowed
TEST(Cases, MeanOfLargeHalves) {
  EXPECT_EQ(mean(full({3}, 40000, {.dtype = DType::f16})).item(), 40000);
  EXPECT_EQ(mean(ones({70000}, {.dtype = DType::f16})).item(), 1);
}

// pytorch#88718
TEST(Cases, ResultsDoNotDependOnThreads) {
  manual_seed(4);
  const Tensor x = randn({1, 56}).eval(), w = randn({444, 56}).eval(), many = randn({1'000'000}).eval();
  const int before = num_threads();
  std::vector<float> line;
  double total = 0;
  for (int threads : {1, 2, 3, 5, 8}) {
    set_num_threads(threads);
    for (int again = 0; again < 5; ++again) {
      const std::vector<float> y = linear(x, w).to_vector<float>();
      const double s = sum(many).item();
      if (line.empty()) {
        line = y;
        total = s;
      }
      EXPECT_EQ(y, line);
      EXPECT_EQ(s, total);
    }
  }
  set_num_threads(before);
  // against float64: 56 products, each rounded once
  const Values exact = linear(x.to(DType::f64), w.to(DType::f64)).to_vector<double>();
  const Values bound =
      linear(select(x < 0, -x, x).to(DType::f64), select(w < 0, -w, w).to(DType::f64)).to_vector<double>();
  for (size_t i = 0; i < line.size(); ++i) EXPECT_NEAR(line[i], exact[i], 57 * 0x1p-24 * bound[i]);
}

// pytorch#34052
TEST(Cases, SharedGeneratorAndModelInManyThreads) {
  const nn::Linear shared(6, 4);
  const Tensor x = ones({3, 6});
  std::vector<float> expected;
  {
    NoGrad off;
    expected = linear(x, shared.weight, shared.bias).to_vector<float>();
  }
  manual_seed(1);
  std::vector<int64_t> one;
  for (int i = 0; i < 80; ++i)
    for (int64_t v : randint(0, int64_t{1} << 62, {100}).to_vector<int64_t>()) one.push_back(v);
  manual_seed(1);
  std::vector<std::vector<int64_t>> drawn(8);
  std::vector<int> wrong(8, 0);
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      NoGrad off;
      for (int i = 0; i < 10; ++i) {
        for (int64_t v : randint(0, int64_t{1} << 62, {100}).to_vector<int64_t>()) drawn[t].push_back(v);
        wrong[t] += linear(x, shared.weight, shared.bias).to_vector<float>() != expected;
      }
    });
  for (std::thread& t : threads) t.join();
  std::vector<int64_t> all;
  for (const auto& d : drawn) all.insert(all.end(), d.begin(), d.end());
  std::sort(one.begin(), one.end());
  std::sort(all.begin(), all.end());
  EXPECT_EQ(one, all);
  EXPECT_EQ(wrong, std::vector<int>(8, 0));
}

// pytorch#36461: a tensor made from host data owns a copy
TEST(Cases, HostDataIsCopied) {
  std::vector<float> data{1, 2, 3, 4};
  const Tensor t = f32(data, {4});
  data.assign(4, 9);
  data.clear();
  data.shrink_to_fit();
  expect_near(t, {1, 2, 3, 4}, 0);
}

// pytorch#27600
TEST(Cases, OutOfMemoryLeavesEverythingUsable) {
  for (int i = 0; i < 100; ++i) {
    EXPECT_THROW((zeros({1}) + expand(zeros({1}), {int64_t{1} << 46})).eval(), Error);
    EXPECT_EQ((ones({3}) + 1).to_vector<float>(), std::vector<float>(3, 2));
  }
}

// SimpleTuner#40
TEST(Cases, UnknownDevices) {
  for (const char* name : {"gpu", "cuda:x", "cuda:-1", "cpu:1", "cuda:999", ""})
    EXPECT_THROW(Device{name}, Error) << name;
  try {
    zeros({1}, {.device = "cuda:99"});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::device) << e.what();
  }
}

}  // namespace
}  // namespace outrace
