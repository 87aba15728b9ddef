// Payne and Hanek, "Radian reduction for trigonometric functions", SIGNUM Newsletter 18 (1983), in whole numbers.
#include "outrace/backend/cpu/reduce_angle.h"

#include <bit>
#include <cmath>

namespace outrace::cpu {
namespace {

// A zero word, then the binary digits of 2 / pi behind the point.
constexpr uint64_t kTwoOverPi[] = {0,
                                   0xa2f9836e4e441529,
                                   0xfc2757d1f534ddc0,
                                   0xdb6295993c439041,
                                   0xfe5163abdebbc561,
                                   0xb7246e3a424dd2e0,
                                   0x06492eea09d1921c,
                                   0xfe1deb1cb129a73e,
                                   0xe88235f52ebb4484,
                                   0xe99c7026b45f7e41,
                                   0x3991d639835339f4,
                                   0x9c845f8bbdf9283b,
                                   0x1ff897ffde05980f,
                                   0xef2f118b5a0a6d1f,
                                   0x6d367ecf27cb09b7,
                                   0x4f463f669e5fea2d,
                                   0x7527bac7ebe5f17b,
                                   0x3d0739f78a5292ea,
                                   0x6bfb5fb11f8d5d08,
                                   0x56033046fc7b6bab,
                                   0xf0cfbc209af4361d};
constexpr double kHalfPi = 0x1.921fb54442d18p+0, kHalfPiLow = 0x1.1a62633145c07p-54;

// 64 digits of the table from digit `at` on.
uint64_t digits(int at) {
  const int word = at / 64, shift = at % 64;
  return shift == 0 ? kTwoOverPi[word] : kTwoOverPi[word] << shift | kTwoOverPi[word + 1] >> (64 - shift);
}

}  // namespace

ReducedAngle reduce_angle(double x) {
  using Wide = unsigned __int128;
  const uint64_t bits = std::bit_cast<uint64_t>(x) & ~(uint64_t{1} << 63);
  const uint64_t mantissa = (bits & ((uint64_t{1} << 52) - 1)) | uint64_t{1} << 52;
  // |x| = mantissa * 2^exponent. Digits of 2 / pi worth whole turns drop out: turns = mantissa * 0.(192 digits).
  const int exponent = static_cast<int>(bits >> 52) - 1075;
  const int at = 64 + exponent - 2;
  const Wide low = Wide{mantissa} * digits(at + 128);
  const Wide middle = Wide{mantissa} * digits(at + 64) + static_cast<uint64_t>(low >> 64);
  uint64_t turn[3] = {static_cast<uint64_t>(low), static_cast<uint64_t>(middle),
                      mantissa * digits(at) + static_cast<uint64_t>(middle >> 64)};
  // To the nearest quarter; what is left counts from it, in units of 2^-190 quarters.
  const int quarter = static_cast<int>((turn[2] + (uint64_t{1} << 61)) >> 62);
  turn[2] -= static_cast<uint64_t>(quarter) << 62;
  const bool negative = turn[2] >> 63;
  if (negative) {
    for (uint64_t& word : turn) word = ~word;
    if (++turn[0] == 0 && ++turn[1] == 0) ++turn[2];
  }
  int zeros = 0;
  while (zeros < 128 && turn[2] == 0) {
    turn[2] = turn[1];
    turn[1] = turn[0];
    turn[0] = 0;
    zeros += 64;
  }
  if (const int shift = std::countl_zero(turn[2]); shift > 0 && shift < 64) {
    turn[2] = turn[2] << shift | turn[1] >> (64 - shift);
    turn[1] = turn[1] << shift | turn[0] >> (64 - shift);
    zeros += shift;
  }
  // The first 53 digits and the next 53, times pi / 2.
  const double first = std::ldexp(static_cast<double>(turn[2] >> 11), -51 - zeros);
  const double second = std::ldexp(static_cast<double>((turn[2] & 0x7ff) << 42 | turn[1] >> 22), -104 - zeros);
  const double product = first * kHalfPi;
  const double rest = std::fma(first, kHalfPi, -product) + (first * kHalfPiLow + second * kHalfPi);
  ReducedAngle out{.high = product + rest, .low = 0, .quarter = quarter & 3};
  out.low = (product - out.high) + rest;
  if (negative) {
    out.high = -out.high;
    out.low = -out.low;
  }
  if (std::signbit(x)) out = {.high = -out.high, .low = -out.low, .quarter = (4 - out.quarter) & 3};
  return out;
}

}  // namespace outrace::cpu
