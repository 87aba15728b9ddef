// label: backend
// What GPUs add: devices found, errors that kernels report, numbers equal to the CPU's. Ops are checked by
// forward_test. OpenCL is run through whichever device is found (PoCL in the suite).
#include <gtest/gtest.h>

#include <cmath>

#include "gpu_support.h"
#include "outrace/backend/backend.h"
#include "outrace/ops/ops.h"
#include "outrace/outrace.h"

namespace outrace {
namespace {

TEST(Gpu, ArraysComeBackAndReductionsSeeEveryElement) {
  for (const Device d : gpus()) {
    const Tensor x = Tensor::from(std::vector<float>{1, 2, 3, 4, 5, 6}, {2, 3}).to(d);
    EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{1, 2, 3, 4, 5, 6}));
    EXPECT_EQ((x.t() * 2).to_vector<float>(), (std::vector<float>{2, 8, 4, 10, 6, 12}));
    EXPECT_EQ(sum(x * x, {.axes = {0}}).to_vector<float>(), (std::vector<float>{17, 29, 45}));
    EXPECT_EQ(sum(x.to(DType::i64)).to_vector<int64_t>(), (std::vector<int64_t>{21}));
    const Tensor y = arange(0, 200'000, 1, {.dtype = DType::i64, .device = d}).reshape({4, 500, 100});
    for (const std::vector<int64_t>& axes : std::vector<std::vector<int64_t>>{{}, {0}, {1}, {2}, {0, 2}, {0, 1}})
      EXPECT_EQ(sum(y, {.axes = axes}).to_vector<int64_t>(), sum(y.to(Device()), {.axes = axes}).to_vector<int64_t>());
  }
}

template <class T>
void expect_same_draws(Device d, DType dtype) {
  const auto draw = [&](Device on) {
    manual_seed(7);
    std::vector<std::vector<T>> out;
    for (const Shape& s : {Shape{3}, Shape{1001}}) {
      out.push_back(randn(s, {.dtype = dtype, .device = on}).template to_vector<T>());
      out.push_back(normal(s, 2, 0.5, {.dtype = dtype, .device = on}).template to_vector<T>());
      out.push_back(uniform(s, -1, 3, {.dtype = dtype, .device = on}).template to_vector<T>());
    }
    return out;
  };
  EXPECT_EQ(draw(d), draw(Device())) << name_of(dtype);
}

TEST(Gpu, RandomNumbersAreTheCpusToTheLastBit) {
  for (const Device d : gpus()) {
    for (const DType t : {DType::f32, DType::bf16, DType::f16}) expect_same_draws<float>(d, t);
    expect_same_draws<double>(d, DType::f64);
    for (const DType t : {DType::i64, DType::i32, DType::u8}) {
      const auto draw = [&](Device on) {
        manual_seed(3);
        return randint(-5, 1'000'000, {777}, {.dtype = t, .device = on}).to_vector<int64_t>();
      };
      EXPECT_EQ(draw(d), draw(Device())) << name_of(t);
    }
  }
}

TEST(Gpu, AnEmptyArrayMayLieAtABlocksEnd) {
  constexpr int64_t kCount = 1 << 20;  // whole pages: the block ends where the array does
  for (const Device d : gpus()) {
    const Tensor x = ones({kCount}).to(d).eval(), rest = x.slice(0, kCount, kCount).eval();
    EXPECT_TRUE((rest + 1).to_vector<float>().empty());
    EXPECT_EQ(sum(rest).item(), 0);
  }
}

TEST(Gpu, ExpIsTheCpusToTheLastBit) {
  std::vector<float> x{0.0f, -0.0f, 88.7f, 89.5f, -87.3f, -103.9f, -200.0f, HUGE_VALF, -HUGE_VALF};
  for (int i = -60'000; i < 60'000; ++i) x.push_back(static_cast<float>(i) * 0.00175f);
  const Tensor host = Tensor::from(x, {static_cast<int64_t>(x.size())});
  for (const Device d : gpus()) EXPECT_EQ(exp(host.to(d)).to_vector<float>(), exp(host).to_vector<float>());
}

TEST(Gpu, ATargetThatIsNoClassIsReported) {
  for (const Device d : gpus()) {
    const Tensor x = zeros({3, 4}).to(d);
    const Tensor wrong = Tensor::from(std::vector<int64_t>{1, 9, 0}, {3}).to(d);
    try {
      static_cast<void>(cross_entropy(x, wrong).item());
      ADD_FAILURE() << "no error";
    } catch (const Error& e) {
      EXPECT_STREQ(e.what(),
                   "[cross_entropy] a target must be a class from 0 to 3 (4 classes) or ignore_index "
                   "(-100); target 1 is 9");
    }
    const Tensor right = Tensor::from(std::vector<int64_t>{1, 3, 0}, {3}).to(d);
    EXPECT_NEAR(cross_entropy(x, right).item(), 1.3862944, 1e-6);
  }
}

// Losses of 20 steps of a network like the article's. Adam divides by the gradient's size, so a rounding of 2^-24 in a
// gradient may move a weight by lr * 2^-24 / (share of the gradient that is left after cancellation, about 1e-3): 20
// steps of 1e-3 through 64 weights each stay below 1e-4.
std::vector<double> losses_of_training(Device d) {
  manual_seed(5);
  nn::Sequential net(std::make_shared<nn::Linear>(100, 64), std::make_shared<nn::ReLU>(),
                     std::make_shared<nn::Linear>(64, 10));
  const Tensor x = randn({32, 100}).to(d);
  const Tensor labels = randint(0, 10, {32}).to(d);
  net.to(d);
  optim::Adam adam(net.parameters(), {.lr = 1e-3});
  std::vector<double> losses;
  for (int step = 0; step < 20; ++step) {
    const Tensor loss = cross_entropy(net(x), labels);
    adam.zero_grad();
    loss.backward();
    adam.step();
    losses.push_back(loss.item());
  }
  return losses;
}

TEST(Gpu, TrainingGivesTheCpusLosses) {
  const std::vector<double> reference = losses_of_training(Device());
  for (const Device d : gpus()) {
    const std::vector<double> losses = losses_of_training(d);
    for (size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(losses[i], reference[i], 1e-4) << d.str() << ", step " << i;
    EXPECT_LT(losses.back(), losses.front());
  }
}

// More arrays than a kernel takes: alone, in front of a reduction, and behind a product.
TEST(Gpu, ProgramsOfManyArraysAreSplit) {
  const auto run = [](Device d) {
    manual_seed(2);
    std::vector<Tensor> x;
    for (int i = 0; i < 60; ++i) x.push_back(randint(-9, 9, {7, 5}).to(DType::f32).to(d).eval());
    const auto total = [&](Tensor sum) {
      for (const Tensor& t : x) sum = sum + t * t;
      return sum;
    };
    std::vector<std::vector<float>> out;
    out.push_back(total(x[0]).to_vector<float>());
    out.push_back(sum(total(x[1]), {.axes = {0}}).to_vector<float>());
    out.push_back(total(matmul(x[0], x[1].t().slice(1, 0, 5))).to_vector<float>());
    // Many results beside each other, in place.
    std::vector<Tensor> y = x;
    for (size_t i = 0; i < y.size(); ++i) y[i] = y[i] + x[(i + 1) % x.size()];
    for (const Tensor& t : y) out.push_back(t.to_vector<float>());
    return out;
  };
  for (const Device d : gpus()) EXPECT_EQ(run(d), run(Device()));
}

TEST(Gpu, ProductsOfEveryTileSize) {
  for (const Device d : gpus())
    for (const Shape& s :
         {Shape{3, 5, 7}, Shape{17, 40, 33}, Shape{600, 50, 900}, Shape{64, 1500, 10}, Shape{1000, 64, 512}}) {
      manual_seed(1);
      const Tensor a = randint(-4, 4, {s[0], s[1]}).to(DType::f32), b = randint(-4, 4, {s[1], s[2]}).to(DType::f32);
      EXPECT_EQ(matmul(a.to(d), b.to(d)).to_vector<float>(), matmul(a, b).to_vector<float>()) << s.str();
    }
}

}  // namespace
}  // namespace outrace
