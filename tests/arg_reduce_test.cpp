// Positions of extremes and picking by position, against plain loops.
#include "outrace/ops/arg_reduce.h"

#include <gtest/gtest.h>

#include "outrace/core/aligned.h"
#include "outrace/graph/autograd.h"
#include "tests/axis_support.h"

namespace outrace {
namespace {

using test::kind_of;
using test::kInf;
using test::kNaN;
using test::Lines;
using test::Threads;

using ArgReduce = test::EachIsa;
INSTANTIATE_TEST_SUITE_P(Isa, ArgReduce, testing::ValuesIn(test::isas_here()), test::isa_name);

int64_t first_extreme(const std::vector<double>& x, bool largest) {
  size_t best = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(x[i])) return static_cast<int64_t>(i);
    if (largest ? x[i] > x[best] : x[i] < x[best]) best = i;
  }
  return static_cast<int64_t>(best);
}

void expect_right(const Shape& shape, DType dtype, bool special) {
  const auto x = test::tied_numbers(shape.numel(), dtype, special, 5);
  const Tensor t = Tensor::from(x, shape).to(dtype);
  for (int axis = 0; axis < shape.rank(); ++axis) {
    SCOPED_TRACE(cat(shape, " axis ", axis, " ", name_of(dtype)));
    const Lines lines(shape, axis);
    for (const bool largest : {true, false})
      for (const int threads : {1, 3}) {
        const Threads use(threads);
        const Tensor y = largest ? argmax(t, axis) : argmin(t, axis, true);
        EXPECT_EQ(y.shape(), largest ? shape.without(axis) : shape.with(axis, 1));
        EXPECT_EQ(y.dtype(), DType::i64);
        const auto got = y.to_vector<int64_t>();
        for (int64_t l = 0; l < lines.count(); ++l)
          ASSERT_EQ(got[static_cast<size_t>(l)], first_extreme(lines.line(x, l), largest)) << "line " << l;
      }
    // The latest among equals, a NaN for good.
    const auto values = cummax(t, axis).values.to_vector<double>();
    const auto at = cummax(t, axis).indices.to_vector<int64_t>();
    for (int64_t l = 0; l < lines.count(); ++l) {
      int64_t best = 0;
      for (int64_t i = 0; i < lines.size; ++i) {
        const double v = x[lines.at(l, i)], b = x[lines.at(l, best)];
        if (std::isnan(v) || (!std::isnan(b) && v >= b)) best = i;
        ASSERT_EQ(at[lines.at(l, i)], best);
        ASSERT_TRUE(test::same_number(values[lines.at(l, i)], x[lines.at(l, best)]));
      }
    }
  }
}

TEST_P(ArgReduce, AllTypesAndAxes) {
  for (int d = 0; d < kDTypeCount; ++d)
    for (const Shape& shape : {Shape{1}, Shape{7}, Shape{1, 1}, Shape{3, 5}, Shape{2, 3, 4}, Shape{5, 1, 3},
                               Shape{40, 33}, Shape{3, 1030}, Shape{70, 600}})
      for (const bool special : {false, true}) expect_right(shape, static_cast<DType>(d), special);
}

// Long enough to be cut along the axis.
TEST_P(ArgReduce, LongAxes) {
  for (DType d : {DType::f32, DType::f16, DType::i64})
    for (const Shape& shape : {Shape{300001}, Shape{2, 150000}, Shape{100003, 3}, Shape{3000, 700}})
      expect_right(shape, d, false);
}

TEST_P(ArgReduce, ViewsAndFlattened) {
  const auto x = test::tied_numbers(35, DType::f32, false, 3);
  const Tensor t = Tensor::from(x, {5, 7}).to(DType::f32);
  EXPECT_EQ(argmax(t.t(), 1).to_vector<int64_t>(), argmax(t, 0).to_vector<int64_t>());
  EXPECT_EQ(argmax(t).item(), static_cast<double>(first_extreme(x, true)));
  EXPECT_EQ(argmin(t, std::nullopt, true).shape(), (Shape{1, 1}));
  EXPECT_EQ(argmax(t.slice(1, 1, 7, 2), -1).to_vector<int64_t>(),
            argmax((t * 1).slice(1, 1, 7, 2) + 0.0, -1).to_vector<int64_t>());
  EXPECT_EQ(argmax(full({}, 3)).item(), 0);
  EXPECT_EQ(argmax(expand(full({}, 3), {2, 3}), 1).to_vector<int64_t>(), (std::vector<int64_t>{0, 0}));
}

// pytorch#34907
TEST(ArgReduceCases, OfNothing) {
  const Tensor a = zeros({0, 4}), b = zeros({2, 0});
  EXPECT_EQ(kind_of([&] { argmax(a); }), ErrorKind::shape);
  EXPECT_EQ(kind_of([&] { argmin(a, 0); }), ErrorKind::shape);
  EXPECT_EQ(kind_of([&] { argmax(b, 1); }), ErrorKind::shape);
  EXPECT_EQ(kind_of([&] { max_with_indices(b, 1); }), ErrorKind::shape);
  EXPECT_EQ(argmax(a, 1).shape(), (Shape{0}));
  EXPECT_TRUE(argmax(a, 1).to_vector<int64_t>().empty());
  EXPECT_EQ(argmin(b, 0).shape(), (Shape{0}));
  EXPECT_EQ(max_with_indices(b, 0, true).values.shape(), (Shape{1, 0}));
  EXPECT_EQ(kind_of([&] { argmax(b, 2); }), ErrorKind::shape);
}

TEST(ArgReduceCases, GradientGoesToOneOfEquals) {
  Tensor x = Tensor::from(std::vector<double>{3, 3, 1, 0, 2, 2}, {2, 3}).requires_grad_();
  const ValuesAndIndices m = max_with_indices(x, 1);
  EXPECT_EQ(m.values.to_vector<double>(), (std::vector<double>{3, 2}));
  EXPECT_EQ(m.indices.to_vector<int64_t>(), (std::vector<int64_t>{0, 1}));
  EXPECT_FALSE(m.indices.requires_grad());
  sum(m.values).backward();
  EXPECT_EQ(x.grad().to_vector<double>(), (std::vector<double>{1, 0, 0, 0, 1, 0}));
}

}  // namespace
}  // namespace outrace
