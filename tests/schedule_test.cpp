// label: null
// Schedules and memory plans of whole training steps, of networks nobody wrote a kernel for. Nothing is computed.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "outrace/backend/null/null_backend.h"
#include "outrace/core/env.h"
#include "outrace/graph/memory_plan.h"
#include "outrace/graph/print.h"
#include "outrace/graph/program_cache.h"
#include "outrace/graph/recorder.h"
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

// Results that nobody else reads are computed where the product's tiles are; not when one of them waits for all tiles.
TEST(Schedule, TwoResultsOfOneProductAreOneCall) {
  const Tensor x = zeros({7, 5}, {.device = kNull}), w = zeros({5, 6}, {.device = kNull});
  const auto calls = [](const std::vector<Tensor>&) {
    ProgramCache::global().clear();
    Recorder::current().flush();
    const std::shared_ptr<CompiledGraph> kept = ProgramCache::global().all().at(0);
    return kept->executable->plan().calls.size();
  };
  {
    const Tensor y = matmul(x, w);
    EXPECT_EQ(calls({relu(y), tanh(y) * 3.0}), 1u);
  }
  {
    const Tensor y = exp(x);
    EXPECT_EQ(calls({relu(y), y * 3.0}), 1u);
  }
  {
    const Tensor y = matmul(x, w);
    EXPECT_EQ(calls({relu(y), y - max(y)}), 3u);
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

// The derivative of a sum is a one stretched over the array: nothing is multiplied by it.
TEST(Schedule, AStretchedOneIsNoFactor) {
  Tensor x = zeros({50, 60}, {.device = kNull}).requires_grad_();
  const Tensor z = zeros({50, 60}, {.device = kNull});
  ProgramCache::global().clear();
  (grad(sum(x * z), {x})[0] - z).eval();
  EXPECT_EQ(ProgramCache::global().all().at(0)->executable->plan().calls.at(0).label, "sub");
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

const Plan& plan_of_value(const Tensor& y) {
  static std::shared_ptr<CompiledGraph> kept;
  ProgramCache::global().clear();
  y.eval();
  EXPECT_EQ(ProgramCache::global().compiled(), 1);
  kept = ProgramCache::global().all().at(0);
  return kept->executable->plan();
}

// The lookup refuses bad indices before anything is overwritten; its gradient need not come before other updates, which
// would keep all gradients waiting for it.
TEST(Schedule, UpdatesDoNotWaitForTheEmbeddingsGradient) {
  const CreateOptions here{.device = kNull};
  Tensor table = zeros({50, 8}, here).requires_grad_(), weight = zeros({10, 8}, here).requires_grad_();
  optim::SGD sgd({weight, table}, {.lr = 0.1});  // the order in which updates are wanted
  ProgramCache::global().clear();
  const Tensor index = zeros({6}, {.dtype = DType::i64, .device = kNull});
  const Tensor loss = cross_entropy(linear(embedding(table, index), weight), index);
  loss.backward();
  sgd.step();
  ASSERT_EQ(ProgramCache::global().compiled(), 1);
  const std::shared_ptr<CompiledGraph> graph = ProgramCache::global().all().at(0);
  const Plan& plan = graph->executable->plan();
  int update = -1, scattered = -1, updated = 0;
  for (size_t i = 0; i < plan.calls.size(); ++i) {
    if (plan.calls[i].op == &kIndexAdd) scattered = static_cast<int>(i);
    if (plan.calls[i].label.starts_with("matmul+") && plan.calls[i].inplace) update = static_cast<int>(i);
    updated += plan.calls[i].inplace;
  }
  EXPECT_EQ(updated, 2) << to_string(plan);
  EXPECT_GE(update, 0) << to_string(plan);
  EXPECT_LT(update, scattered) << to_string(plan);
}

TEST(Schedule, ViewsCostNoCall) {
  const CreateOptions here{.device = kNull};
  const Tensor x = zeros({6, 8}, here), taps = zeros({3, 4}, here), square = zeros({6, 6}, here);
  const auto calls =
      [](const std::function<Tensor()>& make) {  // what it names within is gone when the value is asked for
        const Plan& plan = plan_of_value(make());
        std::string labels;
        for (const Call& c : plan.calls) labels += c.label + "; ";
        return labels;
      };
  EXPECT_EQ(calls([&] { return relu(flip(x, {1})); }), "relu; ");
  EXPECT_EQ(calls([&] { return sum(diagonal(square, 1)); }), "sum; ");
  EXPECT_EQ(calls([&] { return mean(unfold(x, 1, 3), {{-1}}); }), "mean; ");
  EXPECT_EQ(calls([&] { return matmul(unfold(x.slice(0, 0, 1).reshape({8}), 0, 3), taps); }), "matmul; ");
  EXPECT_EQ(calls([&] { return roll(x, 3, 1); }), "cat; ");
  EXPECT_EQ(calls([&] { return pad(x, {2, 2}, PadMode::circular); }), "cat; ");
  EXPECT_EQ(calls([&] { return einsum("ij,kj->ik", {x, x}); }), "matmul; ");
}

}  // namespace
}  // namespace outrace
