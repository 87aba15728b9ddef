// Softmax and cross-entropy against long double with computed tolerances, and the cases that went wrong elsewhere.
#include "outrace/backend/cpu/rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "outrace/core/error.h"
#include "outrace/core/half.h"
#include "outrace/core/thread.h"
#include "tests/tile_support.h"

namespace outrace::cpu {
namespace {

using test::Dice;
using test::EachIsa;
using test::Guarded;

using Rows = EachIsa;
INSTANTIATE_TEST_SUITE_P(Isa, Rows, testing::ValuesIn(test::isas_here()), test::isa_name);

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

struct Threads {
  explicit Threads(int count) { set_num_threads(count); }
  ~Threads() { set_num_threads(before); }
  int before = num_threads();
};

double as_double(float v) { return static_cast<double>(v); }
double as_double(double v) { return v; }
double as_double(bf16 v) { return static_cast<double>(static_cast<float>(v)); }
double as_double(f16 v) { return static_cast<double>(static_cast<float>(v)); }

template <class T>
T from_double(double v) {
  if constexpr (std::is_floating_point_v<T>)
    return static_cast<T>(v);
  else
    return T(static_cast<float>(v));
}

template <class T>
std::vector<T> as(const std::vector<double>& v) {
  std::vector<T> out;
  for (const double x : v) out.push_back(from_double<T>(x));
  return out;
}

// The unit roundoff of the type that is computed in.
template <class T>
constexpr double kUnit = std::is_same_v<T, double> ? 0x1p-53 : 0x1p-24;
// What storing adds to it.
template <class T>
constexpr double kStored = epsilon_of(dtype_of<T>()) / 2;
// Exponentials below it are 0.
template <class T>
constexpr double kSmall = std::is_same_v<T, double> ? 0x1p-1021 : 0x1p-125;

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
std::vector<T> softmax_of(const std::vector<T>& x, int64_t rows, int64_t columns) {
  return guarded<T>(rows * columns, [&](void* y) { softmax(dtype_of<T>(), x.data(), y, rows, columns); });
}
template <class T>
std::vector<T> log_softmax_of(const std::vector<T>& x, int64_t rows, int64_t columns) {
  return guarded<T>(rows * columns, [&](void* y) { log_softmax(dtype_of<T>(), x.data(), y, rows, columns); });
}

template <class T>
std::vector<T> logsumexp_of(const std::vector<T>& x, int64_t rows, int64_t columns) {
  return guarded<T>(rows, [&](void* y) { logsumexp(dtype_of<T>(), x.data(), y, rows, columns); });
}

template <class T>
CrossEntropyCall call_of(int64_t rows, int64_t classes, Reduction reduction, int64_t ignore_index = -100) {
  return {dtype_of<T>(), DType::i64, rows, classes, {reduction, ignore_index}};
}
template <class T>
std::vector<T> loss_of(const CrossEntropyCall& call, const std::vector<T>& x, const std::vector<int64_t>& targets) {
  return guarded<T>(call.attrs.reduction == Reduction::none ? call.rows : 1,
                    [&](void* loss) { cross_entropy(call, x.data(), targets.data(), loss); });
}
template <class T>
std::vector<T> grad_of(const CrossEntropyCall& call, const std::vector<T>& x, const std::vector<int64_t>& targets,
                       const std::vector<T>& g) {
  return guarded<T>(call.rows * call.classes,
                    [&](void* y) { cross_entropy_grad(call, x.data(), targets.data(), g.data(), y); });
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

template <class T>
std::vector<T> numbers(int64_t count, double spread, uint64_t seed) {
  Dice dice{seed};
  std::vector<double> out(static_cast<size_t>(count));
  for (auto& v : out) v = dice.uniform(-spread, spread);
  return as<T>(out);
}

std::vector<int64_t> classes(int64_t rows, int64_t columns, uint64_t seed) {
  Dice dice{seed};
  std::vector<int64_t> out(static_cast<size_t>(rows));
  for (auto& t : out) t = dice.below(columns);
  return out;
}

// One row in long double, with bounds of the relative errors of what the kernels compute.
template <class T>
struct RowReference {
  long double max = -kInf, sum = 0;
  double sum_error = 0;

  RowReference(const T* x, int64_t columns) {
    for (int64_t i = 0; i < columns; ++i) max = std::max<long double>(max, as_double(x[i]));
    long double weighted = 0;
    for (int64_t i = 0; i < columns; ++i) {
      sum += std::exp(as_double(x[i]) - max);
      weighted += error(as_double(x[i])) * std::exp(as_double(x[i]) - max);
    }
    // A lane takes part in at most 32 + 6 additions of positive numbers a block (64 + 5 in f64), blocks are added in
    // double.
    sum_error = static_cast<double>(weighted / sum) + 72 * kUnit<T> + static_cast<double>(columns) / 1024 * 0x1p-53;
  }
  // Of e^(v - max): the difference is rounded, and exp is right to two units.
  double error(double v) const { return kUnit<T> * (std::fabs(v - static_cast<double>(max)) + 4); }
  long double softmax(double v) const { return std::exp(v - max) / sum; }
  double softmax_error(double v) const {
    return 1.01 * (error(v) + sum_error + 3 * kUnit<T>)*static_cast<double>(softmax(v));
  }
  long double log_softmax(double v) const { return (v - max) - std::log(sum); }
  double log_softmax_error(double v) const {
    const double magnitudes = std::fabs(v - static_cast<double>(max)) + 3 * static_cast<double>(std::log(sum));
    return 1.01 * (sum_error + kUnit<T> * magnitudes + kUnit<T> * std::fabs(static_cast<double>(log_softmax(v))));
  }
};

template <class T>
void expect_near(double got, long double want, double error, const std::string& where) {
  const double off = std::fabs(static_cast<double>(got - want));
  const double stored = kStored<T> > kUnit<T> ? kStored<T> * (static_cast<double>(std::fabs(want)) + error) : 0;
  // Rounding to f16 is absolute below 2^-14.
  ASSERT_LE(off, error + stored + (std::is_same_v<T, f16> ? 0x1p-25 : kSmall<T>))
      << where << ": " << got << " for " << static_cast<double>(want);
}

template <class T>
void expect_rows_right(int64_t rows, int64_t columns, double spread) {
  const auto x = numbers<T>(rows * columns, spread, 5 + static_cast<uint64_t>(columns));
  const auto targets = classes(rows, columns, 3);
  const auto g = numbers<T>(rows, 2, 8);
  const auto y = softmax_of(x, rows, columns), logs = log_softmax_of(x, rows, columns);
  const auto sums = logsumexp_of(x, rows, columns);
  const auto losses = loss_of(call_of<T>(rows, columns, Reduction::none), x, targets);
  const auto gradient = grad_of(call_of<T>(rows, columns, Reduction::none), x, targets, g);
  for (int64_t r = 0; r < rows; ++r) {
    const RowReference<T> row(x.data() + r * columns, columns);
    const long double total = row.max + std::log(row.sum);
    const double largest = std::fabs(static_cast<double>(row.max)) + static_cast<double>(std::log(row.sum));
    expect_near<T>(as_double(sums[r]), total, 1.01 * (row.sum_error + 4 * kUnit<T> * largest),
                   "logsumexp of row " + std::to_string(r) + ", " + std::to_string(columns) + " columns");
    for (int64_t i = 0; i < columns; ++i) {
      const std::string where = "row " + std::to_string(r) + " of " + std::to_string(rows) + ", column " +
                                std::to_string(i) + " of " + std::to_string(columns);
      const int64_t at = r * columns + i;
      const double v = as_double(x[at]), scale = as_double(g[r]);
      const bool target = targets[r] == i;
      expect_near<T>(as_double(y[at]), row.softmax(v), row.softmax_error(v), where);
      expect_near<T>(as_double(logs[at]), row.log_softmax(v), row.log_softmax_error(v), where);
      if (target) expect_near<T>(as_double(losses[r]), -row.log_softmax(v), row.log_softmax_error(v), where);
      const double grad_error = std::fabs(scale) * (row.softmax_error(v) + 2 * kUnit<T>);
      expect_near<T>(as_double(gradient[at]), scale * (row.softmax(v) - target), grad_error, where);
    }
  }
}

TEST_P(Rows, every_length) {
  for (int64_t columns = 1; columns <= 70; ++columns) {
    expect_rows_right<float>(5, columns, 6);
    expect_rows_right<double>(5, columns, 6);
  }
  for (const int64_t columns : {127, 1000, 1023, 1024, 1025, 1027, 2048, 4099}) {
    expect_rows_right<float>(3, columns, 20);
    expect_rows_right<double>(3, columns, 20);
  }
  expect_rows_right<float>(2, 100'000, 10);
}

TEST_P(Rows, many_rows) {
  for (const int64_t rows : {1, 2, 63, 64, 65, 129, 700}) {
    expect_rows_right<float>(rows, 3, 4);
    expect_rows_right<float>(rows, 10, 4);
    expect_rows_right<double>(rows, 50, 4);
  }
  expect_rows_right<float>(20'000, 4, 4);
}

TEST_P(Rows, wide_spreads) {
  expect_rows_right<float>(6, 40, 90);
  expect_rows_right<float>(6, 9, 200);  // exponentials beyond the smallest float
  expect_rows_right<double>(6, 40, 800);
}

TEST_P(Rows, sixteen_bit_floats) {
  for (const int64_t columns : {1, 7, 10, 33, 1030}) {
    expect_rows_right<bf16>(70, columns, 6);
    expect_rows_right<f16>(70, columns, 6);
  }
}

TEST_P(Rows, nothing) {
  const std::vector<float> none, one{1};
  EXPECT_TRUE(softmax_of(none, 0, 5).empty());
  EXPECT_TRUE(log_softmax_of(none, 5, 0).empty());
  EXPECT_TRUE(std::isnan(loss_of<float>(call_of<float>(0, 3, Reduction::mean), none, {})[0]));
  EXPECT_EQ(loss_of<float>(call_of<float>(0, 3, Reduction::sum), none, {})[0], 0);
  EXPECT_TRUE(loss_of<float>(call_of<float>(0, 3, Reduction::none), none, {}).empty());
  EXPECT_TRUE(grad_of<float>(call_of<float>(0, 3, Reduction::mean), none, {}, one).empty());
  // No class at all: every target must be ignored.
  EXPECT_EQ(loss_of<float>(call_of<float>(2, 0, Reduction::sum), none, {-100, -100})[0], 0);
  EXPECT_THROW(loss_of<float>(call_of<float>(1, 0, Reduction::sum), none, {0}), Error);
}

TEST_P(Rows, means_and_sums) {
  const int64_t rows = 1000, columns = 12;
  const auto x = numbers<double>(rows * columns, 3, 1);
  auto targets = classes(rows, columns, 2);
  int64_t kept = 0;
  for (int64_t r = 0; r < rows; ++r) {
    if (r % 7 == 0) targets[r] = 4;
    kept += targets[r] != 4;
  }
  const auto losses = loss_of(call_of<double>(rows, columns, Reduction::none, 4), x, targets);
  long double sum = 0;
  for (const double v : losses) sum += v;
  // Two roundings a row at most, of sums no larger than the whole; positive terms.
  const double error = 2 * 1000 * 0x1p-53 * static_cast<double>(sum);
  EXPECT_NEAR(loss_of(call_of<double>(rows, columns, Reduction::sum, 4), x, targets)[0], static_cast<double>(sum),
              error);
  EXPECT_NEAR(loss_of(call_of<double>(rows, columns, Reduction::mean, 4), x, targets)[0],
              static_cast<double>(sum / kept), error / static_cast<double>(kept));
  const std::vector<double> g{-1.5}, all(rows, -1.5), shared(rows, -1.5 / static_cast<double>(kept));
  const auto none = [&](const std::vector<double>& scales) {
    return grad_of(call_of<double>(rows, columns, Reduction::none, 4), x, targets, scales);
  };
  EXPECT_TRUE(same_bits(grad_of(call_of<double>(rows, columns, Reduction::sum, 4), x, targets, g), none(all)));
  EXPECT_TRUE(same_bits(grad_of(call_of<double>(rows, columns, Reduction::mean, 4), x, targets, g), none(shared)));
}

TEST_P(Rows, threads_and_company_change_no_bit) {
  for (const int64_t columns : {1, 3, 8, 10, 33, 1000, 5000}) {
    const int64_t rows = std::max<int64_t>(11, 70'000 / columns);
    const auto x = numbers<float>(rows * columns, 5, 1);
    const auto targets = classes(rows, columns, 2);
    const std::vector<float> g{0.7f};
    const auto everything = [&] {
      std::vector<float> out;
      const auto add = [&](const std::vector<float>& part) { out.insert(out.end(), part.begin(), part.end()); };
      add(softmax_of(x, rows, columns));
      add(log_softmax_of(x, rows, columns));
      add(grad_of(call_of<float>(rows, columns, Reduction::mean), x, targets, g));
      add(loss_of(call_of<float>(rows, columns, Reduction::none), x, targets));
      add(loss_of(call_of<float>(rows, columns, Reduction::mean), x, targets));
      return out;
    };
    std::vector<float> first;
    {
      const Threads one(1);
      first = everything();
    }
    for (const int count : {2, 3}) {
      const Threads more(count);
      EXPECT_TRUE(same_bits(first, everything())) << columns << " columns, " << count << " threads";
    }
    // In place.
    std::vector<float> y = x;
    softmax(DType::f32, y.data(), y.data(), rows, columns);
    EXPECT_TRUE(same_bits(y, softmax_of(x, rows, columns))) << columns;
    y = x;
    log_softmax(DType::f32, y.data(), y.data(), rows, columns);
    EXPECT_TRUE(same_bits(y, log_softmax_of(x, rows, columns))) << columns;
    // A row alone.
    for (const int64_t r : {int64_t{0}, int64_t{5}, rows - 1}) {
      const auto at = x.begin() + r * columns;
      const auto alone = softmax_of(std::vector<float>(at, at + columns), 1, columns);
      EXPECT_TRUE(std::equal(alone.begin(), alone.end(), first.begin() + r * columns)) << columns;
    }
  }
}

TEST_P(Rows, targets_of_32_bits) {
  const auto x = numbers<float>(200 * 5, 3, 1);
  auto wide = classes(200, 5, 2);
  wide[7] = -1;
  const std::vector<int32_t> narrow(wide.begin(), wide.end());
  CrossEntropyCall call = call_of<float>(200, 5, Reduction::mean, -1);
  const auto want = loss_of(call, x, wide), want_grad = grad_of(call, x, wide, {1.0f});
  call.target_dtype = DType::i32;
  float loss = 0;
  const float g = 1;
  std::vector<float> gradient(x.size());
  cross_entropy(call, x.data(), narrow.data(), &loss);
  cross_entropy_grad(call, x.data(), narrow.data(), &g, gradient.data());
  EXPECT_EQ(loss, want[0]);
  EXPECT_TRUE(same_bits(gradient, want_grad));
}

// ---- named cases ----

TEST_P(Rows, p001_equal_but_huge_logits) {
  for (const float v : {1e8f, -1e8f}) {
    const std::vector<float> x{v, v};
    EXPECT_NEAR(loss_of<float>(call_of<float>(1, 2, Reduction::mean), x, {1})[0], std::log(2.0f), 1e-6);
    EXPECT_EQ(grad_of<float>(call_of<float>(1, 2, Reduction::mean), x, {1}, {1.0f}), (std::vector<float>{0.5f, -0.5f}));
    EXPECT_EQ(softmax_of(x, 1, 2), (std::vector<float>{0.5f, 0.5f}));
    EXPECT_NEAR(log_softmax_of(x, 1, 2)[0], -std::log(2.0f), 1e-6);
  }
  const auto half = as<f16>({6e4, 6e4});
  EXPECT_NEAR(as_double(loss_of<f16>(call_of<f16>(1, 2, Reduction::mean), half, {1})[0]), std::log(2.0), 1e-3);
}

TEST_P(Rows, p002_one_column) {
  for (const float v : {0.7f, 88.72284f, -3e38f, 0.0f}) {
    const std::vector<float> x(4, v);
    const std::vector<float> zeros(4, 0.0f);
    EXPECT_EQ(log_softmax_of(x, 4, 1), zeros);
    EXPECT_EQ(softmax_of(x, 4, 1), std::vector<float>(4, 1.0f));
    EXPECT_EQ(loss_of<float>(call_of<float>(4, 1, Reduction::none), x, {0, 0, 0, 0}), zeros);
    EXPECT_EQ(grad_of<float>(call_of<float>(4, 1, Reduction::sum), x, {0, 0, 0, 0}, {0.3f}), zeros);
  }
}

TEST_P(Rows, p005_all_targets_ignored) {
  const std::vector<float> x{1, 2, 3};
  for (const Reduction reduction : {Reduction::none, Reduction::sum, Reduction::mean}) {
    const auto call = call_of<float>(1, 3, reduction, -1);
    const float loss = loss_of<float>(call, x, {-1})[0];
    if (reduction == Reduction::mean)
      EXPECT_TRUE(std::isnan(loss));
    else
      EXPECT_EQ(loss, 0);
    EXPECT_EQ(grad_of<float>(call, x, {-1}, {1.0f}), (std::vector<float>{0, 0, 0}));
    EXPECT_EQ(grad_of<float>(call, x, {-1}, {std::numeric_limits<float>::quiet_NaN()}), (std::vector<float>{0, 0, 0}));
    EXPECT_EQ(grad_of<float>(call, as<float>({kNan, kInf, 0}), {-1}, {1.0f}), (std::vector<float>{0, 0, 0}));
  }
}

TEST_P(Rows, p006_a_target_out_of_range) {
  const int64_t rows = 3000;
  const auto x = numbers<float>(rows * 2, 1, 1);
  for (const int64_t wrong :
       {int64_t{2}, int64_t{-1}, std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()}) {
    for (const int64_t at : {int64_t{0}, int64_t{1700}, rows - 1}) {
      auto targets = classes(rows, 2, 3);
      targets[at] = wrong;
      const auto call = call_of<float>(rows, 2, Reduction::mean);
      float loss = 7;
      std::vector<float> gradient(x.size(), 7.0f);
      const float g = 1;
      try {
        cross_entropy(call, x.data(), targets.data(), &loss);
        FAIL() << "not thrown";
      } catch (const Error& e) {
        EXPECT_EQ(e.kind(), ErrorKind::value);
        const std::string text = e.what();
        for (const std::string& part : {std::string("[cross_entropy]"), std::to_string(wrong),
                                        "target " + std::to_string(at), std::string("2 classes")})
          EXPECT_NE(text.find(part), std::string::npos) << text << " lacks " << part;
      }
      EXPECT_THROW(cross_entropy_grad(call, x.data(), targets.data(), &g, gradient.data()), Error);
      EXPECT_EQ(loss, 7);
      EXPECT_EQ(gradient, std::vector<float>(x.size(), 7.0f));
      targets[at] = 1;
      cross_entropy(call, x.data(), targets.data(), &loss);
      EXPECT_TRUE(std::isfinite(loss));
    }
  }
}

TEST_P(Rows, p007_ignored_rows_are_not_counted) {
  const std::vector<double> x{1, 0, 0, 1, 0, 0, 1, 0, 0};
  const std::vector<int64_t> targets{0, 1, -100};
  const auto losses = loss_of(call_of<double>(3, 3, Reduction::none), x, targets);
  EXPECT_NEAR(losses[0], 0.5514447, 1e-7);
  EXPECT_NEAR(losses[1], 1.5514447, 1e-7);
  EXPECT_EQ(losses[2], 0);
  EXPECT_NEAR(loss_of(call_of<double>(3, 3, Reduction::sum), x, targets)[0], 2.1028894, 1e-7);
  EXPECT_NEAR(loss_of(call_of<double>(3, 3, Reduction::mean), x, targets)[0], 1.0514447, 1e-7);
}

TEST_P(Rows, p008_ignore_index_that_is_a_class) {
  const std::vector<float> x(6, 1.0f);
  for (const std::vector<int64_t>& targets : {std::vector<int64_t>{1, 2}, std::vector<int64_t>{0, 2}})
    EXPECT_NEAR(loss_of(call_of<float>(2, 3, Reduction::mean, 0), x, targets)[0], std::log(3.0f), 2e-7);
  const auto gradient = grad_of<float>(call_of<float>(2, 3, Reduction::mean, 0), x, {0, 2}, {1.0f});
  EXPECT_EQ(gradient[0], 0);
  EXPECT_NEAR(gradient[3], 1 / 3.0, 1e-7);
  EXPECT_NEAR(gradient[5], -2 / 3.0, 1e-7);
}

TEST_P(Rows, p011_the_gradient_knows_the_reduction) {
  const std::vector<float> x(4, 0.0f);
  const std::vector<int64_t> targets{0, 1};
  EXPECT_EQ(grad_of<float>(call_of<float>(2, 2, Reduction::sum), x, targets, {1.0f}),
            (std::vector<float>{-.5f, .5f, .5f, -.5f}));
  EXPECT_EQ(grad_of<float>(call_of<float>(2, 2, Reduction::mean), x, targets, {1.0f}),
            (std::vector<float>{-.25f, .25f, .25f, -.25f}));
  EXPECT_EQ(grad_of<float>(call_of<float>(2, 2, Reduction::none), x, targets, {1.0f, 3.0f}),
            (std::vector<float>{-.5f, .5f, 1.5f, -1.5f}));
  EXPECT_NEAR(loss_of(call_of<float>(2, 2, Reduction::none), x, targets)[1], std::log(2.0f), 1e-7);
}

TEST_P(Rows, p014_infinities_and_nan) {
  // In rows of one vector, of several and of several blocks; the rows beside them stay right.
  for (const int64_t columns : {2, 9, 20, 100, 1500}) {
    for (const double special : {kNan, kInf}) {
      std::vector<double> x(static_cast<size_t>(3 * columns), 0.0);
      x[static_cast<size_t>(2 * columns - 1)] = special;
      const auto y = softmax_of(as<float>(x), 3, columns), logs = log_softmax_of(as<float>(x), 3, columns);
      for (int64_t i = 0; i < columns; ++i) {
        EXPECT_TRUE(std::isnan(y[columns + i])) << columns << " at " << i;
        EXPECT_TRUE(std::isnan(logs[columns + i])) << columns << " at " << i;
        EXPECT_TRUE(std::isfinite(y[i]) && std::isfinite(y[2 * columns + i])) << columns;
      }
      const std::vector<int64_t> targets{0, 0, 0};
      const auto call = call_of<float>(3, columns, Reduction::none);
      EXPECT_TRUE(std::isnan(loss_of(call, as<float>(x), targets)[1]));
      EXPECT_TRUE(std::isnan(grad_of(call, as<float>(x), targets, {1, 1, 1})[columns]));
    }
    const std::vector<float> low(static_cast<size_t>(columns), -std::numeric_limits<float>::infinity());
    for (const float v : softmax_of(low, 1, columns)) EXPECT_TRUE(std::isnan(v));
    // One number among -infinities is certain; a target of -infinity costs infinitely much.
    std::vector<float> one = low;
    one[1] = 3;
    const auto y = softmax_of(one, 1, columns);
    for (int64_t i = 0; i < columns; ++i) EXPECT_EQ(y[i], i == 1);
    EXPECT_EQ(log_softmax_of(one, 1, columns)[0], -std::numeric_limits<float>::infinity());
    EXPECT_EQ(loss_of<float>(call_of<float>(1, columns, Reduction::mean), one, {0})[0],
              std::numeric_limits<float>::infinity());
    EXPECT_EQ(loss_of<float>(call_of<float>(1, columns, Reduction::mean), one, {1})[0], 0);
  }
}

// Results larger than the caches are written past them: the same bits, rows off alignment too.
TEST_P(Rows, LargeOutputsAreTheSameBits) {
  for (const int64_t columns : {1000, 1024}) {
    const int64_t rows = (int64_t{160} << 20) / columns / 4 / 64 * 64;
    const std::vector<float> x = numbers<float>(64 * columns, 5, 21);
    std::vector<float> many;
    for (int64_t r = 0; r < rows; r += 64) many.insert(many.end(), x.begin(), x.end());
    std::vector<float> y(many.size());
    for (auto* op : {&softmax, &log_softmax}) {
      std::vector<float> small(x.size());
      op(DType::f32, x.data(), small.data(), 64, columns);
      op(DType::f32, many.data(), y.data(), rows, columns);
      for (int64_t r = 0; r < rows; r += 64)
        ASSERT_EQ(std::memcmp(small.data(), y.data() + r * columns, small.size() * sizeof(float)), 0) << r;
    }
  }
}

}  // namespace
}  // namespace outrace::cpu
