// Optimizers: ten steps equal PyTorch's, every way to write the loop gives the same bits, and a resumed run goes on as
// the uninterrupted one.
#include <gtest/gtest.h>

#include <functional>

#include "expect_error.h"
#include "golden.h"
#include "outrace/core/cpu_info.h"
#include "outrace/graph/memory_plan.h"
#include "outrace/graph/print.h"
#include "outrace/graph/program_cache.h"
#include "outrace/optim/adadelta.h"
#include "outrace/optim/adagrad.h"
#include "outrace/optim/adamax.h"
#include "outrace/optim/lion.h"
#include "outrace/optim/nadam.h"
#include "outrace/optim/radam.h"
#include "outrace/optim/rmsprop.h"
#include "outrace/optim/scheduler.h"
#include "outrace/outrace.h"

namespace outrace {
namespace {

using optim::ParameterGroups;
using OptimizerPtr = std::unique_ptr<optim::Optimizer>;
using Make = std::function<OptimizerPtr(const ParameterGroups&)>;
using Values = std::vector<double>;

template <class Optimizer, class Options>
Make make(const Options& options) {
  return [options](const ParameterGroups& p) -> OptimizerPtr { return std::make_unique<Optimizer>(p, options); };
}

// By the names of tests/golden/optimizers.json, with the options of tools/golden/optimizers.py.
const std::map<std::string, Make>& optimizers() {
  namespace o = optim;
  static const std::map<std::string, Make> all{
      {"sgd", make<o::SGD>(o::SGDOptions{.lr = 0.1})},
      {"sgd_decay", make<o::SGD>(o::SGDOptions{.lr = 0.1, .weight_decay = 0.1, .maximize = true})},
      {"sgd_momentum", make<o::SGD>(o::SGDOptions{.lr = 0.1, .momentum = 0.9})},
      {"sgd_dampening", make<o::SGD>(o::SGDOptions{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.1, .dampening = 0.3})},
      {"sgd_nesterov", make<o::SGD>(o::SGDOptions{.lr = 0.1, .momentum = 0.9, .nesterov = true})},
      {"adam", make<o::Adam>(o::AdamOptions{.lr = 0.05})},
      {"adam_decay", make<o::Adam>(o::AdamOptions{.lr = 0.05, .weight_decay = 0.1, .maximize = true})},
      {"adam_amsgrad",
       make<o::Adam>(o::AdamOptions{.lr = 0.05, .beta1 = 0.8, .beta2 = 0.7, .eps = 1e-3, .amsgrad = true})},
      {"adamw", make<o::AdamW>(o::AdamWOptions{.lr = 0.05, .weight_decay = 0.1, .maximize = true})},
      {"adamw_amsgrad", make<o::AdamW>(o::AdamWOptions{.lr = 0.05, .beta1 = 0.8, .beta2 = 0.7, .amsgrad = true})},
      {"rmsprop", make<o::RMSprop>(o::RMSpropOptions{.lr = 0.05})},
      {"rmsprop_decay",
       make<o::RMSprop>(o::RMSpropOptions{.lr = 0.05, .alpha = 0.9, .weight_decay = 0.1, .maximize = true})},
      {"rmsprop_centered", make<o::RMSprop>(o::RMSpropOptions{.lr = 0.05, .eps = 1e-3, .centered = true})},
      {"rmsprop_momentum", make<o::RMSprop>(o::RMSpropOptions{.lr = 0.05, .momentum = 0.8})},
      {"rmsprop_all",
       make<o::RMSprop>(o::RMSpropOptions{.lr = 0.05, .weight_decay = 0.1, .momentum = 0.8, .centered = true})},
      {"adagrad", make<o::Adagrad>(o::AdagradOptions{.lr = 0.1})},
      {"adagrad_all",
       make<o::Adagrad>(o::AdagradOptions{
           .lr = 0.1, .lr_decay = 0.2, .weight_decay = 0.1, .initial_accumulator_value = 0.5, .maximize = true})},
      {"adadelta", make<o::Adadelta>(o::AdadeltaOptions{})},
      {"adadelta_all", make<o::Adadelta>(o::AdadeltaOptions{
                           .lr = 0.5, .rho = 0.8, .eps = 1e-4, .weight_decay = 0.1, .maximize = true})},
      {"nadam", make<o::NAdam>(o::NAdamOptions{.lr = 0.05})},
      {"nadam_decay",
       make<o::NAdam>(o::NAdamOptions{.lr = 0.05, .weight_decay = 0.1, .momentum_decay = 0.1, .maximize = true})},
      {"nadam_decoupled",
       make<o::NAdam>(o::NAdamOptions{.lr = 0.05, .weight_decay = 0.1, .decoupled_weight_decay = true})},
      {"radam", make<o::RAdam>(o::RAdamOptions{.lr = 0.05})},
      {"radam_decay",
       make<o::RAdam>(o::RAdamOptions{.lr = 0.05, .beta1 = 0.8, .beta2 = 0.9, .weight_decay = 0.1, .maximize = true})},
      {"radam_decoupled",
       make<o::RAdam>(o::RAdamOptions{.lr = 0.05, .weight_decay = 0.1, .decoupled_weight_decay = true})},
      {"adamax", make<o::Adamax>(o::AdamaxOptions{.lr = 0.05})},
      {"adamax_decay", make<o::Adamax>(o::AdamaxOptions{
                           .lr = 0.05, .beta1 = 0.8, .beta2 = 0.7, .weight_decay = 0.1, .maximize = true})},
      {"lion", make<o::Lion>(o::LionOptions{.lr = 0.05})},
      {"lion_decay", make<o::Lion>(o::LionOptions{.lr = 0.05, .beta2 = 0.8, .weight_decay = 0.1, .maximize = true})},
  };
  return all;
}

std::vector<std::string> names() {
  std::vector<std::string> out;
  for (const auto& [name, make] : optimizers()) out.push_back(name);
  return out;
}

Tensor leaf(const Values& v, const Shape& shape, DType dtype) {
  return Tensor::from(v, shape).to(dtype).eval().detach().requires_grad_();
}

// Gives p the gradient g, through backward().
void push(const Tensor& p, const Tensor& g) { sum(cast(p, DType::f64) * cast(g, DType::f64)).backward(); }

class Each : public testing::TestWithParam<std::string> {
 protected:
  OptimizerPtr made(const ParameterGroups& p) const { return optimizers().at(GetParam())(p); }
};

TEST(Optimizers, EveryGoldenCaseIsThere) {
  const Golden golden("optimizers");
  for (const std::string& name : golden.names())
    if (name != "start" && name != "gradients") {
      EXPECT_TRUE(optimizers().contains(name)) << name;
    }
}

// The parameters after each of the golden file's ten steps must be PyTorch's.
void expect_ten_steps(const std::string& name, DType dtype) {
  const Golden golden("optimizers");
  const double tolerance = dtype == DType::f64 ? 1e-10 : 2e-6;
  Tensor a = leaf(golden.values("start/a"), {2, 2}, dtype), b = leaf(golden.values("start/b"), {2}, dtype);
  const Tensor ga = Tensor::from(golden.values("gradients/a"), {10, 2, 2});
  const Tensor gb = Tensor::from(golden.values("gradients/b"), {10, 2});
  OptimizerPtr optimizer = optimizers().at(name)({a, b});
  for (int64_t i = 0; i < 10; ++i) {
    optimizer->zero_grad();
    push(a, ga[i]);
    if (i != 2) push(b, gb[i]);
    optimizer->step();
    for (const auto& [key, p] : {std::pair{"a", a}, std::pair{"b", b}}) {
      const Values got = p.to_vector<double>(), all = golden.values(name + "/" + key);
      for (size_t k = 0; k < got.size(); ++k) {
        const double expected = all[static_cast<size_t>(i) * got.size() + k];
        ASSERT_NEAR(got[k], expected, tolerance * std::max(std::abs(expected), 0.5))
            << name_of(dtype) << " step " << i << " " << key << k;
      }
    }
  }
}

TEST_P(Each, TenStepsEqualPyTorch) {
  const Isa before = active_isa();
  for (Isa isa : {Isa::avx2, Isa::avx512}) {
    if (!cpu_info().supports(isa)) continue;
    set_active_isa(isa);
    for (DType dtype : {DType::f64, DType::f32}) expect_ten_steps(GetParam(), dtype);
  }
  set_active_isa(before);
}

struct Net : nn::Module {
  nn::Linear first, last;
  Net(int64_t in, int64_t hidden, int64_t out, Device device = {})
      : first(in, hidden, {.device = device}), last(hidden, out, {.device = device}) {
    register_module("first", first);
    register_module("last", last);
  }
  Tensor forward(const Tensor& x) override { return last(relu(first(x))); }
};

enum class Loop { plain, item, captured, kept };

struct Outcome {
  Values losses, weights;
  int64_t programs = 0;
};

Outcome train(Loop loop, const std::string& name, int steps) {
  manual_seed(11);
  Net net(40, 30, 6);
  OptimizerPtr optimizer = optimizers().at(name)(net.named_parameters());
  const Tensor x = randn({steps, 9, 40}).eval();
  const Tensor t = randint(0, 6, {steps, 9}).eval();
  ProgramCache::global().clear();
  auto step = [&](const Tensor& inputs, const Tensor& labels) {
    optimizer->zero_grad();
    Tensor loss = cross_entropy(net(inputs), labels);
    if (loop == Loop::item) (void)loss.item();
    loss.backward();
    optimizer->step({.keep_grads = loop == Loop::kept});
    return loss;
  };
  auto captured = capture([&](const Tensor& a, const Tensor& b) { return step(a, b); });
  Outcome out;
  for (int i = 0; i < steps; ++i)
    out.losses.push_back((loop == Loop::captured ? captured(x[i], t[i]) : step(x[i], t[i])).item());
  out.programs = ProgramCache::global().compiled();
  for (const Tensor& p : net.parameters())
    for (double v : p.to_vector<double>()) out.weights.push_back(v);
  return out;
}

TEST_P(Each, BitsDoNotDependOnHowTheLoopIsWritten) {
  const Outcome plain = train(Loop::plain, GetParam(), 9);  // RAdam changes its branch after 5
  EXPECT_EQ(plain.programs, 1);
  for (Loop loop : {Loop::item, Loop::captured, Loop::kept}) {
    const Outcome other = train(loop, GetParam(), 9);
    EXPECT_EQ(plain.losses, other.losses) << static_cast<int>(loop);
    EXPECT_EQ(plain.weights, other.weights) << static_cast<int>(loop);
    EXPECT_LE(other.programs, 2) << static_cast<int>(loop);
  }
}

TEST_P(Each, WeightGradientsNeverReachMemory) {
  const Device null("null:0");
  Net net(30, 20, 6, null);
  OptimizerPtr optimizer = made(net.parameters());
  ProgramCache::global().clear();
  const Tensor x = zeros({7, 30}, {.device = null}), t = zeros({7}, {.dtype = DType::i64, .device = null});
  Tensor loss = cross_entropy(net(x), t);
  loss.backward();
  optimizer->step();
  ASSERT_EQ(ProgramCache::global().compiled(), 1);
  const Plan& plan = ProgramCache::global().all().at(0)->executable->plan();
  EXPECT_EQ(plan.calls.size(), 9u) << to_string(plan);
  const std::vector<Lifetime> life = lifetimes(plan);
  for (size_t v = 0; v < plan.values.size(); ++v) {
    const PlanValue& value = plan.values[v];
    if (life[v].first < 0 || value.kind == ValueKind::input || value.shape.rank() != 2) continue;
    if (value.shape == net.first.weight.shape() || value.shape == net.last.weight.shape()) {
      EXPECT_EQ(value.kind, ValueKind::output) << to_string(plan);
      EXPECT_GE(value.donor, 0) << to_string(plan);
    }
  }
}

// Six steps; after `stop` of them everything is rebuilt from the saved state. `b` misses the second step.
std::vector<Values> run_with_stop(const Make& make, int stop, DType dtype, std::optional<DType> state_dtype) {
  const Golden golden("optimizers");
  const Tensor ga = Tensor::from(golden.values("gradients/a"), {10, 2, 2});
  const Tensor gb = Tensor::from(golden.values("gradients/b"), {10, 2});
  Tensor a = leaf(golden.values("start/a"), {2, 2}, dtype), b = leaf(golden.values("start/b"), {2}, dtype);
  const auto groups = [&](const Tensor& x, const Tensor& y, bool swapped) {
    std::vector<std::pair<std::string, Tensor>> named{{"a", x}, {"b", y}};
    if (swapped) std::swap(named[0], named[1]);
    return ParameterGroups{{.parameters = named, .state_dtype = state_dtype}};
  };
  OptimizerPtr optimizer = make(groups(a, b, false));
  for (int64_t i = 0; i < 6; ++i) {
    if (i == stop) {
      const StateDict state = optimizer->state_dict();
      const int64_t steps = optimizer->steps();
      a = leaf(a.to_vector<double>(), {2, 2}, dtype);
      b = leaf(b.to_vector<double>(), {2}, dtype);
      optimizer = make(groups(a, b, true));
      optimizer->set_lr(77);
      optimizer->load_state_dict(state);
      EXPECT_EQ(optimizer->steps(), steps);
      const StateDict again = optimizer->state_dict();
      EXPECT_EQ(again.tensors.size(), state.tensors.size());
      for (const auto& [name, tensor] : again.tensors) {
        EXPECT_EQ(tensor.dtype(), state_dtype.value_or(dtype == DType::f64 ? DType::f64 : DType::f32)) << name;
      }
    }
    optimizer->zero_grad();
    push(a, ga[i]);
    if (i != 1) push(b, gb[i]);
    optimizer->step();
  }
  return {a.to_vector<double>(), b.to_vector<double>()};
}

// pytorch/torchtitan#4615, fairseq2#212: the state comes back verbatim, its dtype included.
TEST_P(Each, AResumedRunEqualsTheUninterruptedOne) {
  const Make& make = optimizers().at(GetParam());
  for (const auto& [dtype, state] : std::vector<std::pair<DType, std::optional<DType>>>{
           {DType::f64, {}}, {DType::f32, {}}, {DType::f32, DType::bf16}, {DType::f16, {}}, {DType::bf16, DType::bf16}})
    for (int stop : {1, 3}) {
      const auto whole = run_with_stop(make, -1, dtype, state), resumed = run_with_stop(make, stop, dtype, state);
      EXPECT_EQ(whole, resumed) << name_of(dtype) << " after " << stop;
      EXPECT_NE(whole[0], Golden("optimizers").values("start/a"));
    }
}

// optax#1754, chainer#6299, pytorch#147437: eps is below the smallest f16 number, the zero gradient must not become
// 0/0.
TEST_P(Each, AZeroGradientLeavesNarrowParametersAsTheyAre) {
  if (GetParam().find("decay") != std::string::npos || GetParam().find("decoupled") != std::string::npos ||
      GetParam().starts_with("adamw") || GetParam().ends_with("_all") || GetParam() == "sgd_dampening")
    return;  // decay moves them
  for (DType dtype : {DType::f16, DType::bf16}) {
    Tensor p = leaf({1, -2, 0.5}, {3}, dtype);
    OptimizerPtr optimizer = made({p});
    for (int i = 0; i < 3; ++i) {
      push(p, zeros({3}));
      optimizer->step();
      EXPECT_EQ(p.to_vector<double>(), (Values{1, -2, 0.5})) << name_of(dtype);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Optimizers, Each, testing::ValuesIn(names()), [](const auto& info) { return info.param; });

TEST(Optimizers, NarrowParametersMoveByTheFullStep) {
  const auto expect_moved = [](const OptimizerPtr& optimizer, const Tensor& p, const char* name) {
    push(p, full({3}, 1e-3));
    optimizer->step();
    const Values start{1, -2, 0.5}, got = p.to_vector<double>();
    for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(got[i], start[i] - 0.01, 0x1p-10 * std::abs(start[i])) << name;
  };
  using namespace optim;
  const std::map<const char*, Make> all{
      {"adam", make<Adam>(AdamOptions{.lr = 1e-2})},
      {"adamw", make<AdamW>(AdamWOptions{.lr = 1e-2, .weight_decay = 0})},
      {"amsgrad", make<Adam>(AdamOptions{.lr = 1e-2, .amsgrad = true})},
      {"rmsprop", make<RMSprop>(RMSpropOptions{.lr = 1e-2, .alpha = 0})},
      {"adagrad", make<Adagrad>(AdagradOptions{.lr = 1e-2})},
  };
  for (const auto& [name, make] : all) {
    Tensor p = leaf({1, -2, 0.5}, {3}, DType::f16);
    expect_moved(make({p}), p, name);
  }
}

// pytorch/ao#4915: a step count that is kept in bf16 freezes at 256.
TEST(Optimizers, StepsAreCountedExactly) {
  Tensor p = leaf({1}, {1}, DType::f32);
  optim::Adam optimizer({p}, {.lr = 1e-3});
  const Tensor g = full({1}, 0.1);
  for (int i = 0; i < 1000; ++i) {
    optimizer.zero_grad();
    sum(p * g).backward();
    optimizer.step();
  }
  EXPECT_EQ(optimizer.steps(), 1000);
  EXPECT_NEAR(p.item(), 0, 2e-4);
}

// Oneflow#5960: eps outside the root of the corrected moment, not inside a corrected rate.
TEST(Optimizers, EpsStandsBesideTheCorrectedRoot) {
  Tensor p = leaf({0}, {1}, DType::f32);
  optim::Adam optimizer({p}, {.lr = 1e-3});
  push(p, full({1}, 1e-8));
  optimizer.step();
  EXPECT_NEAR(p.item(), -5e-4, 5e-8);
}

// lora-scripts-next#320, schedule_free#32: state belongs to names, not to positions.
TEST(Optimizers, StateIsMatchedByName) {
  Tensor a = leaf({1, 2}, {2}, DType::f32), b = leaf({1, 2, 3}, {3}, DType::f32), c = leaf({5, 6}, {2}, DType::f32);
  using Named = std::vector<std::pair<std::string, Tensor>>;
  optim::Adam first(Named{{"a", a}, {"b", b}, {"c", c}});
  const auto step = [](optim::Optimizer& o, const Tensor& x, const Tensor& z) {
    o.zero_grad();
    push(x, Tensor::from(Values{0.5, -1}, {2}));
    push(z, Tensor::from(Values{2, 3}, {2}));
    o.step();
  };
  step(first, a, c);
  step(first, a, c);
  const StateDict state = first.state_dict();
  EXPECT_EQ(state.tensors.size(), 4u);  // none for b
  const std::vector<float> saved = state.tensors[0].second.to_vector<float>();
  Tensor a2 = leaf(a.to_vector<double>(), {2}, DType::f32), b2 = leaf({1, 2, 3}, {3}, DType::f32);
  Tensor c2 = leaf(c.to_vector<double>(), {2}, DType::f32);
  optim::Adam second(Named{{"c", c2}, {"b", b2}, {"a", a2}});
  second.load_state_dict(state);
  step(first, a, c);
  step(second, a2, c2);
  EXPECT_EQ(a.to_vector<float>(), a2.to_vector<float>());
  EXPECT_EQ(c.to_vector<float>(), c2.to_vector<float>());
  EXPECT_EQ(state.tensors[0].second.to_vector<float>(), saved);  // though `second` went on from it

  optim::Adam other(Named{{"a", a2}, {"d", b2}});
  std::string text = error_of([&] { other.load_state_dict(state); }, ErrorKind::value);
  expect_has(text, "missing: state.d.step");
  expect_has(text, "unexpected:");
  expect_has(text, "state.b.step");
  expect_has(text, "state.c.exp_avg");
  EXPECT_EQ(other.steps(), 0);
  Tensor wide = leaf({1, 2, 3}, {3}, DType::f32);
  optim::Adam misshapen(Named{{"a", wide}, {"b", b2}, {"c", c2}});
  text = error_of([&] { misshapen.load_state_dict(state); }, ErrorKind::value);
  expect_has(text, "wrong shape: state.a.exp_avg ([2] given, [3] needed)");
  StateDict damaged = state;
  damaged.numbers[0].second = -1;
  expect_has(error_of([&] { second.load_state_dict(damaged); }, ErrorKind::value), "state.a.step (-1 is no count)");
}

TEST(Optimizers, ASavedStateDoesNotChange) {
  Tensor a = leaf({1, 2}, {2}, DType::f32);
  optim::SGD optimizer({a}, {.momentum = 0.9});
  push(a, ones({2}));
  optimizer.step();
  const StateDict state = optimizer.state_dict();
  for (int i = 0; i < 2; ++i) {
    push(a, ones({2}));
    optimizer.step();
  }
  EXPECT_EQ(state.tensors[0].second.to_vector<double>(), (Values{1, 1}));
  EXPECT_EQ(optimizer.state_dict().tensors[0].second.to_vector<double>(), (Values{Values(2, float(0.9f * 1.9f + 1))}));
}

TEST(Optimizers, GroupsHaveRatesAndDecaysOfTheirOwn) {
  Tensor a = leaf({1}, {1}, DType::f64), b = leaf({1}, {1}, DType::f64);
  optim::SGD optimizer({{.parameters = {a}, .lr = 0.5}, {.parameters = {b}, .weight_decay = 2.0}}, {.lr = 0.25});
  for (const Tensor& p : optimizer.parameters()) push(p, ones({1}));
  optimizer.step();
  EXPECT_EQ(a.item(), 0.5);
  EXPECT_EQ(b.item(), 1 - 0.25 * 3);
  optimizer.set_lr(1, 0.125);
  push(a, ones({1}));
  push(b, ones({1}));
  optimizer.step();
  EXPECT_EQ(a.item(), 0);
  EXPECT_EQ(b.item(), 0.25 - 0.125 * 1.5);
  optimizer.set_lr(3);
  EXPECT_EQ(optimizer.lr(0), 3);
  EXPECT_EQ(optimizer.lr(1), 3);
}

TEST(Optimizers, LoadingIntoACapturedStepGoesOn) {
  for (const char* name : {"adam", "nadam", "sgd_momentum"}) {
    Tensor a = leaf({1, 2}, {2}, DType::f32);
    OptimizerPtr optimizer = optimizers().at(name)({a});
    auto step = capture([&](const Tensor& g) {
      sum(a * g).backward();
      optimizer->step();
    });
    const Tensor g = Tensor::from(Values{0.5, -1}, {2}).to(DType::f32).eval();
    step(g);
    step(g);
    const StateDict state = optimizer->state_dict();
    const std::vector<float> before = a.to_vector<float>();
    step(g);
    step(g);
    const std::vector<float> after = a.to_vector<float>();
    {
      NoGrad off;
      a.assign(Tensor::from(before, {2}));
    }
    optimizer->load_state_dict(state);
    step(g);
    step(g);
    EXPECT_EQ(a.to_vector<float>(), after) << name;
    EXPECT_EQ(optimizer->steps(), 4);
  }
}

TEST(Optimizers, RatesAndMomentaOfASchedulerReachCapturedSteps) {
  const auto run = [](bool captured) {
    Tensor a = leaf({1, 2}, {2}, DType::f32);
    optim::AdamW optimizer({a});
    optim::OneCycleLR scheduler(optimizer, {.max_lr = {0.1}, .total_steps = 12});
    const auto step = [&](const Tensor& g) {
      sum(a * g).backward();
      optimizer.step();
    };
    auto replayed = capture([&](const Tensor& g) { step(g); });
    const Tensor g = Tensor::from(std::vector<float>{0.5, -1}, {2});
    std::vector<std::vector<float>> seen;
    for (int i = 0; i < 12; ++i) {
      captured ? replayed(g) : step(g);
      scheduler.step();
      seen.push_back(a.to_vector<float>());
    }
    return seen;
  };
  const auto plain = run(false);
  EXPECT_EQ(plain, run(true));
  EXPECT_GT(std::abs(plain[4][0] - plain[3][0]), 10 * std::abs(plain[11][0] - plain[10][0]));
}

TEST(Optimizers, ACapturedStepRefusesUpdateCountsThatDrifted) {
  Tensor a = leaf({1}, {1}, DType::f32), b = leaf({1}, {1}, DType::f32);
  optim::Adam optimizer({a, b});
  auto both = capture([&](const Tensor& g) {
    (sum(a * g) + sum(b * g)).backward();
    optimizer.step();
  });
  const Tensor g = ones({1});
  both(g);
  push(a, g);
  optimizer.step();
  const float before = a.to_vector<float>()[0];
  expect_has(error_of([&] { both(g); }, ErrorKind::state), "capture it anew");
  EXPECT_EQ(optimizer.steps(), 2);
  EXPECT_EQ(a.to_vector<float>()[0], before);
}

TEST(Optimizers, ParametersAndOptionsAreChecked) {
  using namespace optim;
  Tensor a = leaf({1}, {1}, DType::f32);
  const Tensor fixed = ones({1});
  expect_has(error_of([&] { SGD o(std::vector<Tensor>{}); }, ErrorKind::value), "[SGD] got no parameters");
  expect_has(error_of([&] { Lion o({fixed}); }, ErrorKind::value), "[Lion] a parameter of shape [1]");
  expect_has(error_of([&] { Adam o({a, a}); }, ErrorKind::value), "the parameter 1 stands there twice");
  expect_has(error_of([&] { SGD o({a}, {.lr = -1}); }, ErrorKind::value), "got -1");
  expect_has(error_of([&] { SGD o({a}, {.momentum = 0.9, .dampening = 0.5, .nesterov = true}); }, ErrorKind::value),
             "got 0.5");
  expect_has(error_of([&] { AdamW o({a}, {.beta2 = 1}); }, ErrorKind::value), "[AdamW] beta2");
  expect_has(error_of([&] { RMSprop o({a}, {.alpha = 1.5}); }, ErrorKind::value), "got 1.5");
  SGD plain({a});
  expect_has(error_of([&] { plain.set_momentum(0, 0.5); }, ErrorKind::value), "momentum of 0 stays");
  Adagrad none({a});
  expect_has(error_of([&] { none.set_momentum(0, 0.5); }, ErrorKind::value), "[Adagrad] has no momentum");
}

TEST(Optimizers, EmptyAndZeroDimParameters) {
  for (const auto& [name, make] : optimizers()) {
    Tensor empty = Tensor::from(Values{}, {0, 3}).to(DType::f32).eval().detach().requires_grad_();
    Tensor one = leaf({2}, {}, DType::f32);
    OptimizerPtr optimizer = make({empty, one});
    (sum(empty) + one * one).backward();
    optimizer->step();
    EXPECT_TRUE(std::isfinite(one.item())) << name;
    EXPECT_NE(one.item(), 2) << name;
  }
}

}  // namespace
}  // namespace outrace
