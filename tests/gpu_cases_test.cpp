// label: backend
// Real failures of other frameworks on accelerators, and those of the CPU's list whose right answer must not depend on
// the device: each test names the behaviour, the comment the report it comes from. As tests/cases_test.cpp.
#include <limits>
#include <thread>

#include "expect_error.h"
#include "expect_near.h"
#include "gpu_support.h"

namespace outrace {
namespace {

Tensor f32(const std::vector<float>& v, const Shape& s, Device d) { return Tensor::from(v, s).to(d).eval(); }
Tensor ids(const std::vector<int64_t>& v, Device d) {
  return Tensor::from(v, {static_cast<int64_t>(v.size())}).to(d).eval();
}

struct Training {
  nn::Linear layer{6, 3};
  std::unique_ptr<optim::Adam> adam;
  Tensor x;
  explicit Training(Device d) {
    manual_seed(5);
    layer.load_state_dict({{"weight", randn({3, 6})}, {"bias", zeros({3})}});
    layer.to(d);
    adam = std::make_unique<optim::Adam>(layer.parameters(), optim::AdamOptions{.lr = 0.1});
    x = randn({4, 6}).to(d).eval();
  }
  Tensor step(const Tensor& labels) {
    adam->zero_grad();
    Tensor loss = cross_entropy(layer(x), labels);
    loss.backward();
    adam->step();
    return loss;
  }
  bool is_finite() const {
    for (const float v : layer.weight.to_vector<float>())
      if (!std::isfinite(v)) return false;
    return true;
  }
};

// tensorflow#8484: step() has returned before the device sees the label, so who reads a value first is told. The step's
// other calls have been done by then (docs/architecture.md), with nothing read out of bounds; training goes on.
TEST(GpuCases, LabelOutOfRange) {
  for (const Device d : gpus())
    for (const int64_t bad : {int64_t{3}, int64_t{-1}, INT64_MAX}) {
      Training t(d);
      const Tensor good = ids({0, 1, 2, 0}, d);
      t.step(good).item();
      const std::string text = error_of([&] { t.step(ids({0, 1, bad, 0}, d)).item(); }, ErrorKind::value);
      expect_has(text, "[cross_entropy]");
      expect_has(text, "(3 classes)");
      expect_has(text, cat("target 2 is ", bad));
      EXPECT_TRUE(t.is_finite());
      double first = 0, last = 0;
      for (int i = 0; i < 20; ++i) (i == 0 ? first : last) = t.step(good).item();
      EXPECT_LT(last, first);
    }
}

// pytorch#74079: replayed steps that follow the bad one hide nothing; the error comes once, at the next wait.
TEST(GpuCases, ErrorsSeenLateAreReportedOnce) {
  for (const Device d : gpus()) {
    Training t(d);
    auto captured = capture([&](const Tensor& labels) { return t.step(labels); });
    const Tensor good = ids({0, 1, 2, 0}, d), bad = ids({0, 1, 7, 0}, d), worse = ids({0, 9, 7, 0}, d);
    captured(good).item();
    captured(bad);
    captured(worse);
    captured(good);
    expect_has(error_of([&] { backend_for(d).synchronize(d); }, ErrorKind::value), "target 2 is 7");
    backend_for(d).synchronize(d);
    EXPECT_TRUE(std::isfinite(captured(good).item()));
    EXPECT_TRUE(t.is_finite());
  }
}

// pytorch#74079
TEST(GpuCases, GatherOutOfRangeIsReportedAtTheNextSync) {
  for (const Device d : gpus()) {
    const Tensor x = arange(0, 10, 1, {.device = d}).eval();
    const Tensor wrong = gather(x, 0, ids({11}, d)), right = gather(x, 0, ids({3}, d));
    const std::string text = error_of(
        [&] {
          wrong.eval();
          right.eval();
          static_cast<void>(right.to_vector<float>());
        },
        ErrorKind::value);
    expect_has(text, "gather");
    expect_has(text, "11");
    expect_has(text, "10");
    EXPECT_EQ(right.to_vector<float>(), std::vector<float>{3});
    EXPECT_EQ(sum(x).item(), 45);
  }
}

// pytorch#27600: what is too large for the device is refused with the sizes, and nothing else is lost.
TEST(GpuCases, OutOfMemoryLeavesEverythingUsable) {
  constexpr int64_t kHuge = int64_t{1} << 44;
  for (const Device d : gpus()) {
    const Tensor kept = f32({1, 2, 3}, {3}, d), one = f32({1}, {1}, d), good = ids({0, 1, 2, 0}, d);
    Training t(d);
    t.step(good).item();
    const std::vector<float> before = t.layer.weight.to_vector<float>();
    for (int i = 0; i < 100; ++i) {
      const std::string text = error_of([&] { (one + expand(one, {kHuge})).eval(); }, ErrorKind::memory);
      if (i == 0) expect_has(text, d.str());
      if (i == 0) expect_has(text, std::to_string(4 * kHuge));
      EXPECT_EQ((kept + 1).to_vector<float>(), (std::vector<float>{2, 3, 4}));
    }
    // In the middle of a backward pass.
    Tensor w = f32({1}, {1}, d);
    w.requires_grad_();
    optim::SGD sgd({w}, {.lr = 1});
    for (int i = 0; i < 3; ++i) {
      const auto step = [&] {
        sgd.zero_grad();
        sum(cumsum(square(expand(w, {kHuge})), 0)).backward();
        sgd.step();
      };
      error_of(step, ErrorKind::memory);
      EXPECT_EQ(w.item(), 1);
      EXPECT_EQ(sgd.steps(), 0);
    }
    EXPECT_EQ(t.layer.weight.to_vector<float>(), before);
    EXPECT_TRUE(std::isfinite(t.step(good).item()));
  }
}

// SimpleTuner#40
TEST(GpuCases, DeviceIndexOutOfRange) {
  const std::vector<Device> found = gpus();
  for (const Device d : found) {
    int of_kind = 0;
    for (const Device other : found) of_kind += other.type == d.type ? 1 : 0;
    const std::string family = d.str().substr(0, d.str().find(':'));
    for (const int index : {of_kind, 200}) {
      const std::string text =
          error_of([&] { zeros({1}, {.device = cat(family, ":", index)}).eval(); }, ErrorKind::device);
      expect_has(text, cat(family, ":", index));
      expect_has(text, std::to_string(of_kind));
    }
    for (const char* wrong : {":-1", ":999", ":x", ":"})
      error_of([&] { static_cast<void>(Device(family + wrong)); }, ErrorKind::device);
    EXPECT_EQ(zeros({1}, {.device = family}).device().index, 0);
  }
  error_of([] { static_cast<void>(Device("gpu")); }, ErrorKind::device);
}

// pytorch#88718
TEST(GpuCases, ResultsAreTheSameAtEveryRun) {
  manual_seed(4);
  const Tensor x = randn({1, 56}).eval(), w = randn({444, 56}).eval(), many = randn({1'000'000}).eval();
  const std::vector<double> exact = linear(x.to(DType::f64), w.to(DType::f64)).to_vector<double>();
  const std::vector<double> bound = linear(abs(x).to(DType::f64), abs(w).to(DType::f64)).to_vector<double>();
  for (const Device d : gpus()) {
    const Tensor gx = x.to(d).eval(), gw = w.to(d).eval(), gm = many.to(d).eval();
    const std::vector<float> line = linear(gx, gw).to_vector<float>();
    const double total = sum(gm).item();
    for (int again = 0; again < 20; ++again) {
      EXPECT_EQ(linear(gx, gw).to_vector<float>(), line);
      EXPECT_EQ(sum(gm).item(), total);
    }
    for (size_t i = 0; i < line.size(); ++i) EXPECT_NEAR(line[i], exact[i], 57 * 0x1p-24 * bound[i]);
  }
}

// pytorch#36461: an upload has read its source when it returns
TEST(GpuCases, HostDataIsCopied) {
  for (const Device d : gpus()) {
    std::vector<float> data(100'000, 3);
    const Tensor t = Tensor::from(data, {100'000}).to(d).eval();
    data.assign(data.size(), 9);
    data.clear();
    data.shrink_to_fit();
    EXPECT_EQ(t.to_vector<float>(), std::vector<float>(100'000, 3));
  }
}

// pytorch#34052
TEST(GpuCases, SharedGeneratorAndModelInManyThreads) {
  for (const Device d : gpus()) {
    nn::Linear shared(6, 4);
    shared.to(d);
    const Tensor x = ones({3, 6}, {.device = d}).eval();
    std::vector<float> expected;
    {
      NoGrad off;
      expected = linear(x, shared.weight, shared.bias).to_vector<float>();
    }
    const auto draw = [&] {
      return randint(0, int64_t{1} << 62, {100}, {.dtype = DType::i64, .device = d}).to_vector<int64_t>();
    };
    manual_seed(1);
    std::vector<int64_t> one;
    for (int i = 0; i < 40; ++i)
      for (const int64_t v : draw()) one.push_back(v);
    manual_seed(1);
    std::vector<std::vector<int64_t>> drawn(8);
    std::vector<int> wrong(8, 0);
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t)
      threads.emplace_back([&, t] {
        NoGrad off;
        for (int i = 0; i < 5; ++i) {
          for (const int64_t v : draw()) drawn[t].push_back(v);
          wrong[t] += linear(x, shared.weight, shared.bias).to_vector<float>() != expected;
        }
      });
    for (std::thread& t : threads) t.join();
    std::vector<int64_t> all;
    for (const auto& v : drawn) all.insert(all.end(), v.begin(), v.end());
    std::sort(one.begin(), one.end());
    std::sort(all.begin(), all.end());
    EXPECT_EQ(one, all);
    EXPECT_EQ(wrong, std::vector<int>(8, 0));
  }
}

// pytorch#70348: as on the CPU, NaN for the mean of nothing, gradient and weights untouched
TEST(GpuCases, AllTargetsIgnored) {
  for (const Device d : gpus()) {
    Tensor w = f32({1, 2, 3}, {1, 3}, d);
    w.requires_grad_();
    optim::SGD sgd({w}, {.lr = 0.1});
    Tensor loss = cross_entropy(w * 1.5, ids({-1}, d), {.ignore_index = -1});
    loss.backward();
    sgd.step({.keep_grads = true});
    EXPECT_TRUE(std::isnan(loss.item()));
    expect_near(w.grad(), {0, 0, 0}, 0);
    expect_near(w, {1, 2, 3}, 0);
  }
}

// pytorch#131060, pytorch#11752
TEST(GpuCases, SoftmaxOfInfinitiesAndHugeLogits) {
  constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (const Device d : gpus()) {
    expect_near(softmax(f32({-inf, -inf, inf, 0, nan, 0, -inf, 0}, {4, 2}, d)), {NAN, NAN, NAN, NAN, NAN, NAN, 0, 1},
                0);
    for (const float big : {1e8f, -1e8f})
      EXPECT_NEAR(cross_entropy(f32({big, big}, {1, 2}, d), ids({1}, d)).item(), std::log(2.0), 1e-6);
  }
}

// onnxruntime#28463
TEST(GpuCases, LayerNormOfCloseLargeValues) {
  for (const Device d : gpus()) {
    nn::LayerNorm norm({4});
    norm.to(d);
    for (const float base : {40000.0f, 80000.0f})
      expect_near(norm(f32({base, base + 1, base + 2, base + 3}, {1, 4}, d)),
                  {-1.3416354, -0.4472118, 0.4472118, 1.3416354}, 1e-4);
  }
}

// Flux.jl#2715: in evaluation the input has a gradient, and a second backward pass adds
TEST(GpuCases, BatchNormInEvaluationDifferentiates) {
  for (const Device d : gpus()) {
    nn::BatchNorm1d norm(1, {.eps = 1});
    norm.load_state_dict({{"weight", full({1}, 2)}, {"running_mean", ones({1})}, {"running_var", full({1}, 3)}},
                         {.strict = false});
    norm.to(d);
    norm.eval();
    Tensor x = f32({3}, {1, 1}, d);
    x.requires_grad_();
    for (int times = 1; times <= 2; ++times) {
      const Tensor y = norm(x);
      sum(y).backward();
      EXPECT_EQ(y.item(), 2);
      for (const Tensor& g : {x.grad(), norm.weight.grad(), norm.bias.grad()}) EXPECT_EQ(g.item(), times);
    }
  }
}

// fairseq#4076, pytorch#1812: rows that are none are errors; bags that are empty are 0, offsets that fall are errors
TEST(GpuCases, EmbeddingIndicesAndBags) {
  for (const Device d : gpus()) {
    const Tensor table = f32({1, 10, 2, 20, 3, 30}, {3, 2}, d);
    for (const int64_t bad : {int64_t{-1}, int64_t{3}, INT64_MAX})
      expect_has(error_of(
                     [&] {
                       static_cast<void>(embedding(table, ids({0, bad}, d)).to_vector<float>());
                     },
                     ErrorKind::value),
                 std::to_string(bad));
    EXPECT_EQ(embedding(table, ids({2}, d)).to_vector<float>(), (std::vector<float>{3, 30}));
    const auto bags = [&](const std::vector<int64_t>& offsets, BagMode mode) {
      return embedding_bag(table, ids({0, 1, 2}, d), ids(offsets, d), mode).to_vector<float>();
    };
    EXPECT_EQ(bags({0, 0, 2, 3}, BagMode::mean), (std::vector<float>{0, 0, 1.5, 15, 3, 30, 0, 0}));
    EXPECT_EQ(bags({0, 0, 2, 3}, BagMode::max), (std::vector<float>{0, 0, 2, 20, 3, 30, 0, 0}));
    for (const std::vector<int64_t>& wrong : {std::vector<int64_t>{1, 2}, {0, 2, 1}, {0, 4}})
      expect_has(error_of([&] { static_cast<void>(bags(wrong, BagMode::sum)); }, ErrorKind::value), "embedding_bag");
    EXPECT_EQ(bags({0}, BagMode::sum), (std::vector<float>{6, 60}));
  }
}

// numpy#22956
TEST(GpuCases, MeanOfManyOnes) {
  for (const Device d : gpus()) {
    const Tensor many = expand(ones({1}, {.device = d}), {20'000'000});
    EXPECT_NEAR(sum(many).item(), 2e7, 20);
    EXPECT_NEAR(mean(many).item(), 1, 1e-6);
  }
}

}  // namespace
}  // namespace outrace
