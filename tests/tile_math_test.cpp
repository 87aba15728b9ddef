// label: unit
// Every row of ops.def as a tile instruction, bit for bit; elementary functions at the numbers that IEEE 754 names.
// tile_ulp_test.cpp measures their errors.
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

template <Ew kOp, class T>
T one(T x) {
  return elementary<T>(kOp, x, x);
}

template <class T>
void check_every_row() {
  if constexpr (!std::is_integral_v<T>) hook_elementary<T>();
  std::vector<T> some = edges<T>();
  Dice dice{7};
  for (int i = 0; i < 30; ++i) some.push_back(static_cast<T>(dice.uniform(-8, 8)));
  std::vector<T> first, second, w;  // all pairs
  for (const T a : some)
    for (const T b : some) {
      first.push_back(a);
      second.push_back(b);
      w.push_back(some[static_cast<size_t>(dice.below(static_cast<int64_t>(some.size())))]);
    }
  for (int k = 0; k < kEwCount; ++k) {
    const Ew op = static_cast<Ew>(k);
    if (std::is_integral_v<T> && info_of(op).real_only) continue;
    const std::vector<T>&x = info_of(op).arity > 1 ? first : some, &z = info_of(op).arity > 1 ? second : some;
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

class TileMath : public EachIsa {};

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

// Where <cmath> in long double gives NaN, infinity, or an exact 0, so does the vector, with the same sign.
template <class T>
void expect_special(Ew op, const std::vector<T>& x, const std::vector<T>& z, const std::vector<long double>& exact) {
  const std::vector<T> out = run_row<T>(op, x, z, z);
  constexpr long double kNothing = std::numeric_limits<T>::denorm_min() / 4.0L;
  int specials = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const T expected = static_cast<T>(exact[i]);
    if (std::isfinite(exact[i]) && std::isfinite(expected) && std::abs(exact[i]) > kNothing) continue;
    ++specials;
    EXPECT_TRUE(
        same_bits(dtype_of<T>(), reinterpret_cast<const char*>(&out[i]), reinterpret_cast<const char*>(&expected)))
        << info_of(op).name << "(" << x[i] << ", " << z[i] << ") = " << out[i] << ", not " << expected;
  }
  EXPECT_GT(specials, 0) << info_of(op).name;
}

template <class T>
void check_specials() {
  std::vector<T> x = edges<T>();
  for (const T v : {3, 4, 5, 7, 8}) {
    x.push_back(v);
    x.push_back(-v);
  }
  std::vector<T> first, second;
  for (const T a : x)
    for (const T b : x) {
      first.push_back(a);
      second.push_back(b);
    }
  const auto of_one = [&](Ew op, long double (*fn)(long double)) {
    std::vector<long double> exact;
    for (const T v : x) exact.push_back(fn(v));
    expect_special<T>(op, x, x, exact);
  };
  const auto of_two = [&](Ew op, long double (*fn)(long double, long double)) {
    std::vector<long double> exact;
    for (size_t i = 0; i < first.size(); ++i) exact.push_back(fn(first[i], second[i]));
    expect_special<T>(op, first, second, exact);
  };
#define FUNCTION(name) of_one(Ew::name, [](long double v) { return std::name(v); });
  OUTRACE_ELEMENTARY(FUNCTION)
#undef FUNCTION
#define FUNCTION(name) of_two(Ew::name, [](long double a, long double b) { return std::name(a, b); });
  OUTRACE_ELEMENTARY_OF_TWO(FUNCTION)
#undef FUNCTION
  of_two(Ew::fmod, [](long double a, long double b) { return std::fmod(a, b); });
}
TEST_P(TileMath, specials_f32) { check_specials<float>(); }
TEST_P(TileMath, specials_f64) { check_specials<double>(); }
TEST_P(TileMath, edges_f32) { check_edges<float>(); }
TEST_P(TileMath, edges_f64) { check_edges<double>(); }

INSTANTIATE_TEST_SUITE_P(Isa, TileMath, testing::ValuesIn(isas_here()), isa_name);

}  // namespace
}  // namespace outrace::test
