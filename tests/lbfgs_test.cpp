// L-BFGS: steps equal PyTorch's, saved state, failures.
#include "outrace/optim/lbfgs.h"

#include <gtest/gtest.h>

#include "expect_error.h"
#include "golden.h"
#include "outrace/outrace.h"

namespace outrace {
namespace {

using namespace optim;
using Values = std::vector<double>;
using Named = std::vector<std::pair<std::string, Tensor>>;

// By the names of tests/golden/lbfgs.json, with the options of tools/golden/optimizers.py.
const std::map<std::string, LBFGSOptions> kCases{
    {"plain", {.lr = 0.5, .max_iter = 3}},
    {"history", {.lr = 0.4, .max_iter = 2, .history_size = 2}},
    {"strong_wolfe", {.lr = 1, .max_iter = 1, .line_search = LineSearch::strong_wolfe}},
    {"strong_wolfe_long", {.lr = 8, .max_iter = 2, .max_eval = 20, .line_search = LineSearch::strong_wolfe}},
};

// loss = sum((x a + b - y)^2) / 4 + sum(a^4) / 10
struct Problem {
  Tensor x, y, a, b;
  explicit Problem(DType dtype) {
    const Golden g("lbfgs");
    x = Tensor::from(g.values("x"), {4, 2}).to(dtype).eval();
    y = Tensor::from(g.values("y"), {4, 2}).to(dtype).eval();
    start(g.values("start/a"), g.values("start/b"), dtype);
  }
  void start(const Values& at_a, const Values& at_b, DType dtype) {
    a = Tensor::from(at_a, {2, 2}).to(dtype).eval().detach().requires_grad_();
    b = Tensor::from(at_b, {2}).to(dtype).eval().detach().requires_grad_();
  }
  LBFGS::Closure closure() {
    return [this] {
      a.zero_grad();
      b.zero_grad();
      Tensor loss = sum(square(matmul(x, a) + b - y)) / 4 + sum(square(square(a))) / 10;
      loss.backward();
      return loss;
    };
  }
};

TEST(LBFGS, TenStepsEqualPyTorch) {
  const Golden golden("lbfgs");
  for (const auto& [name, options] : kCases)
    for (DType dtype : {DType::f64, DType::f32}) {
      SCOPED_TRACE(cat(name, " ", name_of(dtype)));
      const double tolerance = dtype == DType::f64 ? 1e-10 : 1e-5;
      Problem problem(dtype);
      LBFGS optimizer({problem.a, problem.b}, options);
      // In f32 the loss stops changing before tolerance_change is reached: fewer steps can be compared.
      const size_t steps = dtype == DType::f64 ? 10 : 4;
      for (size_t i = 0; i < steps; ++i) {
        const double loss = optimizer.step(problem.closure());
        EXPECT_NEAR(loss, golden.values(name + "/loss")[i], tolerance * (1 + loss)) << "step " << i;
        const Values a = problem.a.to_vector<double>(), b = problem.b.to_vector<double>();
        for (size_t k = 0; k < 4; ++k) EXPECT_NEAR(a[k], golden.values(name + "/a")[4 * i + k], tolerance) << i;
        for (size_t k = 0; k < 2; ++k) EXPECT_NEAR(b[k], golden.values(name + "/b")[2 * i + k], tolerance) << i;
      }
      if (dtype == DType::f64) {
        EXPECT_EQ(static_cast<double>(optimizer.evaluations()), golden.number(name + "/evaluations"));
      }
    }
}

TEST(LBFGS, AResumedRunEqualsTheUninterruptedOne) {
  for (const auto& [name, options] : kCases)
    for (int stop : {0, 1, 4}) {
      Problem whole(DType::f64), parts(DType::f64);
      LBFGS straight(Named{{"a", whole.a}, {"b", whole.b}}, options);
      auto first = std::make_unique<LBFGS>(Named{{"a", parts.a}, {"b", parts.b}}, options);
      for (int i = 0; i < 7; ++i) {
        if (i == stop) {
          const StateDict state = first->state_dict();
          parts.start(parts.a.to_vector<double>(), parts.b.to_vector<double>(), DType::f64);
          // The order of registration decides the order of summation, so it stays here.
          first = std::make_unique<LBFGS>(Named{{"a", parts.a}, {"b", parts.b}}, options);
          first->set_lr(9);
          first->load_state_dict(state);
        }
        EXPECT_EQ(straight.step(whole.closure()), first->step(parts.closure())) << name << " " << i;
      }
      EXPECT_EQ(whole.a.to_vector<double>(), parts.a.to_vector<double>()) << name << " " << stop;
      EXPECT_EQ(straight.evaluations(), first->evaluations());
    }
}

TEST(LBFGS, StateIsMatchedByName) {
  Problem p(DType::f64), q(DType::f64);
  LBFGS first(Named{{"a", p.a}, {"b", p.b}}, {.max_iter = 3});
  first.step(p.closure());
  const StateDict state = first.state_dict();
  q.start(p.a.to_vector<double>(), p.b.to_vector<double>(), DType::f64);
  LBFGS swapped(Named{{"b", q.b}, {"a", q.a}}, {.max_iter = 3});
  swapped.load_state_dict(state);
  first.step(p.closure());
  swapped.step(q.closure());
  const Values expected = p.a.to_vector<double>(), got = q.a.to_vector<double>();
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(got[i], expected[i], 1e-12);
  LBFGS other(Named{{"c", q.a}, {"b", q.b}});
  const std::string text = error_of([&] { other.load_state_dict(state); }, ErrorKind::value);
  expect_has(text, "missing: state.c.numel");
  expect_has(text, "state.a.old_dirs");
  EXPECT_EQ(other.iterations(), 0);
}

TEST(LBFGS, AClosureThatThrowsChangesNothing) {
  for (const auto& [name, options] : kCases) {
    Problem p(DType::f32);
    LBFGS optimizer({p.a, p.b}, options);
    optimizer.step(p.closure());
    const Values a = p.a.to_vector<double>();
    const int64_t evaluations = optimizer.evaluations();
    int calls = 0;
    const LBFGS::Closure good = p.closure();
    const LBFGS::Closure bad = [&] {
      if (++calls == 2) fail(ErrorKind::value, "the second call");
      return good();
    };
    if (options.max_iter == 1 && options.line_search == LineSearch::none) continue;
    expect_has(error_of([&] { optimizer.step(bad); }, ErrorKind::value), "the second call");
    EXPECT_EQ(p.a.to_vector<double>(), a);
    EXPECT_EQ(optimizer.evaluations(), evaluations);
    EXPECT_TRUE(p.a.requires_grad());
    EXPECT_LT(optimizer.step(good), 5);
  }
}

TEST(LBFGS, SolvesRosenbrock) {
  Tensor x = Tensor::from(Values{-1.2, 1}, {2}).requires_grad_();
  LBFGS optimizer({x}, {.max_iter = 100, .tolerance_change = 1e-18, .line_search = LineSearch::strong_wolfe});
  const LBFGS::Closure closure = [&] {
    x.zero_grad();
    const Tensor u = x[0], v = x[1];
    Tensor loss = square(1 - u) + 100 * square(v - u * u);
    loss.backward();
    return loss;
  };
  EXPECT_NEAR(optimizer.step(closure), 24.2, 1e-12);
  EXPECT_LT(optimizer.step(closure), 1e-12);
  for (double v : x.to_vector<double>()) EXPECT_NEAR(v, 1, 1e-6);
}

TEST(LBFGS, OptionsAreChecked) {
  Tensor x = ones({2}).requires_grad_();
  expect_has(error_of([&] { LBFGS o({x}, {.max_iter = 0}); }, ErrorKind::value), "[LBFGS] max_iter");
  expect_has(error_of([&] { LBFGS o({x}, {.history_size = -1}); }, ErrorKind::value), "got -1");
  expect_has(error_of([&] { LBFGS o({{.parameters = {x}}, {.parameters = {x}}}); }, ErrorKind::value), "[LBFGS]");
}

}  // namespace
}  // namespace outrace
