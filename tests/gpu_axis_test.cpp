// label: backend
// Ops along one axis on every GPU found, equal to the CPU's: sizes that are cut in parts, long and short lines, all
// dtypes, ties and NaN. Small shapes are forward_test's.
#include <gtest/gtest.h>

#include <bit>

#include "gpu_support.h"
#include "outrace/backend/backend.h"
#include "outrace/graph/autograd.h"
#include "tests/axis_support.h"

namespace outrace {
namespace {

using test::same_number;

// One of each kind and size of number, f64 once: texts differ in how numbers are read, and forward_test takes them all.
const DType kKinds[] = {DType::f32, DType::f64, DType::bf16, DType::i64};

struct Lined {
  Shape shape;
  int axis;
};
// Long and short lines, few and many, the axis at every place.
const Lined kLined[] = {{{1, 100'000}, 1}, {{70'000, 3}, 0}, {{513, 1025}, 1}, {{130, 77, 9}, 1},
                        {{3000, 7}, 1},    {{5, 3, 0}, 1},   {{1}, 0},         {{2, 300}, 1}};

// All for f32; for the others a shape that groups walk or one that items walk, as compiling takes longer than running.
std::vector<Lined> lined_for(DType dtype) {
  if (dtype == DType::f32) return {std::begin(kLined), std::end(kLined)};
  if (dtype == DType::i64) return {kLined[0], kLined[3]};
  return {kLined[dtype == DType::f64 ? 2 : 3]};
}

using Fn = std::function<Tensor(const Tensor&)>;

// The same numbers on the CPU and on each device, twice there with the same bits.
void expect_same(const Tensor& x, const Fn& fn) {
  const auto want = fn(x).to_vector<double>();
  for (const Device d : gpus()) {
    const Tensor y = x.to(d).eval();
    const auto got = fn(y).to_vector<double>();
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i)
      ASSERT_TRUE(same_number(got[i], want[i])) << i << ": " << got[i] << " for " << want[i];
  }
}

// Within `roundings` halves of an ulp of the largest result; NaN and infinities alike.
void expect_near(const Tensor& x, const Fn& fn, double roundings) {
  const auto want = fn(x.to(DType::f64)).to_vector<double>();
  double largest = 0;
  for (const double v : want)
    if (std::isfinite(v)) largest = std::max(largest, std::abs(v));
  for (const Device d : gpus()) {
    const Tensor y = x.to(d).eval();
    const auto got = fn(y).to_vector<double>(), again = fn(y).to_vector<double>();
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_EQ(std::bit_cast<int64_t>(got[i]), std::bit_cast<int64_t>(again[i])) << i;
      if (std::isfinite(want[i]))
        ASSERT_NEAR(got[i], want[i], roundings * epsilon_of(x.dtype()) / 2 * largest) << i;
      else
        ASSERT_TRUE(same_number(got[i], want[i])) << i << ": " << got[i] << " for " << want[i];
    }
  }
}

Tensor tied(const Shape& shape, DType dtype, bool special, uint64_t seed = 5) {
  return Tensor::from(test::tied_numbers(shape.numel(), dtype, special, seed), shape).to(dtype).eval();
}

TEST(GpuAxis, PositionsOfExtremes) {
  for (const DType dtype : kKinds)
    for (const Lined& l : lined_for(dtype)) {
      if (l.shape[l.axis] == 0) continue;
      for (const bool special : {false, true}) {
        if (special && !is_float(dtype)) continue;
        SCOPED_TRACE(cat(l.shape, " axis ", l.axis, " ", name_of(dtype), special ? " special" : ""));
        const Tensor x = tied(l.shape, dtype, special);
        expect_same(x, [&](const Tensor& t) { return argmax(t, l.axis); });
        expect_same(x, [&](const Tensor& t) { return argmin(t, l.axis); });
        if (testing::Test::HasFatalFailure()) return;
      }
    }
}

TEST(GpuAxis, PositionsOfExtremesSoFar) {
  for (const DType dtype : {DType::f32, DType::i64})
    for (const Lined& l : lined_for(dtype)) {
      SCOPED_TRACE(cat(l.shape, " axis ", l.axis, " ", name_of(dtype)));
      const Tensor x = tied(l.shape, dtype, true);
      expect_same(x, [&](const Tensor& t) { return cummax(t, l.axis).indices; });
      expect_same(x, [&](const Tensor& t) { return cummin(t, l.axis).indices; });
      if (testing::Test::HasFatalFailure()) return;
    }
}

// Whole numbers whose sums are exact everywhere, so that every order of additions gives the same.
TEST(GpuAxis, ScansOfWholeNumbersAreTheCpus) {
  for (const DType dtype : {DType::f32, DType::f64, DType::i64})
    for (const Lined& l : lined_for(dtype))
      for (const bool reverse : {false, true}) {
        SCOPED_TRACE(cat(l.shape, " axis ", l.axis, " ", name_of(dtype), reverse ? " reverse" : ""));
        const Tensor x = tied(l.shape, dtype, false);
        expect_same(x, [&](const Tensor& t) { return cumsum(t, l.axis, {.reverse = reverse}); });
        expect_same(x, [&](const Tensor& t) { return cumsum(t, l.axis, {.reverse = reverse, .exclusive = true}); });
        if (dtype == DType::i64)
          expect_same(x, [&](const Tensor& t) { return cumprod(t, l.axis, {.reverse = reverse}); });
        if (testing::Test::HasFatalFailure()) return;
      }
}

TEST(GpuAxis, ScansOfRealNumbers) {
  manual_seed(3);
  for (const DType dtype : {DType::f32, DType::f64})
    for (const Lined& l : lined_for(dtype)) {
      SCOPED_TRACE(cat(l.shape, " axis ", l.axis, " ", name_of(dtype)));
      const Tensor x = uniform(l.shape, -1, 1).to(dtype).eval(), factors = uniform(l.shape, 0.9, 1.1).to(dtype).eval();
      const double n = dtype == DType::f64 ? 2.0 * static_cast<double>(l.shape[l.axis]) : 8;
      expect_near(
          x, [&](const Tensor& t) { return cumsum(t, l.axis); }, n);
      expect_near(
          factors, [&](const Tensor& t) { return cumprod(t, l.axis, {.exclusive = true}); }, n + 8);
      expect_near(
          x, [&](const Tensor& t) { return linear_recurrence(t, t, l.axis); }, 64);
      expect_near(
          x, [&](const Tensor& t) { return linear_recurrence(t * 0.25 + 0.7, t, l.axis, true); }, 256);
      if (testing::Test::HasFatalFailure()) return;
    }
}

// A zero, an infinity or a NaN far from the parts that they reach; factors that overflow in a part of their own.
TEST(GpuAxis, ScansOfSpecialNumbers) {
  for (const DType dtype : {DType::f32, DType::f64})
    for (const Lined& l : {Lined{{1, 100'000}, 1}, Lined{{20'000, 3}, 0}}) {
      if (dtype == DType::f64 && l.axis == 0) continue;
      const int64_t n = l.shape.numel();
      std::vector<double> zero(static_cast<size_t>(n), 2.0), nan(zero), large(zero);
      zero[10] = 0;
      nan[20] = test::kNaN;
      nan[7] = test::kInf;
      for (size_t i = 0; i < large.size(); ++i) large[i] = i < large.size() / 3 * 1 ? 0.25 : i % 2 == 0 ? 4 : 0.25;
      for (const auto* v : {&zero, &nan, &large}) {
        SCOPED_TRACE(cat(l.shape, " ", name_of(dtype), " ", v == &zero ? "zero" : v == &nan ? "nan" : "large"));
        const Tensor x = Tensor::from(*v, l.shape).to(dtype).eval();
        expect_same(x, [&](const Tensor& t) { return cumprod(t, l.axis); });
        expect_same(x, [&](const Tensor& t) { return linear_recurrence(t, t * 0, l.axis); });
        expect_same(x, [&](const Tensor& t) { return cumsum(t, l.axis); });
        if (testing::Test::HasFatalFailure()) return;
      }
    }
}

// Squares far smaller than the square of the mean.
TEST(GpuAxis, Variance) {
  manual_seed(4);
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16})
    for (const Lined& l : lined_for(dtype)) {
      SCOPED_TRACE(cat(l.shape, " axis ", l.axis, " ", name_of(dtype)));
      const Tensor x = (uniform(l.shape, -1, 1) + (dtype == DType::bf16 ? 3.0 : 1000.0)).to(dtype).eval();
      expect_near(
          x, [&](const Tensor& t) { return var(t, {.axes = {l.axis}}); }, 64);
      if (testing::Test::HasFatalFailure()) return;
    }
}

TEST(GpuAxis, Norms) {
  manual_seed(5);
  for (const DType dtype : {DType::f32, DType::f64})
    for (const Shape& s :
         {Shape{1, 100'000}, Shape{513, 1025}, Shape{7000, 3}, Shape{40, 300}, Shape{2, 0}, Shape{0, 5}}) {
      if ((dtype == DType::f64) != (s[1] == 300)) continue;  // 32 lanes in f64, 8 and 256 in f32
      const Tensor x = (randn(s) * 2 + 3).to(dtype).eval();
      const auto all = [&](const Tensor& t, bool rms, bool weighted) {
        // Numbers that every dtype holds exactly.
        std::vector<double> scales(static_cast<size_t>(s[1]));
        for (size_t i = 0; i < scales.size(); ++i) scales[i] = 1 + static_cast<double>(i % 8) / 8;
        const auto leaf = [&](const Tensor& from) {
          Tensor v = from.to(t.dtype()).to(t.device()).detach().eval();
          return v.requires_grad_();
        };
        const Tensor v = leaf(t), w = leaf(Tensor::from(scales, {s[1]})), c = leaf(zeros({s[1]}));
        const Tensor none;
        const Tensor y = rms ? rms_norm(v, {s[1]}, weighted ? w : none)
                             : layer_norm(v, {s[1]}, weighted ? w : none, weighted ? c : none);
        std::vector<Tensor> of{v};
        if (weighted) of.push_back(w);
        if (weighted && !rms) of.push_back(c);
        const Tensor g = Tensor::from(test::tied_numbers(s.numel(), DType::bf16, false, 9), s);
        const Tensor upstream = (g * (1.0 / 64)).to(t.dtype()).to(t.device()).eval();
        std::vector<Tensor> out{y.detach().reshape({s.numel()})};
        for (const Tensor& d : grad(y, of, {}, upstream)) out.push_back(d.reshape({d.numel()}));
        return out;
      };
      for (const bool rms : {false, true})
        for (const bool weighted : {false, true})
          for (size_t part = 0; part < (weighted ? rms ? 3u : 4u : 2u); ++part) {
            SCOPED_TRACE(cat(s, " ", name_of(dtype), rms ? " rms" : "", weighted ? " weighted" : "", " part ", part));
            // A weight's gradient has a rounding for each line, summed in parts.
            expect_near(
                x, [&](const Tensor& t) { return all(t, rms, weighted)[part]; }, 256);
            if (testing::Test::HasFatalFailure()) return;
          }
    }
}

TEST(GpuAxis, Order) {
  for (const DType dtype : {DType::f32, DType::f64, DType::i64})
    for (const Lined& l : {kLined[0], kLined[1], kLined[2], kLined[3], kLined[5], kLined[7], Lined{{1, 2049}, 1}})
      for (const bool descending : {false, true}) {
        SCOPED_TRACE(cat(l.shape, " axis ", l.axis, " ", name_of(dtype), descending ? " descending" : ""));
        if (dtype != DType::f32 && l.shape[1] != (dtype == DType::i64 ? 2049 : 300)) continue;
        const Tensor x = tied(l.shape, dtype, true);
        const int64_t n = l.shape[l.axis];
        expect_same(x, [&](const Tensor& t) { return argsort(t, l.axis, descending); });
        for (const int64_t k : {int64_t{0}, int64_t{3}, n / 2, n}) {
          if (k > n || (n > 3000 && k != 3)) continue;
          SCOPED_TRACE(cat("k ", k));
          expect_same(x, [&](const Tensor& t) { return topk(t, k, {l.axis, descending}).indices; });
          expect_same(x, [&](const Tensor& t) { return topk(t, k, {l.axis, descending, false}).indices; });
          if (k > 0) expect_same(x, [&](const Tensor& t) { return kthvalue(t, k, l.axis).indices; });
          if (testing::Test::HasFatalFailure()) return;
        }
      }
}

TEST(GpuAxis, Counts) {
  for (const DType dtype : kKinds)
    for (const int64_t bins : {1, 7, 5000}) {
      if (dtype != DType::f32 && bins != 7) continue;
      SCOPED_TRACE(cat(name_of(dtype), " ", bins));
      for (const Shape& s : {Shape{100'000}, Shape{0}, Shape{3, 11}})
        expect_same(tied(s, dtype, true), [&](const Tensor& t) { return histogram(t, bins, -90, 901.5); });
    }
  for (const int64_t high : {2, 300, 100'000}) {
    manual_seed(6);
    expect_same(randint(0, high, {100'000}), [&](const Tensor& t) { return bincount(t, 5); });
  }
  expect_same(zeros({0}, {.dtype = DType::i64}), [&](const Tensor& t) { return bincount(t, 5); });
}

}  // namespace
}  // namespace outrace
