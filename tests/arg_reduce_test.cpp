// Positions of extremes and picking by position, against plain loops.
#include "outrace/ops/arg_reduce.h"

#include <gtest/gtest.h>

#include "outrace/backend/cpu/take_along.h"
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

TEST(TakeAlong, AllTypes) {
  for (int d = 0; d < kDTypeCount; ++d)
    for (const Shape& shape : {Shape{6}, Shape{3, 4}, Shape{2, 5, 3}, Shape{40, 700}, Shape{2, 3, 1}}) {
      const DType dtype = static_cast<DType>(d);
      const auto x = test::tied_numbers(shape.numel(), dtype, false, 8);
      for (int axis = 0; axis < shape.rank(); ++axis) {
        for (const int64_t count : {int64_t{1}, shape[axis], shape[axis] + 2}) {
          const Shape to = shape.with(axis, count);
          test::Dice dice{static_cast<uint64_t>(count)};
          std::vector<int64_t> index(static_cast<size_t>(to.numel()));
          for (int64_t& i : index) i = dice.below(shape[axis]);
          const auto got =
              take_along(Tensor::from(x, shape).to(dtype), Tensor::from(index, to), axis).to_vector<double>();
          const Lines from(shape, axis), into(to, axis);
          std::vector<double> sums(x.size(), 0);
          for (int64_t l = 0; l < into.count(); ++l)
            for (int64_t j = 0; j < count; ++j) {
              const size_t at = from.at(l, index[into.at(l, j)]);
              ASSERT_EQ(got[into.at(l, j)], x[at]) << shape.str() << " axis " << axis;
              sums[at] += x[at];
            }
          if (dtype == DType::boolean || dtype == DType::u8) continue;
          const Tensor back = put_along(Tensor::from(got, to).to(dtype), Tensor::from(index, to), axis, shape[axis]);
          EXPECT_EQ(back.dtype(), dtype);
          const auto put = back.to_vector<double>();
          // Whole numbers: exact but for the narrowing of 16-bit sums.
          for (size_t i = 0; i < put.size(); ++i)
            ASSERT_NEAR(put[i], sums[i], size_of(dtype) == 2 ? epsilon_of(dtype) * std::abs(sums[i]) : 0);
        }
      }
    }
}

// onnxruntime#28107: a table of more than 2^31 bytes, of which only the pages that are touched exist.
TEST(TakeAlong, RowsBeyond31Bits) {
  const int64_t rows = 262144, columns = 8960;
  const AlignedArray<uint8_t> table = aligned_array<uint8_t>(rows * columns);
  const std::vector<int64_t> picked{0, 239673, 239674, 255999};
  std::vector<int64_t> index;
  for (size_t r = 0; r < picked.size(); ++r) {
    std::fill_n(table.get() + picked[r] * columns, columns, static_cast<uint8_t>(r + 4));
    index.insert(index.end(), static_cast<size_t>(columns), picked[r]);
  }
  std::vector<uint8_t> out(index.size());
  cpu::take_along(DType::u8, table.get(), {1, rows, columns}, index.data(), 4, out.data());
  for (size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], i / columns + 4);
}

TEST(TakeAlong, Errors) {
  const Tensor x = zeros({2, 3}), i = zeros({2, 3}, {.dtype = DType::i64});
  EXPECT_EQ(kind_of([&] { take_along(x, zeros({2, 3}), 1); }), ErrorKind::dtype);
  EXPECT_EQ(kind_of([&] { take_along(x, zeros({3, 3}, {.dtype = DType::i64}), 1); }), ErrorKind::shape);
  EXPECT_EQ(kind_of([&] { take_along(x, zeros({3}, {.dtype = DType::i64}), 0); }), ErrorKind::shape);
  EXPECT_EQ(kind_of([&] { put_along(x, zeros({2, 2}, {.dtype = DType::i64}), 1, 3); }), ErrorKind::shape);
  EXPECT_EQ(kind_of([&] { put_along(x > 0, i, 1, 3); }), ErrorKind::dtype);
  for (const int64_t wrong : {int64_t{-1}, int64_t{3}, int64_t{1} << 40}) {
    const Tensor at = Tensor::from(std::vector<int64_t>{0, wrong}, {2, 1});
    EXPECT_EQ(kind_of([&] { take_along(x, at, 1).eval(); }), ErrorKind::value);
    EXPECT_EQ(kind_of([&] { put_along(zeros({2, 1}), at, 1, 3).eval(); }), ErrorKind::value);
  }
  EXPECT_EQ(take_along(x, zeros({2, 0}, {.dtype = DType::i64}), 1).shape(), (Shape{2, 0}));
  EXPECT_EQ(put_along(zeros({2, 0}), zeros({2, 0}, {.dtype = DType::i64}), 1, 2).to_vector<float>(),
            std::vector<float>(4, 0));
}

}  // namespace
}  // namespace outrace
