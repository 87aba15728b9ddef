// Philox against Random123, our log / sin / cos against libm, bulk against single values, and moments within five
// standard errors.
#include "outrace/core/random.h"

#include <Random123/philox.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

namespace outrace {
namespace {

using Block = std::array<uint32_t, 4>;
constexpr RandomState kState{0x243f6a8885a308d3u, 0x100000002u};

TEST(Random, KnownAnswers) {  // kat_vectors of Random123, "philox4x32 10"
  EXPECT_EQ(philox_block({0, 0, 0, 0}, {0, 0}), (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox_block({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}), (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox_block({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

Block reference_block(RandomState s, uint64_t block) {
  const r123::Philox4x32::ctr_type counter = {{static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32),
                                               static_cast<uint32_t>(s.serial), static_cast<uint32_t>(s.serial >> 32)}};
  const r123::Philox4x32::key_type key = {{static_cast<uint32_t>(s.seed), static_cast<uint32_t>(s.seed >> 32)}};
  const auto out = r123::Philox4x32()(counter, key);
  return {out[0], out[1], out[2], out[3]};
}

TEST(Random, ElementsComeFromTheStatedBlocks) {
  for (const uint64_t base : {uint64_t{0}, uint64_t{12340}, (uint64_t{1} << 34) - 4, uint64_t{1} << 40}) {
    for (uint64_t i = base; i < base + 8; ++i) {
      EXPECT_EQ(uniform_f32(kState, i),
                std::ldexp(static_cast<float>(reference_block(kState, i / 4)[i % 4] >> 8), -24));
      const Block b = reference_block(kState, i / 2);
      const uint64_t bits = b[i % 2 * 2] | static_cast<uint64_t>(b[i % 2 * 2 + 1]) << 32;
      EXPECT_EQ(uniform_f64(kState, i), std::ldexp(static_cast<double>(bits >> 11), -53));
      const auto scaled = static_cast<int64_t>(static_cast<unsigned __int128>(bits) * 1000 >> 64);
      EXPECT_EQ(integer_i64(kState, i, -300, 700), scaled - 300);
    }
  }
}

// Box-Muller in long double from the same words.
TEST(Random, NormalsAgreeWithLibm) {
  const long double pi = 3.14159265358979323846264338327950288L;
  double worst_f32 = 0, worst_f64 = 0;
  for (uint64_t block = 0; block < 200000; ++block) {
    const Block b = reference_block(kState, block);
    for (uint64_t pair = 0; pair < 2; ++pair) {
      const float u = (static_cast<float>(b[2 * pair] >> 1) + 0.5f) * 0x1p-31f;
      const long double radius = std::sqrt(-2 * std::log(static_cast<long double>(u))),
                        turn = 2 * pi * b[2 * pair + 1] * 0x1p-32L;
      const long double z[2] = {radius * std::cos(turn), radius * std::sin(turn)};
      for (uint64_t k = 0; k < 2; ++k) {
        const double got = normal_f32(kState, 4 * block + 2 * pair + k);
        worst_f32 = std::max(worst_f32, static_cast<double>(std::abs(got - z[k]) / std::max(1e-6L, std::abs(z[k]))));
      }
    }
    const uint64_t a = b[0] | static_cast<uint64_t>(b[1]) << 32, c = b[2] | static_cast<uint64_t>(b[3]) << 32;
    const long double u = 1 - (a >> 12) * 0x1p-52L;
    const long double radius = std::sqrt(-2 * std::log(u)), turn = 2 * pi * (c * 0x1p-64L);
    const long double z[2] = {radius * std::cos(turn), radius * std::sin(turn)};
    for (uint64_t k = 0; k < 2; ++k) {
      const double got = normal_f64(kState, 2 * block + k);
      // The long double turn is itself only good to 2^-64, which counts where the cosine nearly vanishes.
      worst_f64 = std::max(worst_f64, static_cast<double>(std::abs(got - z[k]) / std::max(1e-3L, std::abs(z[k]))));
    }
  }
  // Sums of the steps' roundings: angle, sine, log, sqrt and product, at most two units each.
  EXPECT_LT(worst_f32, 5 * 0x1p-24 * 2);
  EXPECT_LT(worst_f64, 5 * 0x1p-53 * 2);
  RecordProperty("worst_f32_ulp", std::to_string(worst_f32 * 0x1p24));
  RecordProperty("worst_f64_ulp", std::to_string(worst_f64 * 0x1p53));
}

TEST(Random, NormalsStayWithinTheStatedBounds) {
  const uint64_t n = 1 << 20;
  std::vector<float> f(n);
  std::vector<double> d(n);
  fill_normal(f.data(), kState, 0, n, 0, 1);
  fill_normal(d.data(), kState, 0, n, 0, 1);
  for (uint64_t i = 0; i < n; ++i) {
    ASSERT_LE(std::abs(f[i]), 6.7f) << i;
    ASSERT_LE(std::abs(d[i]), 8.6) << i;
  }
}

template <class T>
void expect_same_bits(const std::vector<T>& got, const std::vector<T>& want, uint64_t begin) {
  ASSERT_EQ(got.size(), want.size());
  if (got.empty()) return;
  EXPECT_EQ(std::memcmp(got.data(), want.data(), got.size() * sizeof(T)), 0) << "from element " << begin;
}

TEST(Random, BulkEqualsSingle) {
  const auto check = [](uint64_t begin, uint64_t end) {
    std::vector<float> f, g, uf(end - begin), nf(end - begin);
    std::vector<double> d, e, ud(end - begin), nd(end - begin);
    std::vector<int64_t> k, ik(end - begin);
    for (uint64_t i = begin; i < end; ++i) {
      f.push_back(-0.3f + uniform_f32(kState, i) * (0.7f - -0.3f));
      g.push_back(1.5f + 0.02f * normal_f32(kState, i));
      d.push_back(-0.3 + uniform_f64(kState, i) * (0.7 - -0.3));
      e.push_back(1.5 + 0.02 * normal_f64(kState, i));
      k.push_back(integer_i64(kState, i, -7, 1000003));
    }
    fill_uniform(uf.data(), kState, begin, end, -0.3, 0.7);
    fill_normal(nf.data(), kState, begin, end, 1.5, 0.02);
    fill_uniform(ud.data(), kState, begin, end, -0.3, 0.7);
    fill_normal(nd.data(), kState, begin, end, 1.5, 0.02);
    fill_integer(ik.data(), kState, begin, end, -7, 1000003);
    expect_same_bits(uf, f, begin);
    expect_same_bits(nf, g, begin);
    expect_same_bits(ud, d, begin);
    expect_same_bits(nd, e, begin);
    expect_same_bits(ik, k, begin);
  };
  for (uint64_t begin : {0, 1, 2, 3, 5, 127, 128})
    for (uint64_t count : {0, 1, 2, 3, 4, 63, 64, 65, 127, 128, 129, 1000}) check(begin, begin + count);
  check((uint64_t{1} << 34) - 70, (uint64_t{1} << 34) + 70);  // the block number passes 2^32
}

struct Moments {
  double mean = 0, square = 0, fourth = 0, neighbours = 0;
};
template <class T>
Moments moments_of(const std::vector<T>& x) {
  Moments m;
  for (size_t i = 0; i < x.size(); ++i) {
    const double v = x[i];
    m.mean += v, m.square += v * v, m.fourth += v * v * v * v,
        m.neighbours += v * static_cast<double>(x[(i + 1) % x.size()]);
  }
  const double n = static_cast<double>(x.size());
  return {m.mean / n, m.square / n, m.fourth / n, m.neighbours / n};
}

template <class T>
void check_moments() {
  constexpr uint64_t kCount = 1 << 20;
  const double error = 5 / std::sqrt(static_cast<double>(kCount));  // five standard errors of a mean with variance 1
  std::vector<T> x(kCount);
  fill_normal(x.data(), kState, 0, kCount, 0, 1);
  const Moments z = moments_of(x);
  EXPECT_NEAR(z.mean, 0, error);
  EXPECT_NEAR(z.square, 1, error * std::sqrt(2.0));
  EXPECT_NEAR(z.fourth, 3, error * std::sqrt(96.0));
  EXPECT_NEAR(z.neighbours, 0, error);
  fill_uniform(x.data(), kState, 0, kCount, -1, 1);
  const Moments u = moments_of(x);
  EXPECT_NEAR(u.mean, 0, error * std::sqrt(1.0 / 3));
  EXPECT_NEAR(u.square, 1.0 / 3, error * std::sqrt(1.0 / 5 - 1.0 / 9));
  EXPECT_NEAR(u.neighbours, 0, error / 3);
  std::vector<int> bins(64);
  for (const T v : x) ++bins.at(static_cast<size_t>((static_cast<double>(v) + 1) * 32));
  double chi_square = 0;
  for (const int count : bins) chi_square += (count - 16384.0) * (count - 16384.0) / 16384.0;
  EXPECT_NEAR(chi_square, 63, 5 * std::sqrt(2.0 * 63));
}

TEST(Random, MomentsF32) { check_moments<float>(); }
TEST(Random, MomentsF64) { check_moments<double>(); }

TEST(Random, SeedsAndSerialsDiffer) {
  EXPECT_NE(uniform_f64({1, 0}, 0), uniform_f64({2, 0}, 0));
  EXPECT_NE(uniform_f64({1, 0}, 0), uniform_f64({1, 1}, 0));
  EXPECT_NE(uniform_f64({1, 0}, 0), uniform_f64({uint64_t{1} << 32 | 1, 0}, 0));
  EXPECT_NE(uniform_f64({1, 1}, 0), uniform_f64({1, uint64_t{1} << 32 | 1}, 0));
}

TEST(Random, IntegersStayInRange) {
  std::vector<int64_t> x(10000);
  fill_integer(x.data(), kState, 0, x.size(), -3, 4);
  std::array<int, 7> seen{};
  for (const int64_t v : x) ++seen.at(static_cast<size_t>(v + 3));
  for (const int count : seen) EXPECT_NEAR(count, 10000.0 / 7, 5 * std::sqrt(10000.0 / 7));
  fill_integer(x.data(), kState, 0, x.size(), INT64_MIN, INT64_MAX);
  int negative = 0;
  for (const int64_t v : x) negative += v < 0;
  EXPECT_NEAR(negative, 5000, 5 * 50);
}

template <class T>
uint64_t hash_of(const std::vector<T>& values) {  // FNV-1a
  uint64_t hash = 0xcbf29ce484222325u;
  for (const T v : values) {
    unsigned char bytes[sizeof(T)];
    std::memcpy(bytes, &v, sizeof(T));
    for (const unsigned char byte : bytes) hash = (hash ^ byte) * 0x100000001b3u;
  }
  return hash;
}

// The sequences are part of what a seed means: the same on every compiler, instruction set and release.
TEST(Random, SequencesNeverChange) {
  std::vector<float> f(4096);
  std::vector<double> d(4096);
  fill_normal(f.data(), kState, 0, f.size(), 0, 1);
  fill_normal(d.data(), kState, 0, d.size(), 0, 1);
  EXPECT_EQ(hash_of(f), 4440141622724233132u);
  EXPECT_EQ(hash_of(d), 17270549189859376614u);
}

}  // namespace
}  // namespace outrace
