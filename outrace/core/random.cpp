// Only + - * /, sqrt, shifts and comparisons, so that the GPU texts can repeat it to the last bit. f32 uses no
// division, and its sqrt must be the correctly rounded one (in OpenCL that takes a build option, or a detour through
// double).
#include "outrace/core/random.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace outrace {
namespace {

// Blocks worked on together: loops over kLanes with one operation each are what the compiler turns into vectors. 32
// blocks of four words are 512 bytes, so all stages of a batch stay in L1.
constexpr int kLanes = 32;

struct Words {
  uint32_t w[4][kLanes];
};

constexpr uint32_t kMul0 = 0xD2511F53u, kMul1 = 0xCD9E8D57u;    // Random123's multipliers
constexpr uint32_t kBump0 = 0x9E3779B9u, kBump1 = 0xBB67AE85u;  // golden ratio and sqrt(3) - 1 as 32-bit fractions
constexpr int kRounds = 10;

inline void philox_round(uint32_t& c0, uint32_t& c1, uint32_t& c2, uint32_t& c3, uint32_t key0, uint32_t key1) {
  const uint64_t p0 = uint64_t{kMul0} * c0;
  const uint64_t p1 = uint64_t{kMul1} * c2;
  c0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ key0;
  c1 = static_cast<uint32_t>(p1);
  c2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ key1;
  c3 = static_cast<uint32_t>(p0);
}

std::array<uint32_t, 4> block_at(RandomState state, uint64_t block) {
  return philox_block({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32),
                       static_cast<uint32_t>(state.serial), static_cast<uint32_t>(state.serial >> 32)},
                      {static_cast<uint32_t>(state.seed), static_cast<uint32_t>(state.seed >> 32)});
}

// Words of blocks first .. first + kLanes - 1.
void blocks_at(RandomState state, uint64_t first, Words& out) {
  for (int i = 0; i < kLanes; ++i) {
    const uint64_t block = first + static_cast<uint64_t>(i);
    out.w[0][i] = static_cast<uint32_t>(block);
    out.w[1][i] = static_cast<uint32_t>(block >> 32);
    out.w[2][i] = static_cast<uint32_t>(state.serial);
    out.w[3][i] = static_cast<uint32_t>(state.serial >> 32);
  }
  uint32_t key0 = static_cast<uint32_t>(state.seed), key1 = static_cast<uint32_t>(state.seed >> 32);
  for (int round = 0; round < kRounds; ++round, key0 += kBump0, key1 += kBump1)
    for (int i = 0; i < kLanes; ++i) philox_round(out.w[0][i], out.w[1][i], out.w[2][i], out.w[3][i], key0, key1);
}

// ---- uniforms and integers ----

inline float unit_f32(uint32_t word) { return static_cast<float>(static_cast<int32_t>(word >> 8)) * 0x1p-24f; }

inline uint64_t join(uint32_t low, uint32_t high) { return uint64_t{high} << 32 | low; }

inline double unit_f64(uint32_t low, uint32_t high) {
  return static_cast<double>(static_cast<int64_t>(join(low, high) >> 11)) * 0x1p-53;
}

inline int64_t ranged(uint32_t word_low, uint32_t word_high, int64_t low, int64_t high) {
  const uint64_t range = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  const auto product = static_cast<unsigned __int128>(join(word_low, word_high)) * range;
  return static_cast<int64_t>(static_cast<uint64_t>(low) + static_cast<uint64_t>(product >> 64));
}

// ---- Box-Muller in float ----

// log(x) for normal x in (0, 1]; coefficients of Cephes' logf (Moshier), error below 1 ulp.
inline float log_f32(float x) {
  // Exponent and mantissa so that the mantissa lies in [sqrt(1/2), sqrt(2)): subtracting the bits of sqrt(1/2) makes
  // the exponent field step there.
  const uint32_t shifted = std::bit_cast<uint32_t>(x) - 0x3f3504f3u;
  const float e = static_cast<float>(static_cast<int32_t>(shifted) >> 23);
  const float f = std::bit_cast<float>((shifted & 0x7fffffu) + 0x3f3504f3u) - 1.0f;
  const float z = f * f;
  float p = 7.0376836292e-2f;
  p = p * f - 1.1514610310e-1f;
  p = p * f + 1.1676998740e-1f;
  p = p * f - 1.2420140846e-1f;
  p = p * f + 1.4249322787e-1f;
  p = p * f - 1.6668057665e-1f;
  p = p * f + 2.0000714765e-1f;
  p = p * f - 2.4999993993e-1f;
  p = p * f + 3.3333331174e-1f;
  // ln 2 in two parts; the first has 9 bits, so that e times it is exact.
  const float tail = (f * z * p + e * -2.12194440e-4f) - 0.5f * z;
  return (f + tail) + e * 0.693359375f;
}

// Two normals from two words: radius from `a`, angle from `b`.
inline void normals_f32(uint32_t a, uint32_t b, float& z0, float& z1) {
  // (0, 1]: 31 bits and a half, rounded to float.
  const float u = (static_cast<float>(static_cast<int32_t>(a >> 1)) + 0.5f) * 0x1p-31f;
  const float radius = std::sqrt(-2.0f * log_f32(u));
  // The angle is b / 2^32 of a turn: the nearest quarter, and the rest in [-pi/4, pi/4) exact as an integer.
  const uint32_t quarter = (b + (1u << 29)) >> 30;
  const float x = static_cast<float>(static_cast<int32_t>(b - (quarter << 30))) * 1.46291807926716e-9f;  // pi/2 / 2^30
  const float t = x * x;
  // Cephes' sinf and cosf.
  const float sine = ((-1.9515295891e-4f * t + 8.3321608736e-3f) * t - 1.6666654611e-1f) * t * x + x;
  const float cosine =
      ((2.443315711809948e-5f * t - 1.388731625493765e-3f) * t + 4.166664568298827e-2f) * t * t - 0.5f * t + 1.0f;
  // cos: c, -s, -c, s in the quarters 0 to 3; sin: s, c, -s, -c. Swap and signs by bits: a choice of floats is not
  // vectorized.
  const uint32_t s = std::bit_cast<uint32_t>(sine), c = std::bit_cast<uint32_t>(cosine);
  const uint32_t swap = (s ^ c) & (0u - (quarter & 1u));
  z0 = radius * std::bit_cast<float>(c ^ swap ^ ((quarter + 1u) & 2u) << 30);
  z1 = radius * std::bit_cast<float>(s ^ swap ^ (quarter & 2u) << 30);
}

// ---- Box-Muller in double ----

// log(x) for normal x in (0, 1]; the method and coefficients of fdlibm's e_log.c (Sun), error below 1 ulp.
inline double log_f64(double x) {
  const uint64_t shifted = std::bit_cast<uint64_t>(x) - 0x3fe6a09e667f3bcdu;
  const double e = static_cast<double>(static_cast<int32_t>(static_cast<int64_t>(shifted) >> 52));
  const double f = std::bit_cast<double>((shifted & 0xfffffffffffffu) + 0x3fe6a09e667f3bcdu) - 1.0;
  const double s = f / (2.0 + f);
  const double z = s * s;
  const double w = z * z;
  const double even = w * (3.999999999940941908e-01 + w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01));
  const double odd =
      z * (6.666666666666735130e-01 +
           w * (2.857142874366239149e-01 + w * (1.818357216161805012e-01 + w * 1.479819860511658591e-01)));
  const double half = 0.5 * f * f;
  return e * 6.93147180369123816490e-01 - ((half - (s * (half + (even + odd)) + e * 1.90821492927058770002e-10)) - f);
}

// Two normals from the two 64-bit halves of a block.
inline void normals_f64(uint64_t a, uint64_t b, double& z0, double& z1) {
  // (0, 1]: 52 random bits as the mantissa of a number in [1, 2).
  const double u = 2.0 - std::bit_cast<double>(a >> 12 | 0x3ff0000000000000u);
  const double radius = std::sqrt(-2.0 * log_f64(u));
  const uint64_t quarter = (b + (uint64_t{1} << 61)) >> 62;
  constexpr double kQuarterTurn = 3.40612158008655459e-19;  // pi/2 / 2^62
  const double x = static_cast<double>(static_cast<int64_t>(b - (quarter << 62))) * kQuarterTurn;
  const double t = x * x;
  // fdlibm's k_sin.c and k_cos.c.
  const double sine_tail =
      8.33333333332248946124e-03 +
      t * (-1.98412698298579493134e-04 +
           t * (2.75573137070700676789e-06 + t * (-2.50507602534068634195e-08 + t * 1.58969099521155010221e-10)));
  const double sine = x + (t * x) * (-1.66666666666666324348e-01 + t * sine_tail);
  const double cosine_tail = t * (4.16666666666666019037e-02 +
                                  t * (-1.38888888888741095749e-03 +
                                       t * (2.48015872894767294178e-05 +
                                            t * (-2.75573143513906633035e-07 +
                                                 t * (2.08757232129817482790e-09 + t * -1.13596475577881948265e-11)))));
  const double half = 0.5 * t;
  const double leading = 1.0 - half;
  const double cosine = leading + (((1.0 - leading) - half) + t * cosine_tail);
  const uint64_t sine_bits = std::bit_cast<uint64_t>(sine), cosine_bits = std::bit_cast<uint64_t>(cosine);
  const uint64_t swap = (sine_bits ^ cosine_bits) & (uint64_t{0} - (quarter & 1u));
  z0 = radius * std::bit_cast<double>(cosine_bits ^ swap ^ ((quarter + 1u) & 2u) << 62);
  z1 = radius * std::bit_cast<double>(sine_bits ^ swap ^ (quarter & 2u) << 62);
}

// ---- bulk ----

// Calls make(first block, T values[kPerBlock * kLanes]) for batches of blocks and copies the part asked for.
template <int kPerBlock, class T, class Make>
void fill(T* out, uint64_t begin, uint64_t end, const Make& make) {
  constexpr uint64_t kBatch = uint64_t{kPerBlock} * kLanes;
  alignas(64) T values[kBatch];
  for (uint64_t i = begin; i < end;) {
    const uint64_t skip = i % kPerBlock;
    const uint64_t count = std::min(end - i, kBatch - skip);
    if (count == kBatch) {
      make(i / kPerBlock, out);
    } else {
      make(i / kPerBlock, values);
      std::copy_n(values + skip, count, out);
    }
    out += count;
    i += count;
  }
}

}  // namespace

std::array<uint32_t, 4> philox_block(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < kRounds; ++round, key[0] += kBump0, key[1] += kBump1)
    philox_round(counter[0], counter[1], counter[2], counter[3], key[0], key[1]);
  return counter;
}

float uniform_f32(RandomState state, uint64_t index) { return unit_f32(block_at(state, index / 4)[index % 4]); }

double uniform_f64(RandomState state, uint64_t index) {
  const auto w = block_at(state, index / 2);
  return index % 2 == 0 ? unit_f64(w[0], w[1]) : unit_f64(w[2], w[3]);
}

float normal_f32(RandomState state, uint64_t index) {
  const auto w = block_at(state, index / 4);
  const size_t pair = index % 4 / 2 * 2;
  float z0, z1;
  normals_f32(w[pair], w[pair + 1], z0, z1);
  return index % 2 == 0 ? z0 : z1;
}

double normal_f64(RandomState state, uint64_t index) {
  const auto w = block_at(state, index / 2);
  double z0, z1;
  normals_f64(join(w[0], w[1]), join(w[2], w[3]), z0, z1);
  return index % 2 == 0 ? z0 : z1;
}

int64_t integer_i64(RandomState state, uint64_t index, int64_t low, int64_t high) {
  const auto w = block_at(state, index / 2);
  return index % 2 == 0 ? ranged(w[0], w[1], low, high) : ranged(w[2], w[3], low, high);
}

void fill_uniform(float* out, RandomState state, uint64_t begin, uint64_t end, double low, double high) {
  const float from = static_cast<float>(low);
  const float span = static_cast<float>(high) - from;
  fill<4>(out, begin, end, [&](uint64_t block, float* values) {
    Words words;
    blocks_at(state, block, words);
    for (int i = 0; i < kLanes; ++i)
      for (int j = 0; j < 4; ++j) values[4 * i + j] = from + unit_f32(words.w[j][i]) * span;
  });
}

void fill_uniform(double* out, RandomState state, uint64_t begin, uint64_t end, double low, double high) {
  const double span = high - low;
  fill<2>(out, begin, end, [&](uint64_t block, double* values) {
    Words words;
    blocks_at(state, block, words);
    for (int i = 0; i < kLanes; ++i) {
      values[2 * i] = low + unit_f64(words.w[0][i], words.w[1][i]) * span;
      values[2 * i + 1] = low + unit_f64(words.w[2][i], words.w[3][i]) * span;
    }
  });
}

void fill_normal(float* out, RandomState state, uint64_t begin, uint64_t end, double mean, double std) {
  const float center = static_cast<float>(mean), scale = static_cast<float>(std);
  fill<4>(out, begin, end, [&](uint64_t block, float* values) {
    Words words;
    blocks_at(state, block, words);
    float z[4][kLanes];
    for (int pair = 0; pair < 4; pair += 2)
      for (int i = 0; i < kLanes; ++i) normals_f32(words.w[pair][i], words.w[pair + 1][i], z[pair][i], z[pair + 1][i]);
    for (int i = 0; i < kLanes; ++i)
      for (int j = 0; j < 4; ++j) values[4 * i + j] = center + scale * z[j][i];
  });
}

void fill_normal(double* out, RandomState state, uint64_t begin, uint64_t end, double mean, double std) {
  fill<2>(out, begin, end, [&](uint64_t block, double* values) {
    Words words;
    blocks_at(state, block, words);
    for (int i = 0; i < kLanes; ++i) {
      double z0, z1;
      normals_f64(join(words.w[0][i], words.w[1][i]), join(words.w[2][i], words.w[3][i]), z0, z1);
      values[2 * i] = mean + std * z0;
      values[2 * i + 1] = mean + std * z1;
    }
  });
}

void fill_integer(int64_t* out, RandomState state, uint64_t begin, uint64_t end, int64_t low, int64_t high) {
  fill<2>(out, begin, end, [&](uint64_t block, int64_t* values) {
    Words words;
    blocks_at(state, block, words);
    for (int i = 0; i < kLanes; ++i) {
      values[2 * i] = ranged(words.w[0][i], words.w[1][i], low, high);
      values[2 * i + 1] = ranged(words.w[2][i], words.w[3][i], low, high);
    }
  });
}

}  // namespace outrace
