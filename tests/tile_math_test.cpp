// label: unit
// Every row of ops.def as a tile instruction: bit for bit where it is IEEE operations, else within bounds.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "outrace/backend/cpu/tile.h"
#include "tile_reference.h"
#include "tile_support.h"

namespace outrace::test {
namespace {

using cpu::TileKernel;

template <class T>
std::vector<T> run_row(Ew op, const std::vector<T>& x, const std::vector<T>& z, const std::vector<T>& w) {
  const int64_t n = static_cast<int64_t>(x.size());
  ProgramBuilder b(dtype_of<T>(), Shape{n});
  const int regs[] = {b.dense(0), b.dense(1), b.dense(2)};
  const int arity = info_of(op).arity;
  b.store(b.op(op, regs[0], arity > 1 ? regs[1] : -1, arity > 2 ? regs[2] : -1), 3);
  std::vector<T> out(x.size());
  void* values[] = {const_cast<T*>(x.data()), const_cast<T*>(z.data()), const_cast<T*>(w.data()), out.data()};
  TileKernel::compile(b.p)->run(values, nullptr, nullptr, 0, n);
  return out;
}

template <Ew kOp, class T>
T one(T x) {
  return elementary<T, kOp>(x);
}

template <class T>
std::vector<T> edges() {
  if constexpr (std::is_integral_v<T>) {
    return {0,
            1,
            -1,
            2,
            -2,
            7,
            std::numeric_limits<T>::max(),
            std::numeric_limits<T>::min(),
            std::numeric_limits<T>::min() + 1};
  } else {
    using L = std::numeric_limits<T>;
    return {0,
            -T(0),
            1,
            -1,
            T(0.5),
            2,
            -2,
            T(1.5),
            3,
            L::infinity(),
            -L::infinity(),
            L::quiet_NaN(),
            L::min(),
            -L::min(),
            L::denorm_min(),
            -L::denorm_min(),
            L::min() / 3,
            L::max(),
            L::lowest(),
            L::epsilon(),
            T(1) + L::epsilon(),
            T(88.72283),
            T(88.72284),
            T(88.8),
            T(-87.3),
            T(-87.5),
            T(-103.9),
            T(-103.98),
            T(-104.5),
            T(709.78),
            T(709.79),
            T(-708.4),
            T(-745.1),
            T(-745.2),
            20,
            -20,
            100,
            1000,
            -1000};
  }
}

template <class T>
void check_every_row() {
  if constexpr (!std::is_integral_v<T>) hook_elementary<T>();
  std::vector<T> some = edges<T>();
  Dice dice{7};
  for (int i = 0; i < 30; ++i) some.push_back(static_cast<T>(dice.uniform(-8, 8)));
  std::vector<T> x, z, w;  // all pairs
  for (const T a : some)
    for (const T b : some) {
      x.push_back(a);
      z.push_back(b);
      w.push_back(some[static_cast<size_t>(dice.below(static_cast<int64_t>(some.size())))]);
    }
  for (int k = 0; k < kEwCount; ++k) {
    const Ew op = static_cast<Ew>(k);
    if (std::is_integral_v<T> && info_of(op).real_only) continue;
    const std::vector<T> out = run_row<T>(op, x, z, w);
    for (size_t i = 0; i < out.size(); ++i) {
      const T expected = reference_row<T>(op, x[i], z[i], w[i]);
      ASSERT_TRUE(
          same_bits(dtype_of<T>(), reinterpret_cast<const char*>(&out[i]), reinterpret_cast<const char*>(&expected)))
          << info_of(op).name << "(" << x[i] << ", " << z[i] << ", " << w[i] << ") = " << out[i] << ", not "
          << expected;
    }
  }
}

class TileRows : public EachIsa {};
TEST_P(TileRows, f32_do_what_their_text_says) { check_every_row<float>(); }
TEST_P(TileRows, f64_do_what_their_text_says) { check_every_row<double>(); }
TEST_P(TileRows, i64_do_what_their_text_says) { check_every_row<int64_t>(); }
INSTANTIATE_TEST_SUITE_P(Isa, TileRows, testing::ValuesIn(isas_here()), isa_name);

// Distance in units of the last place of the exact value.
template <class T>
double ulps(T got, long double exact) {
  if (std::isnan(exact) || std::isnan(got)) return std::isnan(exact) && std::isnan(got) ? 0 : INFINITY;
  constexpr int kDigits = std::numeric_limits<T>::digits, kLowest = std::numeric_limits<T>::min_exponent;
  const T rounded = static_cast<T>(exact);
  if (std::isinf(rounded) || std::isinf(got))
    return got == rounded ? 0 : std::isinf(rounded) && got == std::numeric_limits<T>::max() ? 1 : INFINITY;
  const int exponent = exact == 0 ? kLowest : std::max(std::ilogb(exact) + 1, kLowest);
  return static_cast<double>(std::abs(static_cast<long double>(got) - exact) / std::ldexp(1.0L, exponent - kDigits));
}

using Exact = long double (*)(long double);

// Largest error over `x`; also that a number's result does not depend on its place.
template <class T>
double worst(Ew op, Exact exact, const std::vector<T>& x, T& where) {
  const std::vector<T> out = run_row<T>(op, x, x, x);
  double most = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double error = ulps(out[i], exact(x[i]));
    if (!(error <= most)) {
      most = error;
      where = x[i];
    }
  }
  std::vector<T> shifted(x.begin() + 3, x.begin() + 3 + 1001);
  const std::vector<T> again = run_row<T>(op, shifted, shifted, shifted);
  for (size_t i = 0; i < again.size(); ++i)
    EXPECT_TRUE(
        same_bits(dtype_of<T>(), reinterpret_cast<const char*>(&again[i]), reinterpret_cast<const char*>(&out[i + 3])));
  return most;
}

// Uniform in [low, high], and, unless only those are wanted, uniform in the exponent (negative only if low
// is), and the edges.
template <class T>
std::vector<T> samples(T low, T high, int64_t count, bool only_within) {
  std::vector<T> x = edges<T>();
  Dice dice{11};
  for (int64_t i = 0; i < count; ++i) x.push_back(static_cast<T>(dice.uniform(low, high)));
  constexpr int kLow = std::numeric_limits<T>::min_exponent - std::numeric_limits<T>::digits,
                kHigh = std::numeric_limits<T>::max_exponent;
  for (int64_t i = 0; i < count; ++i) {
    const T magnitude =
        static_cast<T>(std::ldexp(dice.uniform(0.5, 1), static_cast<int>(dice.below(kHigh - kLow)) + kLow));
    x.push_back(dice.below(2) && low < 0 ? -magnitude : magnitude);
  }
  if (only_within) std::erase_if(x, [&](T v) { return !(v >= low && v <= high); });
  return x;
}

struct Case {
  Ew op;
  Exact exact;
  double low32, high32, low64, high64;
  double bound32, bound64;  // in units of the last place
  bool only_within = false;
};
// rsqrt: two roundings. sigmoid: those of exp, the sum and the quotient; where exp(-x) overflows the text
// gives 0, as PyTorch does.
const Case kCases[] = {
    {Ew::exp, [](long double x) { return std::exp(x); }, -105, 90, -750, 712, 3, 3},
    {Ew::log, [](long double x) { return std::log(x); }, 0, 4, 0, 4, 3, 3},
    {Ew::tanh, [](long double x) { return std::tanh(x); }, -12, 12, -22, 22, 5, 4},
    {Ew::rsqrt, [](long double x) { return 1 / std::sqrt(x); }, 0, 9, 0, 9, 1.5, 1.5},
    {Ew::sigmoid, [](long double x) { return 1 / (1 + std::exp(-x)); }, -87, 30, -700, 50, 5, 5, true},
};

class TileMath : public EachIsa {};

TEST_P(TileMath, errors_stay_within_bounds) {
  constexpr int64_t kSamples = 300000;
  for (const Case& c : kCases) {
    float where32 = 0;
    double where64 = 0;
    const auto x32 = samples<float>(static_cast<float>(c.low32), static_cast<float>(c.high32), kSamples, c.only_within);
    const auto x64 = samples<double>(c.low64, c.high64, kSamples, c.only_within);
    const double f32 = worst<float>(c.op, c.exact, x32, where32), f64 = worst<double>(c.op, c.exact, x64, where64);
    const std::string name(info_of(c.op).name);
    RecordProperty(name + "_ulp_f32", std::to_string(f32));
    RecordProperty(name + "_ulp_f64", std::to_string(f64));
    EXPECT_LE(f32, c.bound32) << name << " f32 at " << where32;
    EXPECT_LE(f64, c.bound64) << name << " f64 at " << where64;
  }
}

template <class T>
void check_edges() {
  using L = std::numeric_limits<T>;
  constexpr T kInf = L::infinity(), kNan = L::quiet_NaN();
  const auto is = [](T got, T expected, const char* what) {
    EXPECT_TRUE(same_bits(dtype_of<T>(), reinterpret_cast<const char*>(&got), reinterpret_cast<const char*>(&expected)))
        << what << " gave " << got << ", not " << expected;
  };
  is(one<Ew::exp>(T(0)), 1, "exp(0)");
  is(one<Ew::exp>(-T(0)), 1, "exp(-0)");
  is(one<Ew::exp>(kInf), kInf, "exp(inf)");
  is(one<Ew::exp>(-kInf), 0, "exp(-inf)");
  is(one<Ew::exp>(kNan), kNan, "exp(nan)");
  is(one<Ew::exp>(L::max()), kInf, "exp(max)");
  is(one<Ew::exp>(L::lowest()), 0, "exp(lowest)");
  is(one<Ew::exp>(L::denorm_min()), 1, "exp(denormal)");
  is(one<Ew::log>(T(1)), 0, "log(1)");
  is(one<Ew::log>(T(0)), -kInf, "log(0)");
  is(one<Ew::log>(-T(0)), -kInf, "log(-0)");
  is(one<Ew::log>(T(-1)), kNan, "log(-1)");
  is(one<Ew::log>(-kInf), kNan, "log(-inf)");
  is(one<Ew::log>(kInf), kInf, "log(inf)");
  is(one<Ew::log>(kNan), kNan, "log(nan)");
  is(one<Ew::tanh>(T(0)), 0, "tanh(0)");
  is(one<Ew::tanh>(-T(0)), -T(0), "tanh(-0)");
  is(one<Ew::tanh>(kInf), 1, "tanh(inf)");
  is(one<Ew::tanh>(-kInf), -1, "tanh(-inf)");
  is(one<Ew::tanh>(kNan), kNan, "tanh(nan)");
  is(one<Ew::tanh>(L::denorm_min()), L::denorm_min(), "tanh(denormal)");
  is(one<Ew::relu>(kNan), kNan, "relu(nan)");
  is(one<Ew::sigmoid>(-kInf), 0, "sigmoid(-inf)");
  is(one<Ew::sigmoid>(kInf), 1, "sigmoid(inf)");
  is(one<Ew::rsqrt>(T(0)), kInf, "rsqrt(0)");
  for (const auto& [x, z] : {std::pair<T, T>{kNan, 1}, {1, kNan}, {kNan, kInf}, {-kInf, kNan}}) {
    is(run_row<T>(Ew::maximum, {x}, {z}, {z})[0], kNan, "maximum");
    is(run_row<T>(Ew::minimum, {x}, {z}, {z})[0], kNan, "minimum");
  }
}
TEST_P(TileMath, edges_f32) { check_edges<float>(); }
TEST_P(TileMath, edges_f64) { check_edges<double>(); }

INSTANTIATE_TEST_SUITE_P(Isa, TileMath, testing::ValuesIn(isas_here()), isa_name);

}  // namespace
}  // namespace outrace::test
