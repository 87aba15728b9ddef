// In-place members of Tensor: the same bits as out of place for every size and offset, other tensors untouched, errors.
#include <gtest/gtest.h>

#include <bit>
#include <concepts>

#include "outrace/outrace.h"

namespace outrace {
namespace {

using Values = std::vector<double>;

template <class T>
concept HasInPlaceExp = requires(T t) {
  std::forward<T>(t).exp_();
};
static_assert(HasInPlaceExp<Tensor&>);
static_assert(!HasInPlaceExp<Tensor>);  // nobody would see what becomes of a temporary

template <class Fn>
void expect_error(ErrorKind kind, const std::string& part, const Fn& fn) {
  try {
    fn();
    ADD_FAILURE() << "no error with '" << part << "'";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), kind) << e.what();
    EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
  }
}

// dotnet/runtime#92820: the last vector must not be worked on twice.
TEST(InPlace, EveryLengthAndOffsetAsOutOfPlace) {
  for (const int64_t offset : {0, 1, 2, 3, 4, 5, 6, 7})
    for (int64_t n = 1; n <= 70; ++n) {
      const Tensor base = full({80}, 2);
      base.eval();
      Tensor x = base.slice(0, offset, offset + n);
      x.square_();
      EXPECT_EQ(x.to_vector<double>(), Values(static_cast<size_t>(n), 4)) << n << " at " << offset;
      std::vector<float> spread;
      for (int64_t i = 0; i < n; ++i) spread.push_back(0.1f * static_cast<float>(i) - 3);
      Tensor y = Tensor::from(spread, {n});
      const Tensor expected = exp(y);
      expected.eval();
      y.exp_();
      EXPECT_EQ(y.to_vector<float>(), expected.to_vector<float>()) << n;
      EXPECT_EQ(base.to_vector<double>(), Values(80, 2));
    }
}

// pytorch#17935: tensors are values, so a repeated element is not one place that is multiplied three times.
TEST(InPlace, ExpandedAndOverlappingSourcesAreReadBeforeTheyAreWritten) {
  const Tensor x = Tensor::from(Values{2}, {1});
  for (const bool computed : {false, true}) {
    Tensor y = expand(x, {3});
    if (computed) y.eval();
    y.mul_(3);
    EXPECT_EQ(y.to_vector<double>(), (Values{6, 6, 6}));
    EXPECT_EQ(x.to_vector<double>(), (Values{2}));
  }
  const Tensor line = Tensor::from(Values{1, 2, 3, 4}, {4});
  Tensor tail = line.slice(0, 1, 4);
  tail.copy_(line.slice(0, 0, 3));
  EXPECT_EQ(tail.to_vector<double>(), (Values{1, 2, 3}));
  EXPECT_EQ(line.to_vector<double>(), (Values{1, 2, 3, 4}));
}

TEST(InPlace, CopiesSeeTheNewValueAndOthersKeepTheirs) {
  Tensor x = Tensor::from(Values{1, -2}, {2});
  const Tensor same = x, before = x * 1, view = x.reshape({2, 1});
  x.add_(1).mul_(Tensor::from(Values{2}, {1})).neg_();
  EXPECT_EQ(same.to_vector<double>(), (Values{-4, 2}));
  EXPECT_EQ(before.to_vector<double>(), (Values{1, -2}));
  EXPECT_EQ(view.to_vector<double>(), (Values{1, -2}));
  x.relu_().clamp_(0.5, {}).sub_(1).div_(2);
  EXPECT_EQ(x.to_vector<double>(), (Values{-0.25, 0.5}));
  x.fill_(3).pow_(2);
  EXPECT_EQ(x.to_vector<double>(), (Values{9, 9}));
  x.zero_();
  EXPECT_EQ(x.to_vector<double>(), (Values{0, 0}));
  x += x + 1;
  x /= Tensor::from(Values{4}, {});
  EXPECT_EQ(x.to_vector<double>(), (Values{0.25, 0.25}));
  Tensor whole = Tensor::from(std::vector<int64_t>{7, -7}, {2});
  whole.copy_(Tensor::from(Values{2.9}, {1}));
  EXPECT_EQ(whole.to_vector<int64_t>(), (std::vector<int64_t>{2, 2}));
  Tensor empty = zeros({0, 3});
  EXPECT_EQ(empty.exp_().shape(), (Shape{0, 3}));
}

TEST(InPlace, GradientsAreThoseOfTheExpression) {
  Tensor x = Tensor::from(Values{0.5, 2}, {2}).requires_grad_();
  Tensor y = exp(x);  // whose value its own derivative reads
  y.mul_(x).square_();
  sum(y).backward();
  const Values at{0.5, 2}, g = x.grad().to_vector<double>();
  for (size_t i = 0; i < 2; ++i) {
    const double e = std::exp(at[i]);
    EXPECT_NEAR(g[i], 2 * at[i] * e * (e + at[i] * e), 1e-12 * g[i]);
  }
}

TEST(InPlace, LeavesThatRequireGradientsChangeOnlyUnderNoGrad) {
  Tensor x = ones({2}).requires_grad_();
  expect_error(ErrorKind::state, "[mul_]", [&] { x.mul_(2); });
  expect_error(ErrorKind::state, "[fill_]", [&] { x.fill_(2); });
  expect_error(ErrorKind::state, "[add_]", [&] { x += x; });
  EXPECT_EQ(x.to_vector<double>(), (Values{1, 1}));
  {
    NoGrad off;
    x.mul_(2);
  }
  EXPECT_EQ(x.to_vector<double>(), (Values{2, 2}));
  sum(x * x).backward();
  EXPECT_EQ(x.grad().to_vector<double>(), (Values{4, 4}));
}

TEST(InPlace, ResultsThatDoNotFitAreErrors) {
  Tensor row = ones({3}), whole = Tensor::from(std::vector<int64_t>{1, 2, 3}, {3}), yes = row > 0;
  expect_error(ErrorKind::shape, "[add_]", [&] { row.add_(ones({2, 3})); });
  expect_error(ErrorKind::shape, "[copy_]", [&] { row.copy_(ones({2, 3})); });
  expect_error(ErrorKind::dtype, "[mul_]", [&] { whole.mul_(0.5); });
  expect_error(ErrorKind::dtype, "[add_]", [&] { yes.add_(1); });
  expect_error(ErrorKind::dtype, "[exp]", [&] { whole.exp_(); });
  row.mul_(full({3}, 0.1, {.dtype = DType::f64}));  // of the same kind: rounded to f32
  EXPECT_EQ(row.dtype(), DType::f32);
  EXPECT_EQ(row.to_vector<float>(), std::vector<float>(3, 0.1f));
}

TEST(InPlace, ReplaysInsideCapture) {
  Tensor total = zeros({2});
  auto step = capture([&](const Tensor& x) {
    total.add_(x);
    return total * 1;
  });
  for (int i = 1; i <= 4; ++i) step(full({2}, i));
  EXPECT_EQ(total.to_vector<double>(), (Values{10, 10}));
}

TEST(InPlace, CopyOfALeafKeepsItsGradient) {
  Tensor w = Tensor::from(std::vector<float>{1, 2, 3}, {3}).requires_grad_(), y = zeros({3});
  y.copy_(w);
  sum(y * y).backward();
  EXPECT_EQ(w.grad().to_vector<float>(), (std::vector<float>{2, 4, 6}));
}

}  // namespace
}  // namespace outrace
