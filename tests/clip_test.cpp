// Gradient clipping: norms, scaled gradients, overflow, values that are not finite, captured steps.
#include "outrace/optim/clip.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "expect_error.h"
#include "outrace/graph/program_cache.h"
#include "outrace/graph/recorder.h"
#include "outrace/outrace.h"

namespace outrace {
namespace {

using optim::clip_grad_norm_;
using optim::clip_grad_value_;
using Values = std::vector<double>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A parameter with the gradient g.
Tensor with_gradient(const Values& g, DType dtype = DType::f32) {
  const Shape shape{static_cast<int64_t>(g.size())};
  Tensor p = zeros(shape, {.dtype = dtype}).requires_grad_();
  sum(p * Tensor::from(g, shape).to(dtype)).backward();
  return p;
}

Values gradient(const Tensor& p) { return p.grad().to_vector<double>(); }

double norm_of(const std::vector<Values>& gradients, double p) {
  long double total = 0;
  for (const Values& g : gradients)
    for (double v : g) {
      const long double a = std::abs(v);
      total = p == kInfinity ? std::max(total, a) : total + std::pow(a, static_cast<long double>(p));
    }
  return static_cast<double>(p == kInfinity ? total : std::pow(total, 1 / static_cast<long double>(p)));
}

TEST(Clip, NormAndScaleForEveryType) {
  const std::vector<Values> gradients{{3, -4, 0}, {12}, {0.5, -0.25, 8, 1}};
  for (DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16})
    for (double p : {1.0, 2.0, 3.5, kInfinity})
      for (double max_norm : {0.0, 2.0, 1000.0}) {
        SCOPED_TRACE(cat(name_of(dtype), " p ", p, " max ", max_norm));
        // The power and its root by exp and log: 3 ulp each of arguments up to p * log 13.
        const double unit = dtype == DType::f64 ? 0x1p-52 : 0x1p-23, relative = 40 * unit;
        std::vector<Tensor> parameters;
        for (const Values& g : gradients) parameters.push_back(with_gradient(g, dtype));
        const double expected = norm_of(gradients, p);
        const Tensor norm = clip_grad_norm_(parameters, max_norm, {.norm_type = p});
        EXPECT_EQ(norm.dtype(), dtype == DType::f64 ? DType::f64 : DType::f32);
        EXPECT_NEAR(norm.item(), expected, relative * expected);
        const double factor = std::min(1.0, max_norm / (expected + 1e-6));
        for (size_t i = 0; i < gradients.size(); ++i) {
          const Values got = gradient(parameters[i]);
          for (size_t k = 0; k < got.size(); ++k)
            EXPECT_NEAR(got[k], gradients[i][k] * factor,
                        (relative + epsilon_of(dtype)) * std::abs(gradients[i][k]) * factor);
        }
      }
}

TEST(Clip, BelowTheBoundNothingChanges) {
  const Tensor p = with_gradient({0.1, -0.0, 1e-42});
  const std::vector<float> before = p.grad().to_vector<float>();
  clip_grad_norm_({p}, 5);
  const std::vector<float> after = p.grad().to_vector<float>();
  EXPECT_EQ(std::memcmp(before.data(), after.data(), 12), 0);
}

// pytorch#46849
TEST(Clip, SquaresDoNotOverflow) {
  const Tensor p = with_gradient(Values(100, 1e20));
  const Tensor norm = clip_grad_norm_({p}, 1);
  EXPECT_NEAR(norm.item(), 1e21, 1e16);
  for (double g : gradient(p)) EXPECT_NEAR(g, 0.1, 1e-6);
  const Tensor tiny = with_gradient(Values(100, 1e-30));  // squares would vanish
  EXPECT_NEAR(clip_grad_norm_({tiny}, 1).item(), 1e-29, 1e-34);
  const Tensor wide = with_gradient(Values(4, 1e200), DType::f64);
  EXPECT_NEAR(clip_grad_norm_({wide}, 1).item(), 2e200, 1e187);
}

TEST(Clip, ANormThatIsNotFiniteLeavesGradientsAlone) {
  for (double bad : {kInfinity, -kInfinity, std::numeric_limits<double>::quiet_NaN()})
    for (double p : {1.0, 2.0, 3.0, kInfinity}) {
      const Tensor a = with_gradient({1e20, bad, -0.0}), b = with_gradient({2, 3});
      const std::vector<float> before = a.grad().to_vector<float>();
      const Tensor norm = clip_grad_norm_({a, b}, 1, {.norm_type = p});
      EXPECT_FALSE(std::isfinite(norm.item())) << bad << " " << p;
      if (std::isinf(bad)) {
        EXPECT_EQ(norm.item(), kInfinity);
      }
      const std::vector<float> after = a.grad().to_vector<float>();
      EXPECT_EQ(std::memcmp(before.data(), after.data(), 12), 0);
      EXPECT_EQ(gradient(b), (Values{2, 3}));
      expect_has(error_of(
                     [&] {
                       clip_grad_norm_({a, b}, 1, {.norm_type = p, .error_if_nonfinite = true});
                     },
                     ErrorKind::diverged),
                 "not finite");
      EXPECT_EQ(gradient(b), (Values{2, 3}));
    }
}

TEST(Clip, NoGradientZeroGradientNoElements) {
  Tensor none = zeros({3}).requires_grad_();
  EXPECT_EQ(clip_grad_norm_({none}, 1).item(), 0);
  EXPECT_EQ(clip_grad_norm_({}, 1).item(), 0);
  const Tensor zero = with_gradient({0, 0});
  const Tensor empty = with_gradient({});
  EXPECT_EQ(clip_grad_norm_({zero, empty, none}, 1).item(), 0);
  EXPECT_EQ(gradient(zero), (Values{0, 0}));
  EXPECT_FALSE(none.grad().defined());
}

TEST(Clip, ValuesAreClamped) {
  const Tensor p = with_gradient({-3, 0.25, 7, kInfinity, std::numeric_limits<double>::quiet_NaN()});
  clip_grad_value_({p}, 0.5);
  const Values got = gradient(p);
  EXPECT_EQ(Values(got.begin(), got.begin() + 4), (Values{-0.5, 0.25, 0.5, 0.5}));
  EXPECT_TRUE(std::isnan(got[4]));
  const Tensor half = with_gradient({-3, 0.25}, DType::f16);
  clip_grad_value_({half}, 1);
  EXPECT_EQ(gradient(half), (Values{-1, 0.25}));
}

TEST(Clip, OptionsAreChecked) {
  const Tensor p = with_gradient({1});
  expect_has(error_of([&] { clip_grad_norm_({p}, -1); }, ErrorKind::value), "got -1");
  expect_has(error_of([&] { clip_grad_norm_({p}, 1, {.norm_type = 0}); }, ErrorKind::value), "got 0");
  expect_has(error_of([&] { clip_grad_value_({p}, -2); }, ErrorKind::value), "got -2");
}

struct Outcome {
  Values losses, norms, weights;
  int64_t programs = 0;
};

enum class Loop { plain, item, captured, kept };

Outcome train(Loop loop) {
  manual_seed(4);
  nn::Linear first(12, 9), last(9, 4);
  std::vector<Tensor> parameters = first.parameters();
  for (const Tensor& p : last.parameters()) parameters.push_back(p);
  optim::Adam optimizer(parameters, {.lr = 1e-2});
  const Tensor x = randn({8, 6, 12}).eval();
  const Tensor t = randint(0, 4, {8, 6}).eval();
  Recorder::current().flush();  // what other tests left behind
  ProgramCache::global().clear();
  const auto step = [&](const Tensor& in, const Tensor& labels) {
    optimizer.zero_grad();
    Tensor loss = cross_entropy(last(relu(first(in))), labels);
    loss.backward();
    const Tensor norm = clip_grad_norm_(parameters, 0.25);
    clip_grad_value_(parameters, 0.05);
    if (loop == Loop::item) (void)norm.item();
    optimizer.step({.keep_grads = loop == Loop::kept});
    return std::vector<Tensor>{loss, norm};
  };
  auto captured = capture([&](const Tensor& in, const Tensor& labels) { return step(in, labels); });
  Outcome out;
  for (int i = 0; i < 8; ++i) {
    const std::vector<Tensor> r = loop == Loop::captured ? captured(x[i], t[i]) : step(x[i], t[i]);
    out.losses.push_back(r[0].item());
    out.norms.push_back(r[1].item());
    if (loop == Loop::kept) {
      double most = 0;
      for (const Tensor& p : parameters)
        for (double g : gradient(p)) most = std::max(most, std::abs(g));
      EXPECT_EQ(most, static_cast<double>(0.05f));
    }
  }
  out.programs = ProgramCache::global().compiled();
  for (const Tensor& p : parameters)
    for (double v : p.to_vector<double>()) out.weights.push_back(v);
  return out;
}

TEST(Clip, BitsDoNotDependOnHowTheLoopIsWritten) {
  const Outcome plain = train(Loop::plain);
  EXPECT_EQ(plain.programs, 1);
  EXPECT_GT(plain.norms[0], 0.25);
  for (Loop loop : {Loop::item, Loop::captured, Loop::kept}) {
    const Outcome other = train(loop);
    EXPECT_EQ(plain.losses, other.losses) << static_cast<int>(loop);
    EXPECT_EQ(plain.norms, other.norms) << static_cast<int>(loop);
    EXPECT_EQ(plain.weights, other.weights) << static_cast<int>(loop);
  }
}

TEST(Clip, ACapturedStepCannotAskForTheNorm) {
  Tensor p = ones({2}).requires_grad_();
  optim::SGD optimizer({p});
  auto step = capture([&] {
    sum(p).backward();
    clip_grad_norm_({p}, 1, {.error_if_nonfinite = true});
    optimizer.step();
  });
  expect_has(error_of([&] { step(); }, ErrorKind::state), "while a step is being recorded");
  EXPECT_EQ(p.to_vector<double>(), (Values{1, 1}));
}

TEST(Clip, AStoredGradientIsClippedAndStoredAgain) {
  Tensor p = with_gradient({3, 4});
  EXPECT_EQ(gradient(p), (Values{3, 4}));
  clip_grad_norm_({p}, 2.5);
  sum(p * 2.0).eval();
  sum(p).backward();  // adds 1 to the clipped gradient
  const Values got = gradient(p);
  EXPECT_NEAR(got[0], 2.5, 2e-6);
  EXPECT_NEAR(got[1], 3, 2e-6);
}

}  // namespace
}  // namespace outrace
