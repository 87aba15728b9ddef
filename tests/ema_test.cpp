// Averages of weights: values, captured updates, swapping, saved state.
#include "outrace/optim/ema.h"

#include <gtest/gtest.h>

#include "expect_error.h"
#include "outrace/graph/program_cache.h"
#include "outrace/graph/recorder.h"
#include "outrace/outrace.h"

namespace outrace {
namespace {

using namespace optim;
using Values = std::vector<double>;

struct Net : nn::Module {
  Tensor weight, mean, count;
  explicit Net(DType dtype = DType::f64) {
    weight = register_parameter("weight", Tensor::from(Values{1, -2, 0.5}, {3}).to(dtype));
    mean = register_buffer("mean", Tensor::from(Values{4}, {1}).to(dtype));
    count = register_buffer("count", Tensor::from(std::vector<int64_t>{7}, {1}));
  }
  Tensor forward(const Tensor& x) override { return x * weight; }
  void set(const Values& w, double m = 0, int64_t c = 0) {
    NoGrad off;
    weight.assign(Tensor::from(w, {3}).to(weight.dtype()).eval());
    mean.assign(Tensor::from(Values{m}, {1}).to(mean.dtype()).eval());
    count.assign(Tensor::from(std::vector<int64_t>{c}, {1}));
  }
};

Values average(const Ema& ema, const std::string& name) {
  for (const auto& [key, tensor] : ema.state_dict().tensors)
    if (key == "average." + name) return tensor.to_vector<double>();
  return {};
}

TEST(Ema, FollowsTheRecurrence) {
  for (bool warm_up : {false, true}) {
    Net net;
    Ema ema(net, {.decay = 0.75, .warm_up = warm_up, .buffers = EmaBuffers::average});
    Values expected{1, -2, 0.5};
    double mean = 4;
    for (int t = 1; t <= 40; ++t) {
      const Values now{0.1 * t, 3.0 - t, 1.0 / t};
      net.set(now, t, t);
      ema.update();
      const double decay = warm_up ? std::min(0.75, (1.0 + t) / (10.0 + t)) : 0.75;
      for (size_t i = 0; i < 3; ++i) expected[i] = decay * expected[i] + (1 - decay) * now[i];
      mean = decay * mean + (1 - decay) * t;
      const Values got = average(ema, "weight");
      for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(got[i], expected[i], 1e-13 * (1 + t)) << t;
      EXPECT_NEAR(average(ema, "mean")[0], mean, 1e-13 * (1 + t));
    }
    EXPECT_EQ(ema.updates(), 40);
    EXPECT_EQ(average(ema, "weight").size(), 3u);
  }
}

TEST(Ema, BuffersAreKeptCopiedOrAveraged) {
  for (EmaBuffers buffers : {EmaBuffers::keep, EmaBuffers::copy, EmaBuffers::average}) {
    Net net;
    Ema ema(net, {.decay = 0.5, .buffers = buffers});
    net.set({1, 1, 1}, 8, 9);
    ema.update();
    net.set({1, 1, 1}, 10, 11);
    ema.apply();
    const double expected[] = {10, 8, 6};  // the newest the module has; that of the update; the mean of 4 and 8
    EXPECT_EQ(net.mean.item(), expected[static_cast<int>(buffers)]);
    const Values weight = net.weight.to_vector<double>();
    EXPECT_EQ(weight, (Values{1, -0.5, 0.75}));
    ema.restore();
    EXPECT_EQ(net.mean.item(), 10);
    EXPECT_EQ(net.count.item(), 11);
    EXPECT_EQ(net.weight.to_vector<double>(), (Values{1, 1, 1}));
    EXPECT_TRUE(net.weight.requires_grad());
  }
}

TEST(Ema, NarrowWeightsAreAveragedInF32) {
  Net net(DType::f16);
  Ema ema(net, {.decay = 0.9999});
  net.set({2, -2, 0.5});
  for (int i = 0; i < 100; ++i) ema.update();
  // 1 + (1 - 0.9999^100); in f16, whose steps near 1 are 0.001, it would stay at 1
  EXPECT_NEAR(average(ema, "weight")[0], 2 - std::pow(0.9999, 100), 100 * 0x1p-23);
  EXPECT_EQ(ema.state_dict().tensors[0].second.dtype(), DType::f32);
  ema.apply();
  EXPECT_EQ(net.weight.dtype(), DType::f16);
  EXPECT_NEAR(net.weight.to_vector<double>()[0], 1.00995, 0x1p-10);
}

TEST(Ema, WrongOrderIsAnError) {
  Net net;
  Ema ema(net);
  expect_has(error_of([&] { ema.restore(); }, ErrorKind::state), "without apply()");
  ema.apply();
  expect_has(error_of([&] { ema.apply(); }, ErrorKind::state), "twice");
  expect_has(error_of([&] { ema.update(); }, ErrorKind::state), "between");
  ema.restore();
  ema.update();
  EXPECT_EQ(ema.updates(), 1);
  expect_has(error_of([&] { Ema wrong(net, {.decay = 1.5}); }, ErrorKind::value), "got 1.5");
}

struct Outcome {
  Values weights, averages;
  int64_t programs = 0;
};

Outcome train(bool captured, int stop = -1) {
  manual_seed(2);
  nn::Linear net(20, 7);
  Adam optimizer(net.parameters(), {.lr = 1e-2});
  auto ema = std::make_unique<Ema>(net, EmaOptions{.decay = 0.9, .warm_up = true});
  const Tensor x = randn({10, 5, 20}).eval();
  const Tensor t = randint(0, 7, {10, 5}).eval();
  Recorder::current().flush();
  ProgramCache::global().clear();
  const auto step = [&](const Tensor& in, const Tensor& labels) {
    optimizer.zero_grad();
    Tensor loss = cross_entropy(net(in), labels);
    loss.backward();
    optimizer.step();
    ema->update();
  };
  auto replayed = capture([&](const Tensor& in, const Tensor& labels) { step(in, labels); });
  Outcome out;
  for (int i = 0; i < 10; ++i) {
    if (i == stop) {
      const StateDict state = ema->state_dict();
      ema = std::make_unique<Ema>(net, EmaOptions{.decay = 0.9, .warm_up = true});
      ema->load_state_dict(state);
      EXPECT_EQ(ema->updates(), stop);
    }
    captured ? replayed(x[i], t[i]) : step(x[i], t[i]);
    if (i == 4 || i == 7) {  // evaluation in between leaves no trace
      ema->apply();
      (void)net(x[0]).to_vector<float>();
      ema->restore();
    }
  }
  out.programs = ProgramCache::global().compiled();
  out.weights = net.weight.to_vector<double>();
  for (const auto& [name, tensor] : ema->state_dict().tensors)
    for (double v : tensor.to_vector<double>()) out.averages.push_back(v);
  return out;
}

TEST(Ema, CapturedAndResumedRunsHaveTheSameBits) {
  const Outcome plain = train(false);
  EXPECT_NE(plain.weights, Values(plain.averages.begin(), plain.averages.begin() + 140));
  EXPECT_LE(plain.programs, 3);  // the step, the average, the evaluation
  for (const Outcome& other : {train(true), train(false, 3), train(false, 6)}) {
    EXPECT_EQ(plain.weights, other.weights);
    EXPECT_EQ(plain.averages, other.averages);
  }
}

TEST(Ema, AFailedUpdateIsNotCounted) {
  Net net;
  SGD optimizer({net.weight});
  auto ema = std::make_unique<Ema>(net);
  auto step = capture([&] {
    sum(net.weight).backward();
    optimizer.step();
    ema->update();
  });
  step();
  step();
  EXPECT_EQ(ema->updates(), 2);
  ema->apply();
  expect_has(error_of([&] { step(); }, ErrorKind::state), "between apply() and restore()");
  ema->restore();
  EXPECT_EQ(ema->updates(), 2);
  EXPECT_EQ(optimizer.steps(), 2);
  ema.reset();
  expect_has(error_of([&] { step(); }, ErrorKind::state), "destroyed");
}

TEST(Ema, CopiesAndStatesAreMatchedByName) {
  Net net, other;
  Ema ema(net, {.decay = 0.5});
  net.set({3, 0, 0.5}, 1, 2);
  ema.update();
  ema.copy_to(other);
  EXPECT_EQ(other.weight.to_vector<double>(), (Values{2, -1, 0.5}));
  EXPECT_EQ(other.count.item(), 2);
  nn::Linear linear(2, 2);
  expect_has(error_of([&] { ema.copy_to(linear); }, ErrorKind::value), "has no mean count");
  StateDict state = ema.state_dict();
  Net third;
  Ema resumed(third, {.decay = 0.5});
  resumed.load_state_dict(state);
  EXPECT_EQ(average(resumed, "weight"), average(ema, "weight"));
  EXPECT_EQ(average(resumed, "count"), (Values{2}));
  state.tensors[0].first = "average.wait";
  const std::string text = error_of([&] { ema.load_state_dict(state); }, ErrorKind::value);
  expect_has(text, "missing: average.weight");
  expect_has(text, "unexpected: average.wait");
}

}  // namespace
}  // namespace outrace
