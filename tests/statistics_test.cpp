// Variance, norms, counts, logarithms of sums of exponentials, truth reductions: against long double, and the cases
// where a plain formula fails.
#include "outrace/ops/statistics.h"

#include <gtest/gtest.h>

#include "outrace/graph/autograd.h"
#include "outrace/ops/op_def.h"
#include "tests/axis_support.h"

namespace outrace {
namespace {

using test::kind_of;
using test::kInf;
using test::kNaN;
using test::Threads;
using Values = std::vector<double>;

using Statistics = test::EachIsa;
INSTANTIATE_TEST_SUITE_P(Isa, Statistics, testing::ValuesIn(test::isas_here()), test::isa_name);

Tensor f64(const Values& v, const Shape& s) { return Tensor::from(v, s); }

// The elements of each result, by sets of axes.
std::vector<Values> groups_of(const Values& x, const Shape& shape, int64_t axes) {
  std::vector<Values> out;
  for (size_t i = 0; i < x.size(); ++i) {
    int64_t at = 0, stride = 1, left = static_cast<int64_t>(i);
    for (int a = shape.rank() - 1; a >= 0; --a) {
      if ((axes >> a & 1) == 0) {
        at += left % shape[a] * stride;
        stride *= shape[a];
      }
      left /= shape[a];
    }
    out.resize(std::max(out.size(), static_cast<size_t>(at) + 1));
    out[static_cast<size_t>(at)].push_back(x[i]);
  }
  return out;
}

std::vector<int64_t> axes_of(int64_t bits, int rank) {
  std::vector<int64_t> out;
  for (int i = 0; i < rank; ++i)
    if (bits >> i & 1) out.push_back(i);
  return out;
}

Values numbers(int64_t count, DType dtype, double shift) {
  test::Dice dice{41};
  Values out(static_cast<size_t>(count));
  for (double& v : out) v = shift + dice.uniform(-1, 2);
  return Tensor::from(out, {count}).to(dtype).to_vector<double>();
}

void expect_variance(const Shape& shape, DType dtype, double shift) {
  const Values x = numbers(shape.numel(), dtype, shift);
  const Tensor t = f64(x, shape).to(dtype);
  for (int64_t bits = 1; bits < int64_t{1} << shape.rank(); ++bits)
    for (const int64_t correction : {0, 1}) {
      SCOPED_TRACE(cat(shape, " axes ", bits, " ", name_of(dtype), " from ", shift));
      const VarianceAndMean both = var_mean(t, {axes_of(bits, shape.rank()), false, correction});
      const Values got = both.var.to_vector<double>(), means = both.mean.to_vector<double>();
      EXPECT_EQ(both.var.dtype(), dtype);
      const auto groups = groups_of(x, shape, bits);
      ASSERT_EQ(groups.size(), got.size());
      for (size_t g = 0; g < groups.size(); ++g) {
        long double mean = 0, squares = 0, size = 0, rest = 0;
        for (double v : groups[g]) mean += v;
        mean /= static_cast<long double>(groups[g].size());
        for (double v : groups[g]) squares += (v - mean) * (v - mean), rest += v - mean, size += std::fabs(v);
        squares -= rest * rest / static_cast<long double>(groups[g].size());
        const double free = static_cast<double>(groups[g].size()) - static_cast<double>(correction);
        const double unit = dtype == DType::f64 ? 0x1p-53 : 0x1p-24;
        // At most 256 additions a lane, rounded once each. The mean of a block is corrected by the sum of differences,
        // so only rounding relative to the squares is left, whatever the mean.
        const double tolerance = static_cast<double>(squares) / std::max(free, 1.0) * (300 * unit + epsilon_of(dtype)) +
                                 test::half_smallest(dtype);
        if (free <= 0)
          EXPECT_TRUE(std::isnan(got[g]));
        else
          ASSERT_NEAR(got[g], static_cast<double>(squares) / free, tolerance);
        ASSERT_NEAR(
            means[g], static_cast<double>(mean),
            (300 * unit + epsilon_of(dtype)) * static_cast<double>(size) / static_cast<double>(groups[g].size()));
      }
    }
}

TEST_P(Statistics, VarianceOfAllTypesAndAxes) {
  for (DType d : {DType::f32, DType::f64, DType::f16, DType::bf16})
    for (const Shape& shape : {Shape{1}, Shape{9}, Shape{1, 1}, Shape{3, 5}, Shape{2, 3, 4}, Shape{4, 1, 3},
                               Shape{3, 130}, Shape{130, 3}, Shape{40, 600}, Shape{2, 5001}, Shape{3, 70, 5}})
      expect_variance(shape, d, 0);
}

TEST_P(Statistics, VarianceBesideALargeMean) {
  for (const Shape& shape : {Shape{40, 50}, Shape{3, 5000}, Shape{200003}, Shape{70001, 3}}) {
    expect_variance(shape, DType::f32, 1e4);
    expect_variance(shape, DType::f32, 1e6);
    expect_variance(shape, DType::f64, 1e12);
  }
  const Tensor x = Tensor::from(std::vector<float>{10000, 10001, 10002, 10003}, {4});
  EXPECT_EQ(var(x, {.correction = 0}).item(), 1.25);
  EXPECT_EQ(var(x.reshape({4, 1}), {.axes = {0}, .correction = 0}).item(), 1.25);
  EXPECT_EQ(var(x.reshape({2, 1, 2}) + zeros({2, 3, 2}), {.axes = {0, 2}, .correction = 0}).to_vector<float>(),
            std::vector<float>(3, 1.25f));
}

TEST_P(Statistics, VarianceDoesNotDependOnThreads) {
  for (const Shape& shape : {Shape{300001}, Shape{3, 100001}, Shape{70001, 5}, Shape{300, 700}}) {
    const Tensor x = f64(numbers(shape.numel(), DType::f64, 3), shape).to(DType::f32).eval();
    for (int axis = 0; axis < shape.rank(); ++axis) {
      std::vector<float> first;
      for (const int threads : {1, 2, 3}) {
        const Threads use(threads);
        const auto y = var(x, {{axis}}).to_vector<float>();
        if (first.empty()) first = y;
        ASSERT_EQ(first, y) << shape.str() << " axis " << axis;
      }
    }
  }
}

// The decomposition is the reference of the kernel.
TEST(Variance, InOtherOps) {
  const Shape shape{4, 50, 3};
  const std::vector<Tensor> x{f64(numbers(shape.numel(), DType::f64, 2), shape)};
  for (const VarianceAttrs& a : {VarianceAttrs{1, 1}, VarianceAttrs{2, 0}, VarianceAttrs{0, 1}}) {
    const Values in_ops = kVariance.decompose(x, a).to_vector<double>();
    const Values kernel = var(x[0], {.axes = {a.axis}, .correction = a.correction}).to_vector<double>();
    ASSERT_EQ(in_ops.size(), kernel.size());
    for (size_t i = 0; i < kernel.size(); ++i) EXPECT_NEAR(in_ops[i], kernel[i], 1e-14);
  }
  for (double v : kVariance.decompose(x, VarianceAttrs{1, 50}).to_vector<double>()) EXPECT_TRUE(std::isnan(v));
}

TEST(Variance, NothingAndSpecialNumbers) {
  const Tensor empty = zeros({0, 4});
  EXPECT_TRUE(std::isnan(var(empty).item()));
  EXPECT_EQ(var(empty, {{1}}).shape(), Shape{0});
  const auto columns = var(empty, {{0}, true}).to_vector<float>();
  ASSERT_EQ(columns.size(), 4u);
  for (float v : columns) EXPECT_TRUE(std::isnan(v));
  EXPECT_TRUE(std::isnan(var(full({}, 3)).item()));
  EXPECT_EQ(var(full({}, 3), {.correction = 0}).item(), 0);
  EXPECT_TRUE(std::isnan(var(ones({3}), {.correction = 5}).item()));
  EXPECT_TRUE(std::isnan(var(f64({1, kInf, 2}, {3})).item()));
  EXPECT_TRUE(std::isnan(var(f64({1, kNaN, 2}, {3})).item()));
  EXPECT_EQ(var(full({3}, 40000, {.dtype = DType::f16}), {.correction = 0}).item(), 0);
  EXPECT_EQ(kind_of([] { var(zeros({3}, {.dtype = DType::i32})); }), ErrorKind::dtype);
  EXPECT_EQ(kind_of([] { var(zeros({3}), {.correction = -1}); }), ErrorKind::value);
  EXPECT_EQ(kind_of([] { outrace::std(zeros({3}), {{1}}); }), ErrorKind::shape);
}

TEST(Variance, DeviationOfEqualNumbersHasNoGradient) {
  Tensor x = f64({2, 2, 2, 1, 2, 3}, {2, 3}).requires_grad_();
  const Tensor s = outrace::std(x, {{1}});
  EXPECT_EQ(s.to_vector<double>(), (Values{0, 1}));
  sum(s).backward();
  EXPECT_EQ(x.grad().to_vector<double>(), (Values{0, 0, 0, -0.5, 0, 0.5}));
}

// pytorch#2421
TEST(Norm, OfTheOrigin) {
  for (const double p : {0.0, 1.0, 2.0, 3.0, 0.5, kInf, -kInf, -2.0}) {
    Tensor x = f64({0, 0, 0, 1, 2, 2}, {2, 3}).requires_grad_();
    const Tensor n = norm(x, p, {{1}});
    EXPECT_EQ(n.to_vector<double>()[0], 0) << p;
    if (p == 0) {
      EXPECT_EQ(n.to_vector<double>()[1], 3);
      EXPECT_FALSE(n.requires_grad());
      continue;
    }
    sum(n).backward();
    const Values g = x.grad().to_vector<double>();
    for (size_t i = 0; i < 6; ++i) EXPECT_TRUE(i < 3 ? g[i] == 0 : std::isfinite(g[i])) << p << " at " << i;
    if (p == 2) {
      EXPECT_EQ(n.to_vector<double>()[1], 3);
      EXPECT_NEAR(g[3], 1.0 / 3, 1e-15);
      EXPECT_NEAR(g[5], 2.0 / 3, 1e-15);
    }
  }
}

TEST(Norm, SpecialNumbersAndTypes) {
  EXPECT_EQ(norm(f64({3, -kInf}, {2}), 3).item(), kInf);
  EXPECT_EQ(norm(f64({3, -kInf}, {2}), 2).item(), kInf);
  EXPECT_EQ(norm(f64({3, -kInf}, {2}), -2).item(), 3);
  EXPECT_EQ(norm(f64({3, 0, 5}, {3}), -2).item(), 0);
  for (const double p : {1.0, 2.0, 3.0, 0.5, kInf, -kInf, -2.0})
    EXPECT_TRUE(std::isnan(norm(f64({1, kNaN, 0}, {3}), p).item())) << p;
  EXPECT_NEAR(norm(f64({3e200, 4e200}, {2}), 3).item() / 1e200, std::cbrt(91.0), 1e-13);
  EXPECT_EQ(norm(full({4}, 30000, {.dtype = DType::f16}), 2).item(), 60000);
  EXPECT_EQ(norm(full({}, -3), 2).item(), 3);
  EXPECT_EQ(norm(zeros({0, 2}), 2, {{0}}).to_vector<float>(), std::vector<float>(2, 0));
  EXPECT_EQ(kind_of([] { norm(zeros({0, 2}), kInf); }), ErrorKind::shape);
  EXPECT_EQ(kind_of([] { norm(zeros({2}), kNaN); }), ErrorKind::value);
  EXPECT_EQ(kind_of([] { norm(zeros({2}, {.dtype = DType::i32})); }), ErrorKind::dtype);
}

TEST(Histogram, BinsAndTheirEdges) {
  const Tensor x = f64({0, 0.5, 1, 1, 1.5, 2, 2.0000001, -0.1, kNaN, kInf, -kInf, 0.999999}, {12});
  EXPECT_EQ(histogram(x, 2, 0, 2).to_vector<int64_t>(), (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(histogram(x, 1, -1, 3).to_vector<int64_t>(), (std::vector<int64_t>{9}));
  // Edges that are no binary fractions: NumPy's linspace decides.
  std::vector<double> edges;
  for (int i = 0; i <= 10; ++i) edges.push_back(i * 0.1);
  edges[10] = 1;
  EXPECT_EQ(histogram(f64(edges, {11}), 10, 0, 1).to_vector<int64_t>(),
            (std::vector<int64_t>{1, 1, 1, 1, 1, 1, 1, 1, 1, 2}));
  EXPECT_EQ(histogram(zeros({0}), 3, 0, 1).to_vector<int64_t>(), (std::vector<int64_t>{0, 0, 0}));
  EXPECT_EQ(histogram(full({}, 1), 3, 0, 3).to_vector<int64_t>(), (std::vector<int64_t>{0, 1, 0}));
  EXPECT_EQ(kind_of([&] { histogram(x, 0, 0, 1); }), ErrorKind::value);
  EXPECT_EQ(kind_of([&] { histogram(x, 2, 1, 1); }), ErrorKind::value);
  EXPECT_EQ(kind_of([&] { histogram(x, 2, 0, kInf); }), ErrorKind::value);
  EXPECT_EQ(kind_of([&] { histogram(x, 2, kNaN, 1); }), ErrorKind::value);
}

TEST(Histogram, AllTypesAndThreads) {
  for (int d = 0; d < kDTypeCount; ++d) {
    const DType dtype = static_cast<DType>(d);
    for (const int64_t n : {int64_t{100}, int64_t{300007}}) {
      const Values x = test::tied_numbers(n, dtype, true, 2);
      std::vector<int64_t> want(40, 0);
      for (double v : x)
        if (v >= -100 && v <= 100) ++want[std::min<size_t>(39, static_cast<size_t>((v + 100) / 5))];
      for (const int threads : {1, 3}) {
        const Threads use(threads);
        EXPECT_EQ(histogram(Tensor::from(x, {n}).to(dtype), 40, -100, 100).to_vector<int64_t>(), want)
            << name_of(dtype);
      }
    }
  }
}

TEST(Bincount, CountsIntegers) {
  for (DType d : {DType::i64, DType::i32, DType::u8}) {
    const Tensor x = Tensor::from(std::vector<int64_t>{3, 1, 1, 7, 0, 3}, {2, 3}).to(d);
    EXPECT_EQ(bincount(x).to_vector<int64_t>(), (std::vector<int64_t>{1, 2, 0, 2, 0, 0, 0, 1}));
    EXPECT_EQ(bincount(x, 10).shape(), Shape{10});
  }
  EXPECT_EQ(bincount(zeros({0}, {.dtype = DType::i64})).shape(), Shape{0});
  EXPECT_EQ(bincount(zeros({0}, {.dtype = DType::i64}), 3).to_vector<int64_t>(), (std::vector<int64_t>{0, 0, 0}));
  EXPECT_EQ(bincount(full({200001}, 2, {.dtype = DType::i64})).to_vector<int64_t>()[2], 200001);
  EXPECT_EQ(kind_of([] { bincount(zeros({2})); }), ErrorKind::dtype);
  EXPECT_EQ(kind_of([] { bincount(full({2}, -1, {.dtype = DType::i32})); }), ErrorKind::value);
  EXPECT_EQ(kind_of([] { bincount(zeros({2}, {.dtype = DType::i64}), -1); }), ErrorKind::value);
}

TEST_P(Statistics, TruthOfAllTypes) {
  for (int d = 0; d < kDTypeCount; ++d) {
    const DType dtype = static_cast<DType>(d);
    const Tensor x = f64({0, 0, 0, 1, 0, 2, 1, 1, 3}, {3, 3}).to(dtype);
    EXPECT_EQ(any(x, {{1}}).dtype(), DType::boolean);
    EXPECT_EQ(any(x, {{1}}).to_vector<int64_t>(), (std::vector<int64_t>{0, 1, 1})) << name_of(dtype);
    EXPECT_EQ(all(x, {{1}}).to_vector<int64_t>(), (std::vector<int64_t>{0, 0, 1}));
    EXPECT_EQ(any(x.t(), {{0}, true}).shape(), (Shape{1, 3}));
    EXPECT_EQ(all(x.slice(0, 2, 3)).item(), 1);
    EXPECT_EQ(any(x.slice(0, 0, 1)).item(), 0);
    const Tensor nothing = zeros({0, 2}, {.dtype = dtype});
    EXPECT_EQ(any(nothing).item(), 0);
    EXPECT_EQ(all(nothing).item(), 1);
    EXPECT_EQ(all(nothing, {{0}}).to_vector<int64_t>(), (std::vector<int64_t>{1, 1}));
    EXPECT_EQ(any(nothing, {{1}}).shape(), Shape{0});
    EXPECT_EQ(all(nothing, {{1}}).shape(), Shape{0});
  }
  EXPECT_EQ(any(f64({kNaN, 0}, {2})).item(), 1);
  EXPECT_EQ(all(f64({kNaN, -0.0}, {2})).item(), 0);
  EXPECT_EQ(any(Tensor::from(std::vector<int64_t>{0, int64_t{1} << 40}, {2})).item(), 1);
}

// pytorch#34907, and products
TEST_P(Statistics, ExtremesAndProducts) {
  const Tensor a = zeros({0, 4}), b = zeros({2, 0});
  EXPECT_EQ(prod(a).item(), 1);
  EXPECT_EQ(prod(b, {{1}}).to_vector<float>(), std::vector<float>(2, 1));
  for (auto fn : {max, min}) {
    EXPECT_EQ(kind_of([&] { fn(a, {}); }), ErrorKind::shape);
    EXPECT_EQ(kind_of([&] { fn(a, {{0}, false}); }), ErrorKind::shape);
    EXPECT_EQ(kind_of([&] { fn(b, {{1}, false}); }), ErrorKind::shape);
    EXPECT_EQ(fn(a, {{1}, false}).shape(), Shape{0});
    EXPECT_TRUE(fn(a, {{1}, false}).template to_vector<float>().empty());
    EXPECT_EQ(fn(b, {{0}, false}).shape(), Shape{0});
  }
  for (int d = 0; d < kDTypeCount; ++d) {
    const DType dtype = static_cast<DType>(d);
    const Tensor x = f64({1, 0, 1, 1}, {2, 2}).to(dtype);
    EXPECT_EQ(min(x, {{1}}).to_vector<int64_t>(), (std::vector<int64_t>{0, 1})) << name_of(dtype);
    EXPECT_EQ(min(x).dtype(), dtype);
    EXPECT_EQ(prod(x, {{1}}).to_vector<int64_t>(), (std::vector<int64_t>{0, 1}));
    EXPECT_EQ(prod(x).dtype(), is_float(dtype) ? dtype : DType::i64);
  }
  EXPECT_EQ(prod(full({64}, 3, {.dtype = DType::i64})).to_vector<int64_t>()[0], static_cast<int64_t>([] {
              uint64_t p = 1;
              for (int i = 0; i < 64; ++i) p *= 3;
              return p;
            }()));
  EXPECT_EQ(prod(full({3}, 200, {.dtype = DType::f16}) * 0.05).item(), 1000);
}

TEST(LogSumExp, OfInfinities) {
  auto check = [](const Values& v, double want, const Values& gradient) {
    Tensor x = f64(v, {static_cast<int64_t>(v.size())}).requires_grad_();
    const Tensor y = logsumexp(x);
    EXPECT_NEAR(std::isinf(want) ? 0 : y.item(), std::isinf(want) ? 0 : want, 1e-12);
    if (std::isinf(want)) {
      EXPECT_EQ(y.item(), want);
    }
    y.backward();
    const Values g = x.grad().to_vector<double>();
    for (size_t i = 0; i < gradient.size(); ++i) EXPECT_NEAR(g[i], gradient[i], 1e-12);
  };
  check({-kInf, -kInf}, -kInf, {0, 0});
  check({-kInf, 1}, 1, {0, 1});
  check({1000, 1000}, 1000 + std::log(2.0), {0.5, 0.5});
  check({-1e300, 3}, 3, {0, 1});
  check({kInf, 1}, kInf, {});
  EXPECT_TRUE(std::isnan(logsumexp(f64({kNaN, 1}, {2})).item()));
  EXPECT_EQ(logsumexp(zeros({0, 2}), {{0}}).to_vector<double>(), (Values{-kInf, -kInf}));
  EXPECT_EQ(logsumexp(full({}, 3)).item(), 3);
  EXPECT_NEAR(logsumexp(full({4}, 60000, {.dtype = DType::f16})).item(), 60000, 32);
  EXPECT_EQ(kind_of([] { logsumexp(zeros({2}, {.dtype = DType::i64})); }), ErrorKind::dtype);
  // jax#6811: -inf + x at x = 1
  Tensor x = f64({1}, {1}).requires_grad_();
  const Tensor y = logsumexp(f64({-kInf, -kInf}, {2}) + f64({0, 1}, {2}) * x);
  EXPECT_EQ(y.item(), -kInf);
  y.backward();
  EXPECT_EQ(x.grad().item(), 0);
}

// jax#17117, #23842
TEST(Masked, LargeExcludedNumbersReachNothing) {
  const Tensor keep = f64({1, 1, 0}, {3}) > 0;
  Tensor x = f64({1, 1, 100}, {3}).requires_grad_();
  const Tensor s = masked_softmax(x, keep);
  EXPECT_EQ(s.to_vector<double>(), (Values{0.5, 0.5, 0}));
  EXPECT_EQ(grad(sum(s), {x})[0].to_vector<double>(), (Values{0, 0, 0}));
  const Tensor l = masked_log_softmax(x, keep);
  EXPECT_EQ(l.to_vector<double>()[2], -kInf);
  const Tensor total = masked_sum(l, keep);
  EXPECT_NEAR(total.item(), -1.3862944, 1e-7);
  EXPECT_EQ(grad(total, {x})[0].to_vector<double>(), (Values{0, 0, 0}));
  for (const double excluded : {100.0, 1e300, kInf, -kInf, kNaN}) {
    Tensor z = f64({0, excluded}, {2}).requires_grad_();
    const Tensor first = f64({1, 0}, {2}) > 0, e = masked_logsumexp(z, first);
    EXPECT_EQ(e.item(), 0) << excluded;
    EXPECT_EQ(grad(e, {z})[0].to_vector<double>(), (Values{1, 0})) << excluded;
    Tensor r = f64({36, excluded}, {2}).requires_grad_();
    const Tensor y = masked_sum(exp(select(first, r, 0.0)), first);
    EXPECT_NEAR(y.item() / 4.3112315e15, 1, 1e-7);
    const Values g = grad(y, {r})[0].to_vector<double>();
    EXPECT_NEAR(g[0] / 4.3112315e15, 1, 1e-7);
    EXPECT_EQ(g[1], 0);
  }
}

// pytorch#131060, #103963: nothing kept gives 0, not NaN
TEST(Masked, RowsOfWhichNothingIsKept) {
  Tensor x = f64({1, 2, 3, 4, -kInf, -kInf}, {3, 2}).requires_grad_();
  const Tensor keep = f64({1, 1, 0, 0, 1, 1}, {3, 2}) > 0;
  const Tensor s = masked_softmax(x, keep);
  const Values v = s.to_vector<double>();
  EXPECT_NEAR(v[0] + v[1], 1, 1e-15);
  for (size_t i = 2; i < 6; ++i) EXPECT_EQ(v[i], 0);
  const Values g = grad(sum(s * f64({1, 2, 3, 4, 5, 6}, {3, 2})), {x})[0].to_vector<double>();
  for (size_t i = 0; i < 6; ++i) EXPECT_TRUE(i < 2 ? std::isfinite(g[i]) : g[i] == 0) << i;
  EXPECT_EQ(masked_logsumexp(x, keep, {{1}}).to_vector<double>()[1], -kInf);
  for (double d : grad(sum(select(keep, masked_log_softmax(x, keep), 0.0).slice(0, 0, 2)), {x})[0].to_vector<double>())
    EXPECT_TRUE(std::isfinite(d));
  // The mask broadcasts, of either side; kept NaN and +inf stay NaN.
  EXPECT_EQ(masked_softmax(f64({0, 0}, {2}), f64({1, 0, 0, 0}, {2, 2}) > 0).to_vector<double>(), (Values{1, 0, 0, 0}));
  EXPECT_TRUE(std::isnan(masked_softmax(f64({kInf, 0}, {2}), f64({1}, {1}) > 0).to_vector<double>()[0]));
  EXPECT_TRUE(std::isnan(masked_log_softmax(f64({kNaN, 0}, {2}), f64({1}, {1}) > 0).to_vector<double>()[1]));
  EXPECT_EQ(masked_softmax(zeros({2, 0}), f64({1}, {1}) > 0).shape(), (Shape{2, 0}));
  EXPECT_EQ(masked_log_softmax(zeros({2, 0}), f64({1}, {1}) > 0).shape(), (Shape{2, 0}));
  EXPECT_EQ(kind_of([&] { masked_softmax(x, zeros({3, 2})); }), ErrorKind::dtype);
  EXPECT_EQ(kind_of([&] { masked_sum(x, zeros({3, 3}) > 0); }), ErrorKind::shape);
}

TEST(StatisticsCases, NegativeNormOfInfinities) {
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(norm(full({2}, inf), -1).item(), inf);
}

}  // namespace
}  // namespace outrace
