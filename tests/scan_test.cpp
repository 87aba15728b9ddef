// Running sums and products against long double, with computed tolerances; recurrences.
#include "outrace/ops/scan.h"

#include <gtest/gtest.h>

#include "outrace/graph/autograd.h"
#include "tests/axis_support.h"

namespace outrace {
namespace {

using test::kind_of;
using test::kInf;
using test::kNaN;
using test::Lines;
using test::Threads;

using Scan = test::EachIsa;
INSTANTIATE_TEST_SUITE_P(Isa, Scan, testing::ValuesIn(test::isas_here()), test::isa_name);

std::vector<double> numbers(int64_t count, DType dtype, bool product) {
  test::Dice dice{17};
  std::vector<double> out(static_cast<size_t>(count));
  for (double& v : out) {
    v = product ? dice.uniform(0.9, 1.1) : dice.uniform(-1, 1.5);
    if (!is_float(dtype)) v = static_cast<double>(dice.below(dtype == DType::boolean ? 2 : 100));
  }
  return Tensor::from(out, {count}).to(dtype).to_vector<double>();  // as stored
}

void expect_right(const Shape& shape, DType dtype) {
  for (const bool product : {false, true}) {
    if (product && !is_float(dtype)) continue;
    const auto x = numbers(shape.numel(), dtype, product);
    const Tensor t = Tensor::from(x, shape).to(dtype);
    for (int axis = 0; axis < shape.rank(); ++axis)
      for (int form = 0; form < 4; ++form) {
        const ScanOptions o{form % 2 == 1, form >= 2};
        SCOPED_TRACE(cat(shape, " axis ", axis, " ", name_of(dtype), " form ", form, product ? " product" : " sum"));
        const Tensor y = product ? cumprod(t, axis, o) : cumsum(t, axis, o);
        EXPECT_EQ(y.dtype(), is_float(dtype) ? dtype : DType::i64);
        const auto got = y.to_vector<double>();
        const Lines lines(shape, axis);
        for (int64_t l = 0; l < lines.count(); ++l) {
          long double sum = product ? 1 : 0, magnitudes = 0;
          for (int64_t k = 0; k < lines.size; ++k) {
            const size_t at = lines.at(l, o.reverse ? lines.size - 1 - k : k);
            const long double v = x[at], before = sum;
            sum = product ? sum * v : sum + v;
            magnitudes = product ? std::fabs(sum) : magnitudes + std::fabs(v);
            const double want = static_cast<double>(o.exclusive ? before : sum);
            // Each step is rounded in f64, the result once more in its own type.
            const double allowed = is_float(dtype)
                                       ? 1.01 * (static_cast<double>(k + 2) * 0x1p-53 *
                                                     static_cast<double>(magnitudes + std::fabs(before)) +
                                                 epsilon_of(dtype) / 2 * std::abs(want) + test::half_smallest(dtype))
                                       : 0;
            ASSERT_NEAR(got[at], want, allowed) << "line " << l << " at " << k;
          }
        }
      }
  }
}

TEST_P(Scan, AllTypesAndAxes) {
  for (int d = 0; d < kDTypeCount; ++d)
    for (const Shape& shape : {Shape{1}, Shape{9}, Shape{1, 1}, Shape{3, 5}, Shape{5, 6}, Shape{2, 3, 4},
                               Shape{4, 1, 3}, Shape{13, 70}, Shape{3, 700}})
      expect_right(shape, static_cast<DType>(d));
}

// Long enough to be cut along the axis, and not in whole parts.
TEST_P(Scan, LongAxes) {
  for (const Shape& shape : {Shape{200003}, Shape{2, 150001}, Shape{100003, 3}, Shape{130, 1030}}) {
    expect_right(shape, DType::f32);
    expect_right(shape, DType::f64);
    expect_right(shape, DType::i64);
  }
}

TEST_P(Scan, ThreadsChangeNoBit) {
  for (const Shape& shape : {Shape{300001}, Shape{37, 5003}, Shape{5003, 37}, Shape{200003, 2}}) {
    const Tensor x = Tensor::from(numbers(shape.numel(), DType::f64, false), shape).eval();
    for (int axis = 0; axis < shape.rank(); ++axis) {
      std::vector<double> first;
      for (const int threads : {1, 2, 3}) {
        const Threads use(threads);
        const auto y = cumsum(x, axis).to_vector<double>();
        if (first.empty()) first = y;
        ASSERT_EQ(first, y) << shape.str() << " axis " << axis << " threads " << threads;
      }
    }
  }
}

TEST_P(Scan, ManyOnesDoNotStall) {
  const Tensor y = cumsum(ones({20'000'000}), 0);
  EXPECT_EQ(y.slice(0, 19'999'999, 20'000'000).item(), 2e7);
  EXPECT_EQ(cumsum(ones({70000}, {.dtype = DType::bf16}), 0).slice(0, 511, 512).item(), 512);
}

// The axis is not cut where a part's product would overflow.
TEST_P(Scan, LongProductsOfZero) {
  for (const Shape& shape : {Shape{1, 300001}, Shape{200001, 2}}) {
    const int64_t axis = shape[0] == 1 ? 1 : 0;
    std::vector<float> x(static_cast<size_t>(shape.numel()), 2);
    x[0] = x[1] = 0;
    for (float v : cumprod(Tensor::from(x, shape), axis).to_vector<float>()) ASSERT_EQ(v, 0);
  }
}

TEST_P(Scan, IntegersWrapAround) {
  const int64_t most = std::numeric_limits<int64_t>::max();
  const Tensor x = Tensor::from(std::vector<int64_t>{most, 1, 2}, {3});
  EXPECT_EQ(cumsum(x, 0).to_vector<int64_t>(), (std::vector<int64_t>{most, -most - 1, -most + 1}));
  const Tensor powers = full({70}, 2, {.dtype = DType::i32});
  EXPECT_EQ(cumprod(powers, 0).to_vector<int64_t>()[62], -most - 1);
  EXPECT_EQ(cumprod(powers, 0).to_vector<int64_t>()[69], 0);
}

TEST_P(Scan, NothingAndNoAxes) {
  EXPECT_EQ(cumsum(zeros({0, 4}), 0).shape(), (Shape{0, 4}));
  EXPECT_TRUE(cumsum(zeros({0, 4}), 0).to_vector<float>().empty());
  EXPECT_TRUE(cumprod(zeros({2, 0}), 1, {.exclusive = true}).to_vector<float>().empty());
  EXPECT_EQ(cumsum(full({}, 5), 0).item(), 5);
  EXPECT_EQ(cumprod(full({}, 5), -1).item(), 5);
  EXPECT_EQ(cummax(full({}, 5), 0).indices.shape(), Shape{});
  EXPECT_EQ(cummin(zeros({0}), 0).values.shape(), Shape{0});
  EXPECT_EQ(kind_of([] { cumsum(zeros({2}), 1); }), ErrorKind::shape);
}

TEST_P(Scan, SpecialNumbersAndViews) {
  const Tensor x = Tensor::from(std::vector<double>{1, kInf, 2, -kInf, 3, kNaN}, {2, 3});
  const auto y = cumsum(x, 1).to_vector<double>();
  EXPECT_EQ(y[2], kInf);
  EXPECT_EQ(y[4], -kInf);
  EXPECT_TRUE(std::isnan(y[5]));
  EXPECT_TRUE(std::signbit(cumprod(Tensor::from(std::vector<double>{-0.0}, {1}), 0).item()));
  const Tensor a = Tensor::from(numbers(30, DType::f64, false), {5, 6});
  EXPECT_EQ(cumsum(a.t(), 0).t().to_vector<double>(), cumsum(a, 1).to_vector<double>());
  EXPECT_EQ(cumsum(a.slice(1, 1, 6, 2), 1).to_vector<double>(),
            cumsum(a.slice(1, 1, 6, 2) * 1 + 0.0, 1).to_vector<double>());
}

TEST_P(Scan, DerivativeOfProductsBesideZeros) {
  // d(x0 + x0 x1 + x0 x1 x2) = (1 + x1 + x1 x2, x0 + x0 x2, x0 x1) at (2, 0, 3), and once more.
  Tensor x = Tensor::from(std::vector<double>{2, 0, 3}, {3}).requires_grad_();
  const Tensor g = grad(sum(cumprod(x, 0)), {x}, {.create_graph = true})[0];
  EXPECT_EQ(g.to_vector<double>(), (std::vector<double>{1, 8, 0}));
  // of the gradient's sum: the Hessian's rows add up to (1 + x2) + x1, (1 + x2) + x0, x1 + x0
  EXPECT_EQ(grad(sum(g), {x})[0].to_vector<double>(), (std::vector<double>{4, 6, 2}));
  Tensor z = Tensor::from(std::vector<double>{2, 0, 3}, {3}).requires_grad_();
  const Tensor h = grad(prod(z), {z}, {.create_graph = true})[0];
  EXPECT_EQ(h.to_vector<double>(), (std::vector<double>{0, 6, 0}));
  EXPECT_EQ(grad(sum(h), {z})[0].to_vector<double>(), (std::vector<double>{3, 5, 2}));
}

TEST(Recurrence, FollowsItsDefinition) {
  for (const Shape& shape : {Shape{1}, Shape{6}, Shape{4, 5}, Shape{700, 3}, Shape{3, 800}, Shape{2, 3, 600}})
    for (DType d : {DType::f64, DType::f32, DType::bf16})
      for (int axis = 0; axis < shape.rank(); ++axis)
        for (const bool reverse : {false, true}) {
          const auto a = numbers(shape.numel(), d, false), b = numbers(shape.numel(), d, false);
          const Tensor factors = Tensor::from(a, shape).to(d) * 0.5;
          const auto f = factors.to_vector<double>();
          const auto h = linear_recurrence(factors, Tensor::from(b, shape).to(d), axis, reverse).to_vector<double>();
          const Lines lines(shape, axis);
          for (int64_t l = 0; l < lines.count(); ++l) {
            double last = 0;
            for (int64_t k = 0; k < lines.size; ++k) {
              const size_t at = lines.at(l, reverse ? lines.size - 1 - k : k);
              last = f[at] * last + b[at];
              // |factors| are at most 0.75, so what two roundings a step leave adds up to four times as much.
              const double step = 2 * (d == DType::f64 ? 0x1p-53 : 0x1p-24) * 6;
              ASSERT_NEAR(h[at], last, 4 * step + epsilon_of(d) / 2 * std::abs(last))
                  << shape.str() << " axis " << axis;
            }
          }
        }
}

TEST(Recurrence, Errors) {
  EXPECT_EQ(kind_of([] { linear_recurrence(zeros({2}), zeros({3}), 0); }), ErrorKind::shape);
  EXPECT_EQ(kind_of([] { linear_recurrence(zeros({2}), zeros({2}, {.dtype = DType::f64}), 0); }), ErrorKind::shape);
  EXPECT_EQ(kind_of([] {
              const Tensor i = zeros({2}, {.dtype = DType::i64});
              linear_recurrence(i, i, 0);
            }),
            ErrorKind::dtype);
  EXPECT_TRUE(linear_recurrence(zeros({0}), zeros({0}), 0).to_vector<float>().empty());
}

}  // namespace
}  // namespace outrace
