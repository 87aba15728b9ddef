// The errors of the elementary functions, in units of the last place, against long double; that each instruction set
// gives the same bits; and that docs/numerics.md names what is measured here.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <limits>
#include <map>
#include <sstream>
#include <vector>

#include "tile_support.h"

namespace outrace::test {
namespace {

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

template <class T>
T any_exponent(Dice& dice) {
  constexpr int kLow = std::numeric_limits<T>::min_exponent - std::numeric_limits<T>::digits,
                kHigh = std::numeric_limits<T>::max_exponent;
  return static_cast<T>(std::ldexp(dice.uniform(0.5, 1), static_cast<int>(dice.below(kHigh - kLow)) + kLow));
}

constexpr int64_t kSamples = 200000;

// Edges; uniform in [low, high]; then, unless only those are wanted, every 12289th float, or doubles uniform in the
// exponent (negative only if low is); numbers next to multiples of pi / 2.
template <class T>
std::vector<T> samples(T low, T high, bool only_within) {
  std::vector<T> x = edges<T>();
  Dice dice{11};
  for (int64_t i = 0; i < kSamples; ++i) x.push_back(static_cast<T>(dice.uniform(low, high)));
  if constexpr (std::is_same_v<T, float>) {
    for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 12289) {
      const float v = std::bit_cast<float>(static_cast<uint32_t>(bits));
      if (v >= 0 || low < 0) x.push_back(v);
    }
  } else {
    for (int64_t i = 0; i < kSamples; ++i) {
      const T magnitude = any_exponent<T>(dice);
      x.push_back(dice.below(2) && low < 0 ? -magnitude : magnitude);
    }
    x.push_back(std::ldexp(6381956970095103.0, 797));  // the double nearest to a multiple of pi / 2
  }
  for (int64_t k = 1; k < 20000; ++k) {
    const long double multiple = static_cast<long double>(k < 2000 ? k : 1 + dice.below(int64_t{1} << 45)) *
                                 1.57079632679489661923132169163975144L;
    x.push_back(static_cast<T>(multiple));
  }
  if (only_within) std::erase_if(x, [&](T v) { return !(v >= low && v <= high); });
  return x;
}

using Exact = long double (*)(long double, long double);
struct Case {
  Ew op;
  Exact exact;
  double low32, high32, low64, high64;
  double bound32, bound64;  // in units of the last place
  bool only_within = false;
};
#define ONE(name) Ew::name, [](long double x, long double) { return std::name(x); }
// rsqrt: two roundings. sigmoid, silu, mish: those of exp, the sum and the quotient; where exp(-x) overflows the text
// gives 0, as PyTorch does.
const Case kCases[] = {
    {ONE(exp), -105, 90, -750, 712, 3, 3},
    {ONE(exp2), -152, 130, -1080, 1026, 2, 2},
    {ONE(expm1), -20, 90, -40, 712, 2, 2},
    {ONE(log), 0, 4, 0, 4, 3, 3},
    {ONE(log2), 0, 4, 0, 4, 2, 2},
    {ONE(log1p), -1, 4, -1, 4, 2, 2},
    {ONE(sinh), -91, 91, -712, 712, 4, 4},
    {ONE(cosh), -91, 91, -712, 712, 4, 4},
    {ONE(tanh), -12, 12, -22, 22, 5, 5},
    {ONE(sin), -30, 30, -30, 30, 1, 1},
    {ONE(cos), -30, 30, -30, 30, 1, 1},
    {ONE(tan), -30, 30, -30, 30, 2, 2},
    {ONE(asin), -1, 1, -1, 1, 2, 2},
    {ONE(acos), -1, 1, -1, 1, 2, 2},
    {ONE(atan), -6, 6, -6, 6, 2, 2},
    {ONE(erf), -4, 4, -6, 6, 4, 4},
    {ONE(erfc), -5, 10.2, -7, 27.5, 4, 4},
    {Ew::rsqrt, [](long double x, long double) { return 1 / std::sqrt(x); }, 0, 9, 0, 9, 1.5, 1.5},
    {Ew::sigmoid, [](long double x, long double) { return 1 / (1 + std::exp(-x)); }, -87, 30, -700, 50, 5, 5, true},
    {Ew::silu, [](long double x, long double) { return x / (1 + std::exp(-x)); }, -83, 30, -700, 50, 5, 5, true},
    {Ew::softplus, [](long double x, long double) { return std::max(x, 0.0L) + std::log1p(std::exp(-std::abs(x))); },
     -30, 30, -40, 40, 4, 4},
    {Ew::log_sigmoid, [](long double x, long double) { return std::min(x, 0.0L) - std::log1p(std::exp(-std::abs(x))); },
     -30, 30, -40, 40, 4, 4},
    {Ew::mish, [](long double x, long double) { return x * std::tanh(std::log1p(std::exp(x))); }, -80, 30, -700, 50, 5,
     5, true},
};
const Case kCasesOfTwo[] = {
    {Ew::pow, [](long double x, long double z) { return std::pow(x, z); }, 0, 0, 0, 0, 1, 1},
    {Ew::atan2, [](long double x, long double z) { return std::atan2(x, z); }, 0, 0, 0, 0, 2, 2},
};

// Pairs: near 1 with moderate powers; any base with a power that keeps the result in range; whole powers of negative
// bases; quotients of all sizes.
template <class T>
void pairs(std::vector<T>& x, std::vector<T>& z) {
  Dice dice{13};
  const double most = std::log(static_cast<double>(std::numeric_limits<T>::max()));
  const auto add = [&](double a, double b) {
    x.push_back(static_cast<T>(a));
    z.push_back(static_cast<T>(b));
  };
  for (int64_t i = 0; i < kSamples / 2; ++i) {
    add(dice.uniform(0, 4), dice.uniform(-20, 20));
    const double base = any_exponent<T>(dice);
    add(base, dice.uniform(-1.1, 1.1) * most / std::max(std::abs(std::log(base)), 1e-300));
    add(dice.uniform(-40, 0), static_cast<double>(dice.below(41) - 20));
    add(1 + std::ldexp(dice.uniform(-1, 1), -static_cast<int>(dice.below(20))), dice.uniform(-1, 1) * 4000);
    add(any_exponent<T>(dice), -any_exponent<T>(dice));
  }
}

// Largest error on any instruction set; also that all of them give the same bits, and that a number's result does not
// depend on its place.
template <class T>
double worst(const Case& c, const std::vector<T>& x, const std::vector<T>& z, double bound) {
  std::vector<T> first;
  for (const Isa isa : isas_here()) {
    set_active_isa(isa);
    std::vector<T> out = run_row<T>(c.op, x, z, z);
    const std::vector<T> x_moved(x.begin() + 3, x.begin() + 1004), z_moved(z.begin() + 3, z.begin() + 1004);
    const std::vector<T> moved = run_row<T>(c.op, x_moved, z_moved, z_moved);
    const auto same = [](const T& a, const T& b) {
      return same_bits(dtype_of<T>(), reinterpret_cast<const char*>(&a), reinterpret_cast<const char*>(&b));
    };
    for (size_t i = 0; i < moved.size(); ++i) EXPECT_TRUE(same(moved[i], out[i + 3])) << x_moved[i];
    if (first.empty()) first = out;
    for (size_t i = 0; i < out.size(); ++i)
      if (!same(out[i], first[i])) {
        ADD_FAILURE() << info_of(c.op).name << "(" << x[i] << ", " << z[i] << ") differs between instruction sets";
        break;
      }
  }
  double most = 0;
  size_t at = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double error = ulps(first[i], c.exact(x[i], z[i]));
    if (!(error <= most)) {
      most = error;
      at = i;
    }
  }
  EXPECT_LE(most, bound) << info_of(c.op).name << (sizeof(T) == 4 ? " f32" : " f64") << std::hexfloat << " at " << x[at]
                         << ", " << z[at] << ", which gives " << first[at];
  return most;
}

// The figures of the document's table: | name | f32 | f64 |
std::map<std::string, std::pair<double, double>> documented() {
  std::ifstream in(OUTRACE_SOURCE_DIR "/docs/numerics.md");
  std::map<std::string, std::pair<double, double>> out;
  for (std::string line; std::getline(in, line);) {
    char name[32];
    double f32, f64;
    if (std::sscanf(line.c_str(), "| `%31[a-z0-9_]` | %lf | %lf |", name, &f32, &f64) == 3) out[name] = {f32, f64};
  }
  return out;
}

TEST(TileUlp, ErrorsAreWithinBoundsAndAsDocumented) {
  const Isa before = active_isa();
  const auto known = documented();
  std::string table;
  bool fresh = true;
  const auto measure = [&](const Case& c, const auto& x32, const auto& z32, const auto& x64, const auto& z64) {
    const double f32 = worst<float>(c, x32, z32, c.bound32), f64 = worst<double>(c, x64, z64, c.bound64);
    const std::string name(info_of(c.op).name);
    char row[80];
    std::snprintf(row, sizeof row, "| `%s` | %.2f | %.2f |\n", name.c_str(), f32, f64);
    table += row;
    const auto found = known.find(name);
    fresh &= found != known.end() && std::abs(found->second.first - f32) < 0.02 &&
             std::abs(found->second.second - f64) < 0.02;
  };
  for (const Case& c : kCases) {
    const auto x32 = samples<float>(static_cast<float>(c.low32), static_cast<float>(c.high32), c.only_within);
    const auto x64 = samples<double>(c.low64, c.high64, c.only_within);
    measure(c, x32, x32, x64, x64);
  }
  std::vector<float> x32, z32;
  std::vector<double> x64, z64;
  pairs(x32, z32);
  pairs(x64, z64);
  for (const Case& c : kCasesOfTwo) measure(c, x32, z32, x64, z64);
  set_active_isa(before);
  EXPECT_TRUE(fresh) << "the table of docs/numerics.md should read\n" << table;
}

}  // namespace
}  // namespace outrace::test
