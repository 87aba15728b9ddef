// label: backend
// Training on GPUs: every optimizer, clipping and averages beside the CPU's, the article's network and the digits for
// 20 steps, saved state, captured steps, two devices in one graph.
#include "expect_error.h"
#include "gpu_support.h"
#include "outrace/data/digits.h"

namespace outrace {
namespace {

using Values = std::vector<double>;
using Maker = std::function<std::unique_ptr<optim::Optimizer>(const nn::Module&)>;

template <class O, class Options>
Maker with(const Options& options) {
  return [options](const nn::Module& m) { return std::make_unique<O>(m.named_parameters(), options); };
}

// By class, and after a comma the form.
const std::map<std::string, Maker>& optimizers() {
  using namespace optim;
  static const std::map<std::string, Maker> all{
      {"SGD", with<SGD>(SGDOptions{.lr = 0.1})},
      {"SGD, momentum and decay",
       with<SGD>(SGDOptions{.lr = 0.1, .momentum = 0.9, .weight_decay = 1e-2, .dampening = 0.1})},
      {"SGD, Nesterov, ascending",
       with<SGD>(SGDOptions{.lr = 0.1, .momentum = 0.9, .nesterov = true, .maximize = true})},
      {"Adam", with<Adam>(AdamOptions{.lr = 0.01})},
      {"Adam, AMSGrad and decay", with<Adam>(AdamOptions{.lr = 0.01, .weight_decay = 1e-2, .amsgrad = true})},
      {"AdamW", with<AdamW>(AdamWOptions{.lr = 0.01})},
      {"Adamax", with<Adamax>(AdamaxOptions{.lr = 0.01})},
      {"Adadelta", with<Adadelta>(AdadeltaOptions{.weight_decay = 1e-2})},
      {"Adagrad", with<Adagrad>(AdagradOptions{.lr = 0.1, .lr_decay = 0.1})},
      {"RMSprop", with<RMSprop>(RMSpropOptions{})},
      {"RMSprop, centered with momentum", with<RMSprop>(RMSpropOptions{.momentum = 0.9, .centered = true})},
      {"Lion", with<Lion>(LionOptions{.lr = 0.01, .weight_decay = 1e-2})},
      {"NAdam", with<NAdam>(NAdamOptions{.lr = 0.01})},
      {"NAdam, decoupled decay",
       with<NAdam>(NAdamOptions{.lr = 0.01, .weight_decay = 1e-2, .decoupled_weight_decay = true})},
      {"RAdam", with<RAdam>(RAdamOptions{.lr = 0.01, .weight_decay = 1e-2})},
  };
  return all;
}

constexpr int64_t kIn = 6, kHidden = 5, kOut = 3, kBatch = 8;
constexpr int kSteps = 5;

std::shared_ptr<nn::Sequential> small_network(Device d, uint64_t seed = 4) {
  manual_seed(seed);
  // Without biases: their updates would be texts of their own.
  auto net = std::make_shared<nn::Sequential>(
      std::make_shared<nn::Linear>(kIn, kHidden, nn::LinearOptions{.bias = false}), std::make_shared<nn::Tanh>(),
      std::make_shared<nn::Linear>(kHidden, kOut, nn::LinearOptions{.bias = false}));
  net->to(d);
  return net;
}

Tensor batch(const Shape& shape, Device d, uint64_t seed) {
  manual_seed(seed);
  return randn(shape).to(d).eval();
}

Values values_of(const std::vector<Tensor>& tensors) {
  Values out;
  for (const Tensor& t : tensors)
    for (const double v : t.to_vector<double>()) out.push_back(v);
  return out;
}

struct Trained {
  std::vector<Values> weights, gradients;  // after each step; gradients as the optimizer read them
};

Trained train_small(const Maker& maker, Device d, const std::function<void(const std::vector<Tensor>&)>& clip = {},
                    bool gradients = false, optim::EmaOptions* average = nullptr) {
  const auto net = small_network(d);
  const auto optimizer = maker(*net);
  std::optional<optim::Ema> ema;
  if (average) ema.emplace(*net, *average);
  const Tensor x = batch({kSteps, kBatch, kIn}, d, 5), y = batch({kSteps, kBatch, kOut}, d, 6);
  Trained out;
  for (int i = 0; i < kSteps; ++i) {
    optimizer->zero_grad();
    mse_loss((*net)(x[i]), y[i]).backward();
    if (clip) clip(net->parameters());
    optimizer->step({.keep_grads = gradients});
    if (ema) ema->update();
    if (gradients) {
      std::vector<Tensor> g;
      for (const Tensor& p : net->parameters()) g.push_back(p.grad());
      out.gradients.push_back(values_of(g));
    }
    if (ema) {
      std::vector<Tensor> t;
      for (const auto& [name, tensor] : ema->state_dict().tensors) t.push_back(tensor);
      out.weights.push_back(values_of(t));
    } else {
      out.weights.push_back(values_of(net->parameters()));
    }
  }
  return out;
}

// A gradient here is a sum of kBatch products behind sums of kIn and kHidden: that many roundings, and some of the ops
// between, of the largest gradient. What an optimizer makes of it grows with the gradient or keeps its size, so a
// weight's move is off by the same share as its smallest gradient, which later steps carry on; and each new weight is
// rounded. Returns the share of weights whose moves are far above their bound: it must be most, or the bounds show
// nothing.
double expect_equal_moves(const Trained& got, const Trained& reference, const Trained& exact) {
  constexpr double kTerms = kBatch + kIn + kHidden + 16, kCarry = 4;
  const double unit = epsilon_of(DType::f32) / 2;
  double largest = 0;
  for (const Values& g : exact.gradients) largest = std::max(largest, largest_of(g));
  int64_t shown = 0;
  const size_t count = reference.weights[0].size();
  for (size_t w = 0; w < count; ++w) {
    double smallest = HUGE_VAL, move = 0, size = 0, all_moves = 0;
    for (int t = 0; t < kSteps; ++t) {
      smallest = std::min(smallest, std::abs(exact.gradients[t][w]));
      size = std::max(size, std::abs(reference.weights[t][w]));
      const double now = t == 0 ? 0 : std::abs(reference.weights[t][w] - reference.weights[t - 1][w]);
      move = std::max(move, now);
      all_moves += now;
    }
    const double bound = kSteps * (kCarry * move * kTerms * unit * largest / smallest + 4 * unit * size);
    for (int t = 0; t < kSteps; ++t)
      EXPECT_NEAR(got.weights[t][w], reference.weights[t][w], bound) << "weight " << w << ", step " << t;
    shown += bound < 0.1 * all_moves ? 1 : 0;
  }
  return static_cast<double>(shown) / static_cast<double>(count);
}

TEST(GpuOptimizers, EveryOneMovesWeightsAsOnTheCpu) {
  for (const Device d : gpus())
    for (const auto& [name, maker] : optimizers()) {
      SCOPED_TRACE(cat(name, " on ", d));
      const Trained cpu = train_small(maker, Device(), {}, true);
      EXPECT_GT(expect_equal_moves(train_small(maker, d), cpu, cpu), 0.8);
    }
}

TEST(GpuOptimizers, TheListHoldsEveryOptimizer) {
  std::set<std::string> listed{"LBFGS"};
  for (const auto& [name, maker] : optimizers()) listed.insert(name.substr(0, name.find(',')));
  std::set<std::string> known = names_in_headers("optim", "class (\\w+)( final)? : public (Optimizer|Adam)\\b");
  known.insert("LBFGS");
  EXPECT_GT(known.size(), 10u);
  EXPECT_EQ(known, listed);
}

TEST(GpuOptimizers, ClippedGradientsMoveWeightsAsOnTheCpu) {
  const Maker sgd = optimizers().at("SGD");
  const std::map<std::string, std::function<void(const std::vector<Tensor>&)>> clips{
      {"norm", [](const auto& p) { optim::clip_grad_norm_(p, 0.5); }},
      {"largest", [](const auto& p) { optim::clip_grad_norm_(p, 0.1, {.norm_type = HUGE_VAL}); }},
      {"value", [](const auto& p) { optim::clip_grad_value_(p, 0.05); }}};
  const Trained free = train_small(sgd, Device(), {}, true);
  for (const Device d : gpus())
    for (const auto& [name, clip] : clips) {
      SCOPED_TRACE(cat(name, " on ", d));
      const Trained cpu = train_small(sgd, Device(), clip, true);
      EXPECT_NE(cpu.weights.back(), free.weights.back());  // something was clipped
      EXPECT_GT(expect_equal_moves(train_small(sgd, d, clip), cpu, cpu), 0.8);
    }
}

TEST(GpuOptimizers, AveragesAreTheCpus) {
  const Maker sgd = optimizers().at("SGD");
  optim::EmaOptions average{.decay = 0.7, .warm_up = true};
  const Trained gradients = train_small(sgd, Device(), {}, true);
  for (const Device d : gpus())
    EXPECT_GT(expect_equal_moves(train_small(sgd, d, {}, false, &average),
                                 train_small(sgd, Device(), {}, false, &average), gradients),
              0.8);
}

// The host drives it; a search along a line stops where the loss is flat, so the losses are compared: each evaluation
// adds up kBatch * kOut squares of numbers behind kIn + kHidden products, and 5 steps carry the differences on.
TEST(GpuOptimizers, LbfgsGoesDownAsOnTheCpu) {
  const auto losses = [](Device d, optim::LineSearch search) {
    const auto net = small_network(d);
    optim::LBFGS optimizer(net->named_parameters(), {.lr = 0.5, .max_iter = 2, .line_search = search});
    const Tensor x = batch({kBatch, kIn}, d, 5), y = batch({kBatch, kOut}, d, 6);
    Values out;
    for (int i = 0; i < kSteps; ++i)
      out.push_back(optimizer.step([&] {
        optimizer.zero_grad();
        Tensor loss = mse_loss((*net)(x), y);
        loss.backward();
        return loss;
      }));
    return out;
  };
  for (const Device d : gpus())
    for (const optim::LineSearch search : {optim::LineSearch::none, optim::LineSearch::strong_wolfe}) {
      const Values cpu = losses(Device(), search), gpu = losses(d, search);
      for (int i = 0; i < kSteps; ++i)
        EXPECT_NEAR(gpu[i], cpu[i], (i + 1) * 64 * (kBatch * kOut + kIn + kHidden) * epsilon_of(DType::f32) / 2) << i;
      EXPECT_LT(gpu.back(), 0.9 * gpu.front());
    }
}

// ---- the article's network and the digits ----

struct Data {
  Tensor x, labels;  // [batches, batch, inputs], [batches, batch]; on the CPU
  int64_t outputs;
};

Data article_data(int64_t batches) {
  manual_seed(1);
  return {randn({batches, 64, 1000}).eval(), randint(0, 10, {batches, 64}).eval(), 10};
}

Data digits_data() {
  const Digits& digits = load_digits();
  constexpr int64_t kSamples = 64;
  const int64_t count = digits.count / kSamples;
  const auto used = static_cast<size_t>(count * kSamples);
  return {Tensor::from(std::span(digits.images).first(used * Digits::kPixels), {count, kSamples, Digits::kPixels}),
          Tensor::from(std::span(digits.labels).first(used), {count, kSamples}), 10};
}

Values losses_of(const Data& data, Device d, bool captured = false) {
  constexpr int64_t kWidth = 512, kCount = 20;
  manual_seed(7);
  nn::Sequential net(std::make_shared<nn::Linear>(data.x.size(2), kWidth), std::make_shared<nn::ReLU>(),
                     std::make_shared<nn::Linear>(kWidth, data.outputs));
  net.to(d);
  optim::Adam adam(net.named_parameters(), {.lr = 1e-3});
  const Tensor x = data.x.to(d).eval(), labels = data.labels.to(d).eval();
  const auto step = [&](const Tensor& inputs, const Tensor& targets) {
    adam.zero_grad();
    Tensor loss = cross_entropy(net(inputs), targets);
    loss.backward();
    adam.step();
    return loss;
  };
  auto replayed = capture(step);
  std::vector<Tensor> losses;
  for (int64_t i = 0; i < kCount; ++i) {
    const int64_t at = i % x.size(0);
    losses.push_back(captured ? replayed(x[at], labels[at]) : step(x[at], labels[at]));
  }
  return values_of(losses);
}

// The bound of `outrace parity`: a step's products add up so many terms, each rounded once, and steps pass errors on.
void expect_equal_losses(const Data& data) {
  const double terms = static_cast<double>(data.x.size(2) + 512 + data.x.size(1));
  const Values cpu = losses_of(data, Device());
  for (const Device d : gpus()) {
    const Values gpu = losses_of(data, d);
    ASSERT_EQ(gpu.size(), 20u);
    for (size_t i = 0; i < gpu.size(); ++i)
      EXPECT_NEAR(gpu[i], cpu[i],
                  static_cast<double>(i + 1) * terms * epsilon_of(DType::f32) / 2 * std::max(1.0, cpu[i]))
          << d.str() << ", step " << i;
    // A replayed step is the same program: to the last bit.
    EXPECT_EQ(losses_of(data, d, true), gpu);
  }
}

TEST(GpuTraining, TwentyStepsOfTheArticlesNetworkGiveTheCpusLosses) { expect_equal_losses(article_data(4)); }
TEST(GpuTraining, TwentyStepsOfTheDigitsGiveTheCpusLosses) { expect_equal_losses(digits_data()); }

// ---- state ----

// Weights after `steps` more steps of Adam.
Values go_on(nn::Module& net, optim::Optimizer& optimizer, Device d, int steps) {
  const Tensor x = batch({kBatch, kIn}, d, 5), y = batch({kBatch, kOut}, d, 6);
  for (int i = 0; i < steps; ++i) {
    optimizer.zero_grad();
    mse_loss(net(x), y).backward();
    optimizer.step();
  }
  return values_of(net.parameters());
}

TEST(GpuTraining, StateSavedOnADeviceGoesOnThereAndElsewhere) {
  for (const Device d : gpus()) {
    const auto net = small_network(d);
    optim::Adam adam(net->named_parameters(), {.lr = 0.01});
    go_on(*net, adam, d, 2);
    nn::NamedTensors weights;
    for (const auto& [name, t] : net->state_dict()) weights.emplace_back(name, t.to(Device()).eval());
    const StateDict state = adam.state_dict();
    const Values there = go_on(*net, adam, d, 2);

    const auto again = small_network(d, 99);
    again->load_state_dict(weights);
    optim::Adam other(again->named_parameters(), {.lr = 0.01});
    other.load_state_dict(state);
    EXPECT_EQ(go_on(*again, other, d, 2), there);  // to the last bit
    EXPECT_EQ(again->parameters()[0].device(), d);

    // On the CPU: Adam moves a weight by at most lr a step, so a rounding of a gradient by no more.
    const auto here = small_network(Device(), 99);
    here->load_state_dict(net->state_dict());
    EXPECT_EQ(values_of(here->parameters()), there);
    here->load_state_dict(weights);
    optim::Adam third(here->named_parameters(), {.lr = 0.01});
    third.load_state_dict(state);
    const Values on_cpu = go_on(*here, third, Device(), 2);
    for (size_t i = 0; i < there.size(); ++i) EXPECT_NEAR(on_cpu[i], there[i], 1e-5);
  }
}

TEST(GpuTraining, AModuleMovesThereAndBack) {
  for (const Device d : gpus()) {
    const auto net = small_network(Device());
    const Values before = values_of(net->parameters());
    const Tensor x = batch({kBatch, kIn}, Device(), 5);
    const Values y = (*net)(x).to_vector<double>();
    optim::SGD sgd(net->named_parameters(), {.lr = 0.1, .momentum = 0.9});
    net->to(d);
    for (const Tensor& p : net->parameters()) EXPECT_EQ(p.device(), d);
    EXPECT_EQ(values_of(net->parameters()), before);
    EXPECT_THROW((*net)(x), Error);  // an input that stayed behind
    const Values there = (*net)(x.to(d)).to_vector<double>();
    for (size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(there[i], y[i], 64 * epsilon_of(DType::f32));
    const Values trained = go_on(*net, sgd, d, 2);  // the optimizer's handles moved along
    net->to(Device());
    EXPECT_EQ(values_of(net->parameters()), trained);
    EXPECT_NE(trained, before);
    const Values back = (*net)(x).to_vector<double>();
    EXPECT_NE(back, y);
  }
}

TEST(GpuTraining, TwoDevicesInOneGraph) {
  const auto run = [](Device first, Device second) {
    manual_seed(8);
    nn::Linear a(kIn, kHidden), b(kHidden, kOut);
    a.to(first);
    b.to(second);
    optim::SGD sgd({a.weight, a.bias, b.weight, b.bias}, {.lr = 0.1});
    const Tensor x = batch({kBatch, kIn}, first, 5), y = batch({kBatch, kOut}, second, 6);
    Values out;
    auto step = [&](const Tensor& inputs, const Tensor& targets) {
      sgd.zero_grad();
      Tensor loss = mse_loss(b(tanh(a(inputs)).to(second)), targets);
      loss.backward();
      sgd.step();
      return loss;
    };
    for (int i = 0; i < 3; ++i) out.push_back(step(x, y).item());
    auto captured = capture(step);
    for (int i = 0; i < 3; ++i) out.push_back(captured(x, y).item());
    EXPECT_EQ(a.weight.device(), first);
    EXPECT_EQ(b.weight.device(), second);
    return out;
  };
  const Values reference = run(Device(), Device());
  for (const Device d : gpus())
    for (const auto& [first, second] : {std::pair(Device(), d), std::pair(d, Device())}) {
      const Values got = run(first, second);
      for (size_t i = 0; i < got.size(); ++i)
        EXPECT_NEAR(got[i], reference[i],
                    static_cast<double>(i + 1) * (kIn + kHidden + kBatch) * epsilon_of(DType::f32) / 2 *
                        std::max(1.0, reference[i]))
            << i;
      EXPECT_LT(got.back(), got.front());
    }
}

}  // namespace
}  // namespace outrace
