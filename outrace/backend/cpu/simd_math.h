// exp, log and tanh of a vector. A lane's result depends on that lane's number alone, and is the same on AVX2, AVX-512
// and NEON: every step is an IEEE operation or an explicit fused multiply-add. Largest errors found by
// tests/tile_math_test.cpp, in units of the last place, f32 and f64 alike: exp 0.98, log 0.78, tanh 2.5. Included once
// a target from *_simd.cpp files, hence no #pragma once but Highway's toggled guard.
#if defined(OUTRACE_BACKEND_CPU_SIMD_MATH_H) == defined(HWY_TARGET_TOGGLE)
#ifdef OUTRACE_BACKEND_CPU_SIMD_MATH_H
#undef OUTRACE_BACKEND_CPU_SIMD_MATH_H
#else
#define OUTRACE_BACKEND_CPU_SIMD_MATH_H
#endif

#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace outrace::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Facts of the two formats. kRound is 1.5 * 2^mantissa bits: adding it leaves a small number rounded to an integer in
// the low bits. ln2 = kLn2High + kLn2Low, the first with so few bits that its products with exponents are exact.
template <class T>
struct MathFacts;
template <>
struct MathFacts<float> {
  using Bits = uint32_t;
  static constexpr int kMantissa = 23;
  static constexpr float kBias = 127, kRound = 0x1.8p23f;
  static constexpr float kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
  static constexpr float kExpLow = -104, kExpHigh = 89;  // beyond: 0 and infinity
  static constexpr float kTanhHigh = 10;                 // beyond 9.02 tanh rounds to 1
  static constexpr float kNormal = 0x1p-126f, kScale = 0x1p25f, kScaleExponent = 25;
  static constexpr Bits kOne = 0x3f800000, kSqrtHalf = 0x3f3504f3;
  // Taylor: the first term left out, r^8 / 8!, is 0.09 of a unit in the last place of 1 for |r| <= ln2 / 2.
  static constexpr float kExp[] = {1 / 2.f, 1 / 6.f, 1 / 24.f, 1 / 120.f, 1 / 720.f, 1 / 5040.f};
  // log(1 + f) with s = f / (2 + f): 2s + s * R(s^2); coefficients of FreeBSD's e_logf.c (Sun Microsystems, 1993).
  static constexpr float kLog[] = {0xaaaaaa.0p-24f, 0xccce13.0p-25f, 0x91e9ee.0p-25f, 0xf89e26.0p-26f};
};
template <>
struct MathFacts<double> {
  using Bits = uint64_t;
  static constexpr int kMantissa = 52;
  static constexpr double kBias = 1023, kRound = 0x1.8p52;
  static constexpr double kLn2High = 6.93147180369123816490e-01, kLn2Low = 1.90821492927058770002e-10;
  static constexpr double kExpLow = -746, kExpHigh = 710;
  static constexpr double kTanhHigh = 20;  // beyond 19.07
  static constexpr double kNormal = 0x1p-1022, kScale = 0x1p54, kScaleExponent = 54;
  static constexpr Bits kOne = 0x3ff0000000000000, kSqrtHalf = 0x3fe6a09e667f3bcd;
  // r^14 / 14! is 0.02 of a unit in the last place of 1.
  static constexpr double kExp[] = {1 / 2.,       1 / 6.,        1 / 24.,        1 / 120.,
                                    1 / 720.,     1 / 5040.,     1 / 40320.,     1 / 362880.,
                                    1 / 3628800., 1 / 39916800., 1 / 479001600., 1 / 6227020800.};
  static constexpr double kLog[] = {6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01,
                                    2.222219843214978396e-01, 1.818357216161805012e-01, 1.531383769920937332e-01,
                                    1.479819860511658591e-01};
};

// c[0] + c[1] x + c[2] x^2 ...
template <class T, size_t N, class V>
HWY_INLINE V polynomial(const T (&c)[N], V x) {
  const hn::ScalableTag<T> d;
  V sum = hn::Set(d, c[N - 1]);
#pragma GCC unroll 16
  for (int i = static_cast<int>(N) - 2; i >= 0; --i) sum = hn::MulAdd(sum, x, hn::Set(d, c[i]));
  return sum;
}

// 2^n for a whole number n in the range of normal exponents.
template <class T, class V>
HWY_INLINE V power_of_two(V n) {
  using F = MathFacts<T>;
  const hn::ScalableTag<T> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  return hn::BitCast(d, hn::ShiftLeft<F::kMantissa>(hn::BitCast(du, hn::Add(n, hn::Set(d, F::kRound + F::kBias)))));
}

// x = n ln2 + r, |r| <= ln2 / 2; returns e^r - 1 - r.
template <class T, class V>
HWY_INLINE V exp_tail(V x, V& n, V& r) {
  using F = MathFacts<T>;
  const hn::ScalableTag<T> d;
  const V round = hn::Set(d, F::kRound);
  n = hn::Sub(hn::MulAdd(x, hn::Set(d, static_cast<T>(1.44269504088896340736)), round), round);
  r = hn::NegMulAdd(n, hn::Set(d, F::kLn2High), x);
  r = hn::NegMulAdd(n, hn::Set(d, F::kLn2Low), r);
  return hn::Mul(hn::Mul(r, r), polynomial(F::kExp, r));
}

template <class T, class V>
HWY_INLINE V exp_of(V x) {
  using F = MathFacts<T>;
  const hn::ScalableTag<T> d;
  // Min and Max give their second operand where one is NaN.
  x = hn::Max(hn::Set(d, F::kExpLow), hn::Min(hn::Set(d, F::kExpHigh), x));
  V n, r;
  const V tail = exp_tail<T>(x, n, r);
  const V power = hn::Add(hn::Set(d, T(1)), hn::Add(r, tail));
  // In two factors, so that both are normal where the result is subnormal or infinite.
  const V round = hn::Set(d, F::kRound);
  const V half = hn::Sub(hn::MulAdd(n, hn::Set(d, T(0.5)), round), round);
  return hn::Mul(hn::Mul(power, power_of_two<T>(half)), power_of_two<T>(hn::Sub(n, half)));
}

template <class T, class V>
HWY_INLINE V log_of(V x) {
  using F = MathFacts<T>;
  using Bits = typename F::Bits;
  const hn::ScalableTag<T> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  const auto tiny = hn::Lt(x, hn::Set(d, F::kNormal));
  const V scaled = hn::IfThenElse(tiny, hn::Mul(x, hn::Set(d, F::kScale)), x);
  // scaled = 2^k * m, sqrt(1/2) <= m < sqrt(2). Planting the biased k in the mantissa of 2^kMantissa makes it a number.
  const auto bits = hn::Add(hn::BitCast(du, scaled), hn::Set(du, F::kOne - F::kSqrtHalf));
  const auto planted = hn::Or(hn::ShiftRight<F::kMantissa>(bits), hn::BitCast(du, hn::Set(d, F::kRound / T(1.5))));
  const V bias =
      hn::Add(hn::Set(d, F::kRound / T(1.5) + F::kBias), hn::IfThenElseZero(tiny, hn::Set(d, F::kScaleExponent)));
  const V k = hn::Sub(hn::BitCast(d, planted), bias);
  const auto mantissa = hn::And(bits, hn::Set(du, (Bits{1} << F::kMantissa) - 1));
  const V f = hn::Sub(hn::BitCast(d, hn::Add(mantissa, hn::Set(du, F::kSqrtHalf))), hn::Set(d, T(1)));

  const V s = hn::Div(f, hn::Add(f, hn::Set(d, T(2))));
  const V z = hn::Mul(s, s);
  const V rest = hn::Mul(z, polynomial(F::kLog, z));
  const V half_square = hn::Mul(hn::Set(d, T(0.5)), hn::Mul(f, f));
  V y = hn::MulAdd(s, hn::Add(half_square, rest), hn::Mul(k, hn::Set(d, F::kLn2Low)));
  y = hn::Add(hn::Sub(y, half_square), f);
  y = hn::MulAdd(k, hn::Set(d, F::kLn2High), y);

  const V infinity = hn::Div(hn::Set(d, T(1)), hn::Zero(d));
  y = hn::IfThenElse(hn::Lt(x, infinity), y, x);  // infinity and NaN are their own logarithms
  y = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Set(d, static_cast<T>(__builtin_nan(""))), y);
  return hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Neg(infinity), y);
}

// With e = e^(-2|x|) - 1, which is exact near 0: tanh |x| = -e / (2 + e).
template <class T, class V>
HWY_INLINE V tanh_of(V x) {
  using F = MathFacts<T>;
  const hn::ScalableTag<T> d;
  const V magnitude = hn::Min(hn::Set(d, F::kTanhHigh), hn::Abs(x));  // NaN stays
  V n, r;
  const V tail = exp_tail<T>(hn::Mul(hn::Set(d, T(-2)), magnitude), n, r);
  const V scale = power_of_two<T>(n);
  const V e = hn::MulAdd(scale, hn::Add(r, tail), hn::Sub(scale, hn::Set(d, T(1))));
  return hn::CopySign(hn::Div(e, hn::Add(e, hn::Set(d, T(2)))), x);
}

}  // namespace
}  // namespace outrace::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
