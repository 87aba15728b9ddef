// Layer norm, RMS norm and their derivatives against long double, on each instruction set, with computed tolerances.
#include "outrace/backend/cpu/norm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "outrace/core/half.h"
#include "outrace/core/thread.h"
#include "outrace/outrace.h"
#include "tests/tile_support.h"

namespace outrace::cpu {
namespace {

using test::Dice;
using test::EachIsa;
using test::Guarded;

using Norm = EachIsa;
INSTANTIATE_TEST_SUITE_P(Isa, Norm, testing::ValuesIn(test::isas_here()), test::isa_name);

template <class T>
T narrowed(double v) {
  if constexpr (std::is_floating_point_v<T>)
    return static_cast<T>(v);
  else
    return T(static_cast<float>(v));
}
template <class T>
double wide(T v) {
  if constexpr (std::is_floating_point_v<T>)
    return static_cast<double>(v);
  else
    return static_cast<double>(static_cast<float>(v));
}

template <class T>
std::vector<T> numbers(int64_t count, double center, double spread, uint64_t seed) {
  Dice dice{seed};
  std::vector<T> out;
  for (int64_t i = 0; i < count; ++i) out.push_back(narrowed<T>(center + dice.uniform(-spread, spread)));
  return out;
}

// A kernel's result in a guarded buffer, off alignment.
template <class T, class Fn>
std::vector<T> guarded(int64_t count, const Fn& fn) {
  Guarded out(count * static_cast<int64_t>(sizeof(T)), sizeof(T));
  std::fill_n(out.data(), out.bytes(), 0x77);
  fn(out.data());
  EXPECT_TRUE(out.guards_hold());
  return std::vector<T>(out.as<T>(), out.as<T>() + count);
}

template <class T>
struct Problem {
  NormCall call;
  std::vector<T> x, w, b, g;
  Problem(int64_t rows, int64_t columns, bool centered, double center)
      : call{dtype_of<T>(), rows, columns, 1e-5, centered},
        x(numbers<T>(rows * columns, center, 3, 1)),
        w(numbers<T>(columns, 0, 2, 2)),
        b(numbers<T>(columns, 0, 2, 3)),
        g(numbers<T>(rows * columns, 0, 1, 4)) {}
};

struct RowFacts {
  long double mean = 0, inverse = 0;
};
template <class T>
RowFacts facts_of(const Problem<T>& p, int64_t r) {
  const int64_t n = p.call.columns;
  RowFacts f;
  long double squares = 0;
  if (p.call.centered)
    for (int64_t i = 0; i < n; ++i) f.mean += wide(p.x[r * n + i]) / static_cast<long double>(n);
  for (int64_t i = 0; i < n; ++i) squares += (wide(p.x[r * n + i]) - f.mean) * (wide(p.x[r * n + i]) - f.mean);
  f.inverse = 1 / std::sqrt(squares / n + p.call.eps);
  return f;
}

// Roundings of the type that is computed in, and of the stored one.
template <class T>
constexpr double kUnit = std::is_same_v<T, double> ? 0x1p-53 : 0x1p-24;
template <class T>
constexpr double kStored = std::is_floating_point_v<T> ? 0 : epsilon_of(dtype_of<T>()) / 2;

// Half the distance of f16's subnormal numbers.
template <class T>
constexpr double kTiny = std::is_same_v<T, f16> ? 0x1p-25 : 0;

template <class T>
void check(int64_t rows, int64_t columns, bool centered, double center) {
  SCOPED_TRACE(testing::Message() << name_of(dtype_of<T>()) << " " << rows << " x " << columns << " around " << center);
  const Problem<T> p(rows, columns, centered, center);
  const auto y = guarded<T>(rows * columns, [&](void* out) { norm(p.call, p.x.data(), p.w.data(), p.b.data(), out); });
  const auto plain = guarded<T>(rows * columns, [&](void* out) { norm(p.call, p.x.data(), nullptr, nullptr, out); });
  const auto dx =
      guarded<T>(rows * columns, [&](void* out) { norm_backward(p.call, p.x.data(), p.w.data(), p.g.data(), out); });
  const auto dw = guarded<T>(2 * columns, [&](void* out) { norm_weight_grad(p.call, p.x.data(), p.g.data(), out); });
  std::vector<long double> sum_w(columns, 0), sum_b(columns, 0), size_w(columns, 0), size_b(columns, 0);
  const long double u = kUnit<T>;
  for (int64_t r = 0; r < rows; ++r) {
    const RowFacts f = facts_of(p, r);
    // Half a rounding of the mean and of the difference, seen through the division by the deviation.
    const long double shift = 2 * u * (std::abs(center) + 3) * f.inverse;
    long double mean_h = 0, mean_product = 0, size = 0;
    for (int64_t i = 0; i < columns; ++i) {
      const long double h = wide(p.g[r * columns + i]) * static_cast<long double>(wide(p.w[i]));
      const long double n = (wide(p.x[r * columns + i]) - f.mean) * f.inverse;
      mean_h += h / columns, mean_product += h * n / columns, size += std::abs(h * n) / columns;
    }
    if (!centered) mean_h = 0;
    for (int64_t i = 0; i < columns; ++i) {
      const int64_t at = r * columns + i;
      const long double n = (wide(p.x[at]) - f.mean) * f.inverse, w = wide(p.w[i]), g = wide(p.g[at]);
      const long double error = shift + 8 * u * std::abs(n);
      ASSERT_NEAR(wide(plain[at]), n, static_cast<double>(kTiny<T> + error + kStored<T> * std::abs(n))) << at;
      const long double expected = n * w + wide(p.b[i]);
      ASSERT_NEAR(wide(y[at]), expected,
                  static_cast<double>(kTiny<T> + std::abs(w) * error + 2 * u * (std::abs(n * w) + std::abs(expected)) +
                                      kStored<T> * std::abs(expected)))
          << at;
      const long double slope = (g * w - mean_h - n * mean_product) * f.inverse;
      const long double terms = (std::abs(g * w) + std::abs(mean_h) + std::abs(n) * size + 1) * f.inverse;
      ASSERT_NEAR(wide(dx[at]), slope,
                  static_cast<double>(kTiny<T> + (40 * u + 8 * shift) * terms * (1 + std::abs(n)) +
                                      kStored<T> * std::abs(slope)))
          << at;
      sum_w[i] += g * n, sum_b[i] += g;
      size_w[i] += std::abs(g) * (shift + (32 + 0.1L * rows) * u * std::abs(n)), size_b[i] += std::abs(g);
    }
  }
  for (int64_t i = 0; i < columns; ++i) {
    ASSERT_NEAR(wide(dw[i]), sum_w[i],
                static_cast<double>(kTiny<T> + size_w[i] + u * std::abs(sum_w[i]) + kStored<T> * std::abs(sum_w[i])));
    ASSERT_NEAR(wide(dw[columns + i]), sum_b[i],
                static_cast<double>(kTiny<T> + (16 + 0.1L * rows) * u * size_b[i] + kStored<T> * std::abs(sum_b[i])));
  }
}

template <class T>
void check_all() {
  for (const bool centered : {true, false}) {
    for (const int64_t columns : {1, 2, 7, 8, 15, 16, 33, 64, 100, 1023, 1024, 1025, 4099})
      for (const int64_t rows : {1, 3}) check<T>(rows, columns, centered, 0);
    check<T>(700, 24, centered, 0);
    if (centered) check<T>(5, 300, centered, 1000);
  }
}
TEST_P(Norm, F32) { check_all<float>(); }
TEST_P(Norm, F64) { check_all<double>(); }
TEST_P(Norm, Bf16) { check_all<bf16>(); }
TEST_P(Norm, F16) { check_all<f16>(); }

// The last rows' results go past the caches.
TEST_P(Norm, LargeOutputsAreTheSameBits) {
  const int64_t columns = 1024, rows = 40 * 1024;  // 160 MB
  const Problem<float> p(64, columns, true, 0);
  std::vector<float> many;
  for (int64_t r = 0; r < rows; r += 64) many.insert(many.end(), p.x.begin(), p.x.end());
  NormCall call = p.call;
  std::vector<float> small(p.x.size()), large(many.size());
  norm(call, p.x.data(), p.w.data(), p.b.data(), small.data());
  call.rows = rows;
  norm(call, many.data(), p.w.data(), p.b.data(), large.data());
  for (int64_t r = 0; r < rows; r += 64)
    ASSERT_EQ(std::memcmp(small.data(), large.data() + r * columns, small.size() * sizeof(float)), 0) << r;
}

TEST_P(Norm, ThreadsChangeNoBit) {
  const Problem<float> p(3000, 100, true, 0);
  const int before = num_threads();
  std::vector<float> first, first_w;
  for (const int threads : {1, 2, 5}) {
    set_num_threads(threads);
    std::vector<float> dx(p.x.size()), dw(200);
    norm_backward(p.call, p.x.data(), p.w.data(), p.g.data(), dx.data());
    norm_weight_grad(p.call, p.x.data(), p.g.data(), dw.data());
    if (first.empty()) first = dx, first_w = dw;
    EXPECT_EQ(dx, first);
    EXPECT_EQ(dw, first_w);
  }
  set_num_threads(before);
}

TEST_P(Norm, UndefinedRowsAreNaNAndAlone) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor y = layer_norm(Tensor::from(std::vector<float>{1, 2, 3, nan, 0, 0, inf, 1, 1, 1, 2, 3}, {4, 3}), {3});
  const std::vector<double> v = y.to_vector<double>();
  for (const int i : {3, 4, 5, 6, 7, 8}) EXPECT_TRUE(std::isnan(v[i])) << i;
  for (const int i : {0, 1, 2, 9, 10, 11}) EXPECT_TRUE(std::isfinite(v[i])) << i;
}

// onnxruntime#28463: close, large numbers
TEST_P(Norm, LargeMeans) {
  for (const float start : {40000.f, 80000.f}) {
    const Tensor y = layer_norm(Tensor::from(std::vector<float>{start, start + 1, start + 2, start + 3}, {4}), {4});
    const std::vector<double> expected{-1.3416354, -0.4472118, 0.4472118, 1.3416354}, got = y.to_vector<double>();
    for (int i = 0; i < 4; ++i) EXPECT_NEAR(got[i], expected[i], 2e-7);
  }
}

TEST_P(Norm, EmptyRowsAndColumns) {
  EXPECT_EQ(layer_norm(zeros({0, 4}), {4}).to_vector<float>().size(), 0u);
  EXPECT_EQ(layer_norm(zeros({3, 0}), {0}).to_vector<float>().size(), 0u);
  Tensor w = ones({4}).requires_grad_();
  sum(layer_norm(zeros({0, 4}), {4}, w)).backward();
  EXPECT_EQ(w.grad().to_vector<float>(), std::vector<float>(4, 0));
}

}  // namespace
}  // namespace outrace::cpu
