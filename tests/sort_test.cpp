// Order along an axis against std::stable_sort, selections against the sorted order.
#include "outrace/ops/sort.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "outrace/graph/autograd.h"
#include "tests/axis_support.h"

namespace outrace {
namespace {

using test::kind_of;
using test::kInf;
using test::kNaN;
using test::Lines;
using test::Threads;

std::vector<int64_t> order_of(const std::vector<double>& x, bool descending) {
  std::vector<int64_t> at(x.size());
  std::iota(at.begin(), at.end(), 0);
  auto less = [&](double a, double b) { return a < b || (!std::isnan(a) && std::isnan(b)); };
  std::stable_sort(at.begin(), at.end(), [&](int64_t i, int64_t j) {
    const double a = x[static_cast<size_t>(i)], b = x[static_cast<size_t>(j)];
    return descending ? less(b, a) : less(a, b);
  });
  return at;
}

void expect_right(const Shape& shape, DType dtype, bool special) {
  const auto x = test::tied_numbers(shape.numel(), dtype, special, 23);
  const Tensor t = Tensor::from(x, shape).to(dtype);
  for (int axis = 0; axis < shape.rank(); ++axis)
    for (const bool descending : {false, true}) {
      SCOPED_TRACE(cat(shape, " axis ", axis, " ", name_of(dtype), descending ? " descending" : ""));
      const Lines lines(shape, axis);
      const auto got = argsort(t, axis, descending).to_vector<int64_t>();
      const ValuesAndIndices s = sort(t, axis, descending);
      EXPECT_EQ(s.values.dtype(), dtype);
      EXPECT_EQ(s.indices.to_vector<int64_t>(), got);
      const auto values = s.values.to_vector<double>();
      const int64_t k = (lines.size + 2) / 3, kth = (lines.size + 1) / 2;
      const ValuesAndIndices top = topk(t, k, {axis, descending});
      const auto top_at = top.indices.to_vector<int64_t>(),
                 top_by_place = topk(t, k, {axis, descending, false}).indices.to_vector<int64_t>();
      const auto top_values = top.values.to_vector<double>();
      const auto kth_at = kthvalue(t, kth, axis).indices.to_vector<int64_t>();
      const Lines k_lines(shape.with(axis, k), axis);
      for (int64_t l = 0; l < lines.count(); ++l) {
        const auto line = lines.line(x, l);
        const auto want = order_of(line, descending);
        ASSERT_EQ(lines.line(got, l), want) << "line " << l;
        for (int64_t i = 0; i < lines.size; ++i)
          ASSERT_TRUE(
              test::same_number(values[lines.at(l, i)], line[static_cast<size_t>(want[static_cast<size_t>(i)])]));
        std::vector<int64_t> first(want.begin(), want.begin() + k);
        ASSERT_EQ(k_lines.line(top_at, l), first);
        ASSERT_TRUE(test::same_number(top_values[k_lines.at(l, 0)], line[static_cast<size_t>(first[0])]));
        std::sort(first.begin(), first.end());
        ASSERT_EQ(k_lines.line(top_by_place, l), first);
        if (!descending) {
          ASSERT_EQ(kth_at[static_cast<size_t>(l)], want[static_cast<size_t>(kth - 1)]);
        }
      }
    }
}

TEST(Sort, AllTypesAndAxes) {
  for (int d = 0; d < kDTypeCount; ++d)
    for (const Shape& shape : {Shape{1}, Shape{9}, Shape{1, 1}, Shape{3, 5}, Shape{2, 3, 4}, Shape{4, 1, 3}, Shape{399},
                               Shape{3, 400}, Shape{2, 5001}})
      for (const bool special : {false, true}) expect_right(shape, static_cast<DType>(d), special);
}

// Rows that several threads share.
TEST(Sort, LongRows) {
  for (int d = 0; d < kDTypeCount; ++d)
    for (const int threads : {1, 3}) {
      if (threads == 1 && d != static_cast<int>(DType::f32)) continue;
      const Threads use(threads);
      expect_right({300007}, static_cast<DType>(d), true);
    }
  expect_right({2, 270000}, DType::f32, false);
}

// All bits of the keys, both signs, subnormals.
TEST(Sort, EveryMagnitude) {
  test::Dice dice{31};
  std::vector<double> x;
  for (int i = 0; i < 3000; ++i)
    x.push_back((dice.below(2) ? 1 : -1) *
                std::ldexp(1 + dice.uniform(0, 1), static_cast<int>(dice.below(2040)) - 1060));
  x.insert(x.end(), {5e-324, -5e-324, 0, -0.0, kInf, -kInf, 1.7e308, -1.7e308});
  const int64_t n = static_cast<int64_t>(x.size());
  EXPECT_EQ(argsort(Tensor::from(x, {n})).to_vector<int64_t>(), order_of(x, false));
  const Tensor narrow = Tensor::from(x, {n}).to(DType::f32);
  EXPECT_EQ(argsort(narrow, 0, true).to_vector<int64_t>(), order_of(narrow.to_vector<double>(), true));
  std::vector<int64_t> i;
  for (int k = 0; k < 3000; ++k)
    i.push_back((dice.below(2) ? 1 : -1) * (int64_t{1} << dice.below(62)) + dice.below(1000));
  i.insert(i.end(), {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()});
  auto sorted = i;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(sort(Tensor::from(i, {static_cast<int64_t>(i.size())})).values.to_vector<int64_t>(), sorted);
}

TEST(Sort, NothingAndNoAxes) {
  EXPECT_EQ(sort(zeros({2, 0})).values.shape(), (Shape{2, 0}));
  EXPECT_TRUE(argsort(zeros({0, 3}), 0).to_vector<int64_t>().empty());
  EXPECT_TRUE(argsort(zeros({0, 3})).to_vector<int64_t>().empty());
  EXPECT_EQ(sort(full({}, 4)).values.item(), 4);
  EXPECT_EQ(topk(full({}, 4), 1).values.shape(), Shape{});
  EXPECT_EQ(topk(zeros({2, 3}), 0).values.shape(), (Shape{2, 0}));
  EXPECT_EQ(topk(zeros({2, 0}), 0).indices.shape(), (Shape{2, 0}));
  EXPECT_TRUE(topk(zeros({2, 3}), 0).values.to_vector<float>().empty());
  EXPECT_EQ(median(full({}, 4)).values.item(), 4);
  EXPECT_EQ(quantile(full({}, 4), 0.3).item(), 4);
  EXPECT_EQ(kthvalue(zeros({0, 3}), 2, 1).values.shape(), (Shape{0}));
}

TEST(Sort, Errors) {
  const Tensor x = zeros({2, 3});
  EXPECT_EQ(kind_of([&] { topk(x, 4); }), ErrorKind::value);
  EXPECT_EQ(kind_of([&] { topk(x, -1); }), ErrorKind::value);
  EXPECT_EQ(kind_of([&] { kthvalue(x, 0); }), ErrorKind::value);
  EXPECT_EQ(kind_of([&] { kthvalue(x, 4); }), ErrorKind::value);
  EXPECT_EQ(kind_of([&] { sort(x, 2); }), ErrorKind::shape);
  EXPECT_EQ(kind_of([&] { median(zeros({2, 0})); }), ErrorKind::shape);
  EXPECT_EQ(kind_of([&] { quantile(zeros({2, 0}), 0.5); }), ErrorKind::shape);
  EXPECT_EQ(kind_of([&] { quantile(x, 1.1); }), ErrorKind::value);
  EXPECT_EQ(kind_of([&] { quantile(x, kNaN); }), ErrorKind::value);
  EXPECT_EQ(kind_of([&] { quantile(x, std::vector<double>{}); }), ErrorKind::value);
  EXPECT_EQ(kind_of([&] { quantile(zeros({2}, {.dtype = DType::i64}), 0.5); }), ErrorKind::dtype);
}

TEST(Median, LowerOfTwoAndNan) {
  const Tensor x = Tensor::from(std::vector<double>{4, 1, 3, 2, 1, kNaN, 2, kNaN}, {2, 4});
  const ValuesAndIndices m = median(x);
  EXPECT_EQ(m.values.to_vector<double>()[0], 2);
  EXPECT_TRUE(std::isnan(m.values.to_vector<double>()[1]));
  EXPECT_EQ(m.indices.to_vector<int64_t>(), (std::vector<int64_t>{3, 1}));
  EXPECT_EQ(median(Tensor::from(std::vector<int64_t>{5, 9, 7}, {3})).values.item(), 7);
}

TEST(Quantile, LinearBetweenNeighbours) {
  const Tensor x = Tensor::from(std::vector<double>{3, 1, 2, 10, kInf, -kInf, 0, kInf, kNaN, 1, 2, 3}, {3, 4});
  auto row = [&](double q) { return quantile(x, q).to_vector<double>(); };
  EXPECT_EQ(row(0)[0], 1);
  EXPECT_EQ(row(1)[0], 10);
  EXPECT_DOUBLE_EQ(row(0.5)[0], 2.5);
  EXPECT_DOUBLE_EQ(row(0.9)[0], 3 + 0.7 * 7);
  EXPECT_EQ(row(0.9)[1], kInf);  // between two infinities
  EXPECT_EQ(row(0.1)[1], -kInf);
  for (const double q : {0.0, 0.4, 1.0}) EXPECT_TRUE(std::isnan(row(q)[2]));
  const std::vector<double> several{0.9, 0.0, 0.5};
  const Tensor all = quantile(x, several);
  EXPECT_EQ(all.shape(), (Shape{3, 3}));
  for (size_t i = 0; i < several.size(); ++i) {
    const auto one = row(several[i]), of_all = all[static_cast<int64_t>(i)].to_vector<double>();
    for (size_t r = 0; r < 3; ++r) EXPECT_TRUE(test::same_number(one[r], of_all[r])) << i << " " << r;
  }
  EXPECT_EQ(quantile(x, several, 0, true).shape(), (Shape{3, 1, 4}));
  EXPECT_EQ(quantile(x.to(DType::f16), 0.5).dtype(), DType::f16);
}

}  // namespace
}  // namespace outrace
