// Schedulers: the rates are PyTorch's, lists of published cases, and a resumed schedule goes on bit for bit.
#include "outrace/optim/scheduler.h"

#include <gtest/gtest.h>

#include "expect_error.h"
#include "golden.h"
#include "outrace/ops/creation.h"
#include "outrace/ops/reduce.h"
#include "outrace/optim/adagrad.h"
#include "outrace/optim/sgd.h"

namespace outrace {
namespace {

using namespace optim;
using Values = std::vector<double>;
using Make = std::function<LRScheduler(Optimizer&)>;

constexpr int kEpochs = 24;

// Two groups with the base rates of the golden file.
struct TwoGroups : SGD {
  TwoGroups(double first = 0.05, double second = 1)
      : SGD({{.parameters = {leaf()}, .lr = first}, {.parameters = {leaf()}, .lr = second}}, {.momentum = 0.9}) {}
  static Tensor leaf() { return ones({1}).requires_grad_(); }
  Values rates() const { return {lr(0), lr(1)}; }
};

// By the names of tests/golden/schedulers.json, with the options of tools/golden/schedulers.py.
const std::map<std::string, Make>& schedulers() {
  static const std::map<std::string, Make> all{
      {"step", [](Optimizer& o) { return StepLR(o, {.step_size = 5, .gamma = 0.3}); }},
      {"multi_step",
       [](Optimizer& o) {
         return MultiStepLR(o, {.milestones = {3, 8, 8, 15}, .gamma = 0.5});
       }},
      {"exponential", [](Optimizer& o) { return ExponentialLR(o, 0.9); }},
      {"constant", [](Optimizer& o) { return ConstantLR(o, {.factor = 0.25, .total_iters = 6}); }},
      {"linear", [](Optimizer& o) { return LinearLR(o, {.start_factor = 0.2, .end_factor = 0.8, .total_iters = 7}); }},
      {"polynomial", [](Optimizer& o) { return PolynomialLR(o, {.total_iters = 10, .power = 1.7}); }},
      {"cosine", [](Optimizer& o) { return CosineAnnealingLR(o, {.t_max = 9, .eta_min = 0.01}); }},
      {"warm_restarts",
       [](Optimizer& o) { return CosineAnnealingWarmRestarts(o, {.t_0 = 3, .t_mult = 2, .eta_min = 0.01}); }},
      {"warm_restarts_equal", [](Optimizer& o) { return CosineAnnealingWarmRestarts(o, {.t_0 = 5}); }},
      {"lambda",
       [](Optimizer& o) {
         return LambdaLR(o, std::vector<LambdaLR::Factor>{[](int64_t t) { return 1 / (1 + static_cast<double>(t)); },
                                                          [](int64_t t) { return std::pow(0.5, t); }});
       }},
      {"one_cycle",
       [](Optimizer& o) {
         return OneCycleLR(o, {.max_lr = {0.5, 2}, .total_steps = kEpochs});
       }},
      {"one_cycle_linear",
       [](Optimizer& o) {
         return OneCycleLR(o, {.max_lr = {0.5},
                               .total_steps = kEpochs,
                               .pct_start = 0.4,
                               .linear = true,
                               .div_factor = 10,
                               .final_div_factor = 50,
                               .three_phase = true});
       }},
      {"sequential",
       [](Optimizer& o) {
         return SequentialLR(o,
                             {LinearLR(o, {.start_factor = 0.25, .total_iters = 3}),
                              CosineAnnealingLR(o, {.t_max = 10}), ExponentialLR(o, 0.7)},
                             {4, 14});
       }},
      {"chained",
       [](Optimizer& o) {
         return ChainedScheduler(o, {ConstantLR(o, {.factor = 0.1, .total_iters = 4}), ExponentialLR(o, 0.9)});
       }},
      {"warmup", [](Optimizer& o) { return WarmupLR(o, 4, CosineAnnealingLR(o, {.t_max = 20})); }},
  };
  return all;
}

std::vector<std::string> names() {
  std::vector<std::string> out;
  for (const auto& [name, make] : schedulers()) out.push_back(name);
  return out;
}

class Each : public testing::TestWithParam<std::string> {};

TEST_P(Each, RatesEqualPyTorch) {
  const Golden golden("schedulers");
  if (GetParam() == "warmup") return;  // PyTorch has none
  TwoGroups optimizer;
  LRScheduler scheduler = schedulers().at(GetParam())(optimizer);
  const Values rates = golden.values(GetParam() + "/lr");
  ASSERT_EQ(rates.size(), 2u * kEpochs);
  for (int t = 0; t < kEpochs; ++t) {
    for (size_t g = 0; g < 2; ++g) {
      const double expected = rates[2 * static_cast<size_t>(t) + g];
      // Recursive forms of PyTorch gather errors of a few ulp a step; near 0 those of the base rate.
      EXPECT_NEAR(optimizer.lr(g), expected, 1e-12 * expected + 1e-15) << "epoch " << t << " group " << g;
      EXPECT_EQ(optimizer.lr(g), scheduler.lr_at(t, g));
    }
    if (golden.has(GetParam() + "/momentum")) {
      EXPECT_NEAR(optimizer.groups()[1].momentum, golden.values(GetParam() + "/momentum")[static_cast<size_t>(t)],
                  1e-12);
    }
    if (t + 1 < kEpochs) scheduler.step();
  }
}

TEST_P(Each, AResumedScheduleEqualsTheUninterruptedOne) {
  TwoGroups whole;
  LRScheduler scheduler = schedulers().at(GetParam())(whole);
  std::vector<Values> rates{whole.rates()};
  for (int t = 1; t < kEpochs; ++t) {
    scheduler.step();
    rates.push_back(whole.rates());
  }
  for (int stop : {0, 1, 7, 13}) {
    TwoGroups first;
    LRScheduler before = schedulers().at(GetParam())(first);
    for (int t = 0; t < stop; ++t) before.step();
    TwoGroups second(3, 4);  // other rates: the state has the base rates
    LRScheduler after = schedulers().at(GetParam())(second);
    after.load_state_dict(before.state_dict());
    EXPECT_EQ(after.epoch(), stop);
    EXPECT_EQ(second.rates(), rates[static_cast<size_t>(stop)]);
    for (int t = stop + 1; t < kEpochs; ++t) {
      after.step();
      EXPECT_EQ(second.rates(), rates[static_cast<size_t>(t)]) << "after " << stop << " epoch " << t;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Schedulers, Each, testing::ValuesIn(names()), [](const auto& info) { return info.param; });

struct One : SGD {
  explicit One(double lr) : SGD({ones({1}).requires_grad_()}, {.lr = lr}) {}
};

Values list(Optimizer& o, LRScheduler scheduler, int count) {
  Values out;
  for (int t = 0; t < count; ++t) {
    out.push_back(o.lr());
    scheduler.step();
  }
  return out;
}

void expect_list(const Values& got, const Values& expected, double tolerance) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], tolerance) << i;
}

// pytorch#60265, #65342
TEST(Schedulers, CosineIsAClosedForm) {
  One optimizer(1e-3);
  CosineAnnealingLR scheduler(optimizer, {.t_max = 100});
  for (int t = 0; t < 45; ++t) scheduler.step();
  EXPECT_NEAR(optimizer.lr(), 5.782172e-4, 1e-10);
  scheduler.step();
  EXPECT_NEAR(optimizer.lr(), 5.626667e-4, 1e-10);
  while (scheduler.epoch() < 100) scheduler.step();
  EXPECT_EQ(optimizer.lr(), 0);
}

// pytorch#23480
TEST(Schedulers, RestartsBeginAtTheTop) {
  One optimizer(0.5);
  expect_list(list(optimizer, CosineAnnealingWarmRestarts(optimizer, {.t_0 = 1, .t_mult = 2}), 8),
              {0.5, 0.5, 0.25, 0.5, 0.4267767, 0.25, 0.0732233, 0.5}, 1e-7);
}

// torchtune#2010, DeepSpeed#5287, pytorch-image-models#1242
TEST(Schedulers, WarmupHasNoStepOfRateZero) {
  const Values expected{0.25, 0.5, 0.75, 1, 0.8535534, 0.5, 0.1464466, 0};
  One optimizer(1);
  expect_list(list(optimizer, WarmupLR(optimizer, 4, CosineAnnealingLR(optimizer, {.t_max = 4})), 8), expected, 1e-7);
  One parts(1);  // the same out of PyTorch's parts
  expect_list(list(parts,
                   SequentialLR(parts,
                                {LinearLR(parts, {.start_factor = 0.25, .total_iters = 3}),
                                 CosineAnnealingLR(parts, {.t_max = 4})},
                                {3}),
                   8),
              expected, 1e-7);
  One alone(2);
  expect_list(list(alone, WarmupLR(alone, 2), 4), {1, 2, 2, 2}, 0);
}

// GrowSP#11, pytorch#38170
TEST(Schedulers, PastTheEndIsAnErrorThatChangesNothing) {
  TwoGroups optimizer;
  OneCycleLR scheduler(optimizer, {.max_lr = {1}, .total_steps = 3});
  const double last = 1.0 / 25 / 1e4;
  for (int i = 0; i < 3; ++i) scheduler.step();
  EXPECT_NEAR(optimizer.lr(), last, 1e-15);
  for (int i = 0; i < 2; ++i) {
    expect_has(error_of([&] { scheduler.step(); }, ErrorKind::value), "[OneCycleLR] step 4 of 3");
    EXPECT_NEAR(optimizer.lr(), last, 1e-15);
    EXPECT_EQ(scheduler.epoch(), 3);
  }
  StateDict state = scheduler.state_dict();
  state.numbers[0].second = 4;
  expect_has(error_of([&] { scheduler.load_state_dict(state); }, ErrorKind::value), "epoch (4 of 3)");
  EXPECT_EQ(scheduler.epoch(), 3);
}

TEST(Schedulers, OneCycleOfFewSteps) {
  for (int64_t total : {1, 2, 10}) {
    TwoGroups optimizer;
    OneCycleLR scheduler(optimizer, {.max_lr = {1}, .total_steps = total, .pct_start = 0.1});
    for (int64_t t = 0; t < total; ++t) scheduler.step();
    EXPECT_TRUE(std::isfinite(optimizer.lr()));
    EXPECT_NEAR(optimizer.lr(), 4e-6, 1e-15) << total;
  }
}

TEST(Schedulers, PlateauEqualsPyTorchAndResumes) {
  const Golden golden("schedulers");
  const std::map<std::string, ReduceLROnPlateauOptions> cases{
      {"plain", {.factor = 0.5, .patience = 2}},
      {"max_abs", {.max = true, .factor = 0.5, .patience = 1, .threshold = 0.02, .absolute_threshold = true}},
      {"cooldown", {.factor = 0.1, .patience = 1, .threshold = 0.05, .cooldown = 2, .min_lr = {0.001, 0.2}}},
  };
  const Values& metrics = golden.values("metrics");
  for (const auto& [name, options] : cases)
    for (size_t stop : {size_t{99}, size_t{4}, size_t{9}}) {
      auto optimizer = std::make_unique<TwoGroups>();
      auto scheduler = std::make_unique<ReduceLROnPlateau>(*optimizer, options);
      for (size_t i = 0; i < metrics.size(); ++i) {
        if (i == stop) {
          const StateDict state = scheduler->state_dict();
          scheduler.reset();
          optimizer = std::make_unique<TwoGroups>();
          scheduler = std::make_unique<ReduceLROnPlateau>(*optimizer, options);
          scheduler->load_state_dict(state);
        }
        scheduler->step(metrics[i]);
        for (size_t g = 0; g < 2; ++g) {
          const double expected = golden.values("plateau_" + name + "/lr")[2 * i + g];
          EXPECT_NEAR(optimizer->lr(g), expected, 1e-14 * expected) << name << " " << i << " " << stop;
        }
      }
    }
}

TEST(Schedulers, ASecondSchedulerStartsFromTheSameBase) {
  One optimizer(0.8);
  ConstantLR first(optimizer, {.factor = 0.5});
  EXPECT_EQ(optimizer.lr(), 0.4);
  ExponentialLR second(optimizer, 0.5);
  EXPECT_EQ(optimizer.lr(), 0.8);
}

TEST(Schedulers, OptionsAndStatesAreChecked) {
  One optimizer(1);
  expect_has(error_of([&] { StepLR s(optimizer, {.step_size = 0}); }, ErrorKind::value), "[StepLR] step_size");
  expect_has(error_of([&] { CosineAnnealingLR s(optimizer, {.t_max = -1}); }, ErrorKind::value), "got -1");
  expect_has(error_of([&] { CosineAnnealingWarmRestarts s(optimizer, {.t_0 = 0}); }, ErrorKind::value), "t_0");
  expect_has(error_of([&] { OneCycleLR s(optimizer, {.max_lr = {1}, .total_steps = 5}); }, ErrorKind::value),
             "cycle_momentum");
  expect_has(error_of(
                 [&] {
                   OneCycleLR s(optimizer, {.max_lr = {1, 2}, .total_steps = 5, .cycle_momentum = false});
                 },
                 ErrorKind::value),
             "one for each of 1 groups; got 2");
  expect_has(error_of([&] { SequentialLR s(optimizer, {ExponentialLR(optimizer, 1)}, {3}); }, ErrorKind::value),
             "[SequentialLR]");
  expect_has(error_of([&] { WarmupLR s(optimizer, 0); }, ErrorKind::value), "got 0");
  expect_has(error_of([&] { ReduceLROnPlateau s(optimizer, {.factor = 1}); }, ErrorKind::value), "below 1");
  ExponentialLR scheduler(optimizer, 0.5);
  scheduler.step();
  StateDict state = scheduler.state_dict();
  state.numbers.emplace_back("base_lrs.1", 1);
  state.numbers[0].second = 1.5;
  const std::string text = error_of([&] { scheduler.load_state_dict(state); }, ErrorKind::value);
  expect_has(text, "unexpected: base_lrs.1");
  expect_has(text, "epoch (1.5 is no count)");
  EXPECT_EQ(optimizer.lr(), 0.5);
}

}  // namespace
}  // namespace outrace
