// label: null
// Schedules and memory plans of whole training steps, of networks nobody wrote a kernel for. Nothing is computed.
#include <gtest/gtest.h>

#include <algorithm>

#include "outrace/backend/null/null_backend.h"
#include "outrace/core/env.h"
#include "outrace/graph/memory_plan.h"
#include "outrace/graph/print.h"
#include "outrace/graph/program_cache.h"
#include "outrace/outrace.h"

namespace outrace {
namespace {

const Device kNull("null:0");

struct Net : nn::Module {
  std::vector<std::unique_ptr<nn::Linear>> layers;
  Tensor (*activation)(At);
  Net(const std::vector<int64_t>& sizes, Tensor (*act)(At), Device device) : activation(act) {
    for (size_t i = 0; i + 1 < sizes.size(); ++i) {
      layers.push_back(std::make_unique<nn::Linear>(sizes[i], sizes[i + 1], nn::LinearOptions{.device = device}));
      register_module(std::to_string(i), *layers.back());
    }
  }
  Tensor forward(const Tensor& x) override {
    Tensor y = x;
    for (size_t i = 0; i < layers.size(); ++i) {
      y = (*layers[i])(y);
      if (i + 1 < layers.size()) y = activation(y);
    }
    return y;
  }
};

template <class Optimizer, class Options>
const Plan& plan_of_step(Net& net, int64_t batch, const Options& options) {
  static std::shared_ptr<CompiledGraph> kept;
  const int64_t in = net.layers.front()->weight.shape()[1];
  Optimizer optimizer(net.parameters(), options);
  ProgramCache::global().clear();
  Tensor x = zeros({batch, in}, {.device = kNull});
  Tensor t = zeros({batch}, {.dtype = DType::i64, .device = kNull});
  Tensor loss = cross_entropy(net(x), t);
  loss.backward();
  optimizer.step();
  EXPECT_EQ(ProgramCache::global().compiled(), 1);
  kept = ProgramCache::global().all().at(0);
  return kept->executable->plan();
}

// No value that the plan stores has a weight's shape, other than the weights and their optimizer state, all updated in
// place.
void expect_no_weight_gradients(const Plan& plan, const Net& net) {
  const std::vector<Lifetime> life = lifetimes(plan);
  for (size_t v = 0; v < plan.values.size(); ++v) {
    const PlanValue& value = plan.values[v];
    if (life[v].first < 0 || value.kind == ValueKind::input) continue;
    for (const auto& layer : net.layers)
      if (value.shape == layer->weight.shape()) {
        EXPECT_EQ(value.kind, ValueKind::output) << to_string(plan);
        EXPECT_GE(value.donor, 0) << to_string(plan);
      }
  }
}

TEST(Schedule, ArticleNetworkTakesNineCalls) {
  Net net({1000, 512, 10}, relu, kNull);
  const Plan& plan = plan_of_step<optim::Adam>(net, 64, optim::AdamOptions{});
  EXPECT_EQ(plan.calls.size(), 9u) << to_string(plan);
  expect_no_weight_gradients(plan, net);
  std::vector<std::string> labels;
  for (const Call& c : plan.calls) labels.push_back(c.label);
  EXPECT_EQ(labels[0], "matmul+add+relu") << to_string(plan);
  EXPECT_EQ(labels[1], "matmul+add") << to_string(plan);
  EXPECT_EQ(
      std::count_if(labels.begin(), labels.end(), [](const std::string& l) { return l.starts_with("matmul+sub"); }), 2)
      << to_string(plan);
}

TEST(Schedule, NetworksNobodyWroteByHand) {
  {
    Net net({30, 40, 20, 6}, tanh, kNull);
    const Plan& plan = plan_of_step<optim::AdamW>(net, 7, optim::AdamWOptions{});
    // 3 layers forward, loss and its gradient, 2 hidden gradients, 3 weights, 3 biases
    EXPECT_EQ(plan.calls.size(), 13u) << to_string(plan);
    expect_no_weight_gradients(plan, net);
  }
  {
    Net net({30, 40, 20, 6}, relu, kNull);
    const Plan& plan = plan_of_step<optim::SGD>(net, 7, optim::SGDOptions{.momentum = 0.9, .weight_decay = 1e-3});
    EXPECT_EQ(plan.calls.size(), 13u) << to_string(plan);
    expect_no_weight_gradients(plan, net);
  }
  {
    Net net({12, 9}, sigmoid, kNull);
    const Plan& plan = plan_of_step<optim::SGD>(net, 1, optim::SGDOptions{});
    EXPECT_EQ(plan.calls.size(), 5u) << to_string(plan);
    expect_no_weight_gradients(plan, net);
  }
}

// Every fold takes what comes before it as its prologue and what follows as its epilogue.
TEST(Schedule, ReductionsFuseBothWays) {
  NoGrad off;
  const Tensor x = zeros({50, 60}, {.device = kNull});
  const auto label_of = [&](auto&& fn) {
    ProgramCache::global().clear();
    const Tensor y = fn();  // nothing else is held
    y.eval();
    const Plan& plan = ProgramCache::global().all().at(0)->executable->plan();
    EXPECT_EQ(plan.calls.size(), 1u) << to_string(plan);
    return plan.calls[0].label;
  };
  const ReduceOptions rows{{1}, false};
  EXPECT_EQ(label_of([&] { return sqrt(sum(square(x), rows)); }), "square+sum+sqrt");
  EXPECT_EQ(label_of([&] { return neg(min(abs(x), rows)); }), "abs+min+neg");
  EXPECT_EQ(label_of([&] { return neg(max(abs(x), rows)); }), "abs+max+neg");
  EXPECT_EQ(label_of([&] { return log(prod(exp(x), rows)); }), "exp+prod+log");
  EXPECT_EQ(label_of([&] { return any(x, rows); }), "not_equal+select+max+not_equal");
  EXPECT_EQ(label_of([&] { return all(x, rows); }), "not_equal+select+min+not_equal");
}

TEST(Schedule, TemporariesOverlapOnlyWhenTheirLivesDoNot) {
  Net net({300, 200, 100, 50, 10}, tanh, kNull);
  const Plan& plan = plan_of_step<optim::Adam>(net, 64, optim::AdamOptions{});
  const std::vector<Lifetime> life = lifetimes(plan);
  int64_t sum = 0;
  for (size_t a = 0; a < plan.values.size(); ++a) {
    const PlanValue& x = plan.values[a];
    if (x.kind != ValueKind::temp || life[a].first < 0) continue;
    EXPECT_EQ(x.arena_offset % kArenaAlignment, 0);
    sum += x.bytes();
    for (size_t b = a + 1; b < plan.values.size(); ++b) {
      const PlanValue& z = plan.values[b];
      if (z.kind != ValueKind::temp || life[b].first < 0) continue;
      const bool together = life[a].first <= life[b].last && life[b].first <= life[a].last;
      const bool overlap = x.arena_offset < z.arena_offset + z.bytes() && z.arena_offset < x.arena_offset + x.bytes();
      EXPECT_FALSE(together && overlap) << to_string(plan);
    }
  }
  ASSERT_EQ(plan.arenas.size(), 1u);
  EXPECT_LT(plan.arenas[0].bytes, sum);
}

TEST(Schedule, TwoDevicesInOneGraph) {
  const Device second("null:1");
  nn::Linear first(8, 16, {.device = kNull}), last(16, 4, {.device = second});
  std::vector<Tensor> parameters = first.parameters();
  for (const Tensor& p : last.parameters()) parameters.push_back(p);
  optim::SGD optimizer(parameters);
  ProgramCache::global().clear();
  clear_null_log();
  Tensor x = zeros({5, 8}, {.device = kNull});
  Tensor t = zeros({5}, {.dtype = DType::i64, .device = second});
  Tensor loss = cross_entropy(last(relu(first(x)).to(second)), t);
  loss.backward();
  optimizer.step();
  const std::shared_ptr<CompiledGraph> kept = ProgramCache::global().all().at(0);
  const Plan& plan = kept->executable->plan();
  int transfers = 0;
  for (const Call& c : plan.calls) {
    transfers += c.op == &kTransfer;
    if (c.op == &kTransfer) continue;
    for (const View& v : c.operands) {
      if (v.value >= 0) {
        EXPECT_EQ(plan.values[v.value].device, c.device) << to_string(plan);
      }
    }
  }
  EXPECT_EQ(transfers, 2) << to_string(plan);  // the hidden layer there, its gradient back
  EXPECT_EQ(plan.arenas.size(), 2u);
  EXPECT_NE(to_string(plan).find("null:1"), std::string::npos);
  bool on_first = false, on_second = false;
  for (const std::string& line : null_log()) {
    on_first |= line.find("null:0") != std::string::npos;
    on_second |= line.find("null:1") != std::string::npos;
  }
  EXPECT_TRUE(on_first && on_second);
  EXPECT_THROW(x + t, Error);
}

TEST(Schedule, DebugTextNamesWhatChanged) {
  Net net({6, 5, 4}, relu, kNull);
  testing::internal::CaptureStderr();
  const int level = debug_level();
  set_debug_level(1);
  plan_of_step<optim::SGD>(net, 7, optim::SGDOptions{});
  plan_of_step<optim::SGD>(net, 3, optim::SGDOptions{});
  set_debug_level(level);
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("new program"), std::string::npos) << text;
  EXPECT_NE(text.find("[3, 6]"), std::string::npos) << text;
  EXPECT_NE(text.find("[7, 6]"), std::string::npos) << text;
}

}  // namespace
}  // namespace outrace
