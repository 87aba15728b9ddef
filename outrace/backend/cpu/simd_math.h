// The families of exp (exp, exp2, expm1, sinh, cosh, tanh) and log (log, log2, log1p) of a vector. A lane's result
// depends on that lane's number alone, and is the same on AVX2, AVX-512 and NEON: every step is an IEEE operation or an
// explicit fused multiply-add. docs/numerics.md lists the largest errors, found by tests/tile_ulp_test.cpp. Included
// once a target from *_simd.cpp files, hence no #pragma once but Highway's toggled guard.
#if defined(OUTRACE_BACKEND_CPU_SIMD_MATH_H) == defined(HWY_TARGET_TOGGLE)
#ifdef OUTRACE_BACKEND_CPU_SIMD_MATH_H
#undef OUTRACE_BACKEND_CPU_SIMD_MATH_H
#else
#define OUTRACE_BACKEND_CPU_SIMD_MATH_H
#endif

#include <bit>
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
  static constexpr float kExpPlain = 87;                 // up to here e^x and e^-x are normal numbers
  static constexpr float kTanhHigh = 10;                 // beyond 9.02 tanh rounds to 1
  static constexpr float kExpm1Low = -20;                // beyond -17.4 expm1 rounds to -1
  static constexpr float kExp2Low = -151, kExp2High = 129;
  static constexpr float kLog2eHigh = 0x1.715476p+0f, kLog2eLow = 0x1.4ae0cp-26f;
  static constexpr float kNormal = 0x1p-126f, kScale = 0x1p25f, kScaleExponent = 25;
  static constexpr Bits kOne = 0x3f800000, kSqrtHalf = 0x3f3504f3;
  // Taylor: the first term left out, r^8 / 8!, is 0.09 of a unit in the last place of 1 for |r| <= ln2 / 2.
  static constexpr float kExp[] = {1 / 2.f, 1 / 6.f, 1 / 24.f, 1 / 120.f, 1 / 720.f, 1 / 5040.f};
  // sinh of |x| <= 1: x + x^3 times this, Taylor.
  static constexpr float kSinh[] = {1 / 6.f, 1 / 120.f, 1 / 5040.f, 1 / 362880.f, 1 / 39916800.f};
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
  static constexpr double kExpPlain = 708;
  static constexpr double kTanhHigh = 20;   // beyond 19.07
  static constexpr double kExpm1Low = -40;  // beyond -37.5
  static constexpr double kExp2Low = -1076, kExp2High = 1025;
  static constexpr double kLog2eHigh = 0x1.71547652b82fep+0, kLog2eLow = 0x1.777d0ffda0d24p-56;
  static constexpr double kNormal = 0x1p-1022, kScale = 0x1p54, kScaleExponent = 54;
  static constexpr Bits kOne = 0x3ff0000000000000, kSqrtHalf = 0x3fe6a09e667f3bcd;
  // r^14 / 14! is 0.02 of a unit in the last place of 1.
  static constexpr double kExp[] = {1 / 2.,       1 / 6.,        1 / 24.,        1 / 120.,
                                    1 / 720.,     1 / 5040.,     1 / 40320.,     1 / 362880.,
                                    1 / 3628800., 1 / 39916800., 1 / 479001600., 1 / 6227020800.};
  static constexpr double kSinh[] = {1 / 6.,        1 / 120.,        1 / 5040.,          1 / 362880.,
                                     1 / 39916800., 1 / 6227020800., 1 / 1307674368000., 1 / 355687428096000.};
  static constexpr double kLog[] = {6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01,
                                    2.222219843214978396e-01, 1.818357216161805012e-01, 1.531383769920937332e-01,
                                    1.479819860511658591e-01};
};

// c[0] + c[1] x + c[2] x^2 ... in Horner's order, which rounds least where coefficients alternate.
template <class T, size_t N, class V>
HWY_INLINE V horner(const T (&c)[N], V x) {
  const hn::ScalableTag<T> d;
  V sum = hn::Set(d, c[N - 1]);
#pragma GCC unroll 32
  for (int i = static_cast<int>(N) - 2; i >= 0; --i) sum = hn::MulAdd(sum, x, hn::Set(d, c[i]));
  return sum;
}

// c[kFirst] + c[kFirst + 1] x + ... over kCount coefficients; powers: x, x^2, x^4, ... Estrin's scheme: halves are
// computed side by side, as the chain of additions and not their number decides how long an elementary function takes.
template <int kFirst, int kCount, class T, size_t N, class V>
HWY_INLINE V polynomial_part(const T (&c)[N], const V* powers) {
  const hn::ScalableTag<T> d;
  if constexpr (kCount == 1) {
    return hn::Set(d, c[kFirst]);
  } else {
    constexpr int kLevel = std::bit_width(static_cast<unsigned>(kCount - 1)) - 1, kHalf = 1 << kLevel;
    const V low = polynomial_part<kFirst, kHalf>(c, powers);
    return hn::MulAdd(polynomial_part<kFirst + kHalf, kCount - kHalf>(c, powers), powers[kLevel], low);
  }
}
template <class T, size_t N, class V>
HWY_INLINE V polynomial(const T (&c)[N], V x) {
  V powers[8] = {x};
#pragma GCC unroll 8
  for (int i = 1; 1 << i < static_cast<int>(N); ++i) powers[i] = hn::Mul(powers[i - 1], powers[i - 1]);
  return polynomial_part<0, static_cast<int>(N)>(c, powers);
}

// 2^n for a whole number n in the range of normal exponents.
template <class T, class V>
HWY_INLINE V power_of_two(V n) {
  using F = MathFacts<T>;
  const hn::ScalableTag<T> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  return hn::BitCast(d, hn::ShiftLeft<F::kMantissa>(hn::BitCast(du, hn::Add(n, hn::Set(d, F::kRound + F::kBias)))));
}

template <class T, class V>
HWY_INLINE V infinity_of() {
  return hn::Set(hn::ScalableTag<T>(), static_cast<T>(__builtin_inf()));
}

// The nearest whole number, for |x| far below 2^kMantissa.
template <class T, class V>
HWY_INLINE V nearest(V x) {
  const V round = hn::Set(hn::ScalableTag<T>(), MathFacts<T>::kRound);
  return hn::Sub(hn::Add(x, round), round);
}

// p * 2^n in two factors, so that both are normal where the result is subnormal or infinite.
template <class T, class V>
HWY_INLINE V scale_by(V p, V n) {
  const V half = nearest<T>(hn::Mul(n, hn::Set(hn::ScalableTag<T>(), T(0.5))));
  return hn::Mul(hn::Mul(p, power_of_two<T>(half)), power_of_two<T>(hn::Sub(n, half)));
}

// x limited to [low, high]; NaN stays, as Min and Max give their second operand where one is NaN.
template <class T, class V>
HWY_INLINE V limit(V x, T low, T high) {
  const hn::ScalableTag<T> d;
  return hn::Max(hn::Set(d, low), hn::Min(hn::Set(d, high), x));
}

// e^r - 1 - r for |r| <= ln2 / 2.
template <class T, class V>
HWY_INLINE V exp_rest(V r) {
  return hn::Mul(hn::Mul(r, r), polynomial(MathFacts<T>::kExp, r));
}

// e^r for |r| <= ln2 / 2.
template <class T, class V>
HWY_INLINE V exp_near_0(V r) {
  return hn::Add(hn::Set(hn::ScalableTag<T>(), T(1)), hn::MulAdd(hn::Mul(r, r), polynomial(MathFacts<T>::kExp, r), r));
}

// x = n ln2 + r, |r| <= ln2 / 2. Returns n + kRound, whose low bits are n as an integer.
template <class T, class V>
HWY_INLINE V reduce_exp(V x, V& n, V& r) {
  using F = MathFacts<T>;
  const hn::ScalableTag<T> d;
  const V round = hn::Set(d, F::kRound);
  const V rounded = hn::MulAdd(x, hn::Set(d, static_cast<T>(1.44269504088896340736)), round);
  n = hn::Sub(rounded, round);
  r = hn::NegMulAdd(n, hn::Set(d, F::kLn2High), x);
  r = hn::NegMulAdd(n, hn::Set(d, F::kLn2Low), r);
  return rounded;
}
// The same; returns e^r - 1 - r.
template <class T, class V>
HWY_INLINE V exp_tail(V x, V& n, V& r) {
  reduce_exp<T>(x, n, r);
  return exp_rest<T>(r);
}

template <class T, class V>
HWY_INLINE V exp_of(V x) {
  using F = MathFacts<T>;
  const hn::ScalableTag<T> d;
  V n, r;
  if (hn::AllTrue(d, hn::Le(hn::Abs(x), hn::Set(d, F::kExpPlain)))) [[likely]] {
    // The result is a normal number: n is added to its exponent.
    const hn::RebindToUnsigned<decltype(d)> du;
    const auto exponent = hn::ShiftLeft<F::kMantissa>(hn::BitCast(du, reduce_exp<T>(x, n, r)));
    return hn::BitCast(d, hn::Add(hn::BitCast(du, exp_near_0<T>(r)), exponent));
  }
  reduce_exp<T>(limit<T>(x, F::kExpLow, F::kExpHigh), n, r);
  return scale_by<T>(exp_near_0<T>(r), n);
}

// 2^x = 2^n e^((x - n) ln2)
template <class T, class V>
HWY_INLINE V exp2_of(V x) {
  using F = MathFacts<T>;
  const hn::ScalableTag<T> d;
  x = limit<T>(x, F::kExp2Low, F::kExp2High);
  const V n = nearest<T>(x);
  const V r = hn::Mul(hn::Sub(x, n), hn::Set(d, static_cast<T>(0.69314718055994530942)));
  return scale_by<T>(hn::Add(hn::Set(d, T(1)), hn::Add(r, exp_rest<T>(r))), n);
}

// 2^n (e^r - 1) + (2^n - 1); where 2^n is past all rounding of the 1, e^x.
template <class T, class V>
HWY_INLINE V expm1_of(V x) {
  using F = MathFacts<T>;
  const hn::ScalableTag<T> d;
  const V one = hn::Set(d, T(1));
  V n, r;
  const V tail = exp_tail<T>(limit<T>(x, F::kExpm1Low, F::kExpHigh), n, r);
  const V less_one = hn::Add(r, tail);
  const V scale = power_of_two<T>(hn::Min(hn::Set(d, F::kBias - 1), n));
  const V small = hn::MulAdd(scale, less_one, hn::Sub(scale, one));
  const V y = hn::IfThenElse(hn::Gt(n, hn::Set(d, T(F::kMantissa + 4))), scale_by<T>(hn::Add(one, less_one), n), small);
  return hn::IfThenElse(hn::Eq(x, hn::Zero(d)), x, y);  // -0
}

// e^|x| / 2, infinite only where that is.
template <class T, class V>
HWY_INLINE V half_exp(V magnitude) {
  using F = MathFacts<T>;
  const hn::ScalableTag<T> d;
  const V one = hn::Set(d, T(1));
  V n, r;
  const V tail = exp_tail<T>(hn::Min(hn::Set(d, F::kExpHigh + 1), magnitude), n, r);
  return scale_by<T>(hn::Add(one, hn::Add(r, tail)), hn::Sub(n, one));
}

template <class T, class V>
HWY_INLINE V sinh_of(V x) {
  const hn::ScalableTag<T> d;
  const V magnitude = hn::Abs(x), square = hn::Mul(x, x);
  const V half = half_exp<T>(magnitude);
  const V large = hn::CopySign(hn::Sub(half, hn::Div(hn::Set(d, T(0.25)), half)), x);
  const V small = hn::MulAdd(hn::Mul(x, square), polynomial(MathFacts<T>::kSinh, square), x);
  return hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, T(1))), small, large);
}

template <class T, class V>
HWY_INLINE V cosh_of(V x) {
  const V half = half_exp<T>(hn::Abs(x));
  return hn::Add(half, hn::Div(hn::Set(hn::ScalableTag<T>(), T(0.25)), half));
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

// x = 2^k (1 + f), sqrt(1/2) <= 1 + f < sqrt(2), for positive finite x.
template <class T, class V>
HWY_INLINE void split_log(V x, V& k, V& f) {
  using F = MathFacts<T>;
  using Bits = typename F::Bits;
  const hn::ScalableTag<T> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  const auto tiny = hn::Lt(x, hn::Set(d, F::kNormal));
  const V scaled = hn::IfThenElse(tiny, hn::Mul(x, hn::Set(d, F::kScale)), x);
  // Planting the biased k in the mantissa of 2^kMantissa makes it a number.
  const auto bits = hn::Add(hn::BitCast(du, scaled), hn::Set(du, F::kOne - F::kSqrtHalf));
  const auto planted = hn::Or(hn::ShiftRight<F::kMantissa>(bits), hn::BitCast(du, hn::Set(d, F::kRound / T(1.5))));
  const V bias =
      hn::Add(hn::Set(d, F::kRound / T(1.5) + F::kBias), hn::IfThenElseZero(tiny, hn::Set(d, F::kScaleExponent)));
  k = hn::Sub(hn::BitCast(d, planted), bias);
  const auto mantissa = hn::And(bits, hn::Set(du, (Bits{1} << F::kMantissa) - 1));
  f = hn::Sub(hn::BitCast(d, hn::Add(mantissa, hn::Set(du, F::kSqrtHalf))), hn::Set(d, T(1)));
}

// log(1 + f) - f + low, low being small beside f where that matters.
template <class T, class V>
HWY_INLINE V log_series(V f, V low) {
  const hn::ScalableTag<T> d;
  const V s = hn::Div(f, hn::Add(f, hn::Set(d, T(2))));
  const V z = hn::Mul(s, s);
  const V rest = hn::Mul(z, polynomial(MathFacts<T>::kLog, z));
  const V half_square = hn::Mul(hn::Set(d, T(0.5)), hn::Mul(f, f));
  return hn::Sub(hn::MulAdd(s, hn::Add(half_square, rest), low), half_square);
}

// A logarithm y of x - zero_at, set right where that is no positive finite number.
template <class T, class V>
HWY_INLINE V log_specials(V x, T zero_at, V y) {
  const hn::ScalableTag<T> d;
  const V infinity = infinity_of<T, V>(), zero = hn::Set(d, zero_at);
  y = hn::IfThenElse(hn::Lt(x, infinity), y, x);  // infinity and NaN are their own logarithms
  y = hn::IfThenElse(hn::Lt(x, zero), hn::Set(d, static_cast<T>(__builtin_nan(""))), y);
  return hn::IfThenElse(hn::Eq(x, zero), hn::Neg(infinity), y);
}

template <class T, class V>
HWY_INLINE V log_of(V x) {
  using F = MathFacts<T>;
  const hn::ScalableTag<T> d;
  V k, f;
  split_log<T>(x, k, f);
  const V y = hn::Add(log_series<T>(f, hn::Mul(k, hn::Set(d, F::kLn2Low))), f);
  return log_specials<T>(x, T(0), hn::MulAdd(k, hn::Set(d, F::kLn2High), y));
}

template <class T, class V>
HWY_INLINE V log2_of(V x) {
  using F = MathFacts<T>;
  const hn::ScalableTag<T> d;
  V k, f;
  split_log<T>(x, k, f);
  const V y = hn::Add(log_series<T>(f, hn::Zero(d)), f);
  const V low = hn::MulAdd(y, hn::Set(d, F::kLog2eLow), k);
  return log_specials<T>(x, T(0), hn::MulAdd(y, hn::Set(d, F::kLog2eHigh), low));
}

// log u with u = 1 + x rounded, plus what the rounding lost, divided by u (as in FreeBSD's s_log1p.c).
template <class T, class V>
HWY_INLINE V log1p_of(V x) {
  using F = MathFacts<T>;
  const hn::ScalableTag<T> d;
  const V one = hn::Set(d, T(1)), zero = hn::Zero(d);
  const V u = hn::Add(one, x);
  V k, f;
  split_log<T>(u, k, f);
  const auto exact = hn::Eq(k, zero);  // 1 + x need not be rounded: f is x
  f = hn::IfThenElse(exact, x, f);
  const V lost = hn::IfThenElse(hn::Gt(x, one), hn::Sub(one, hn::Sub(u, x)), hn::Sub(x, hn::Sub(u, one)));
  const V correction = hn::IfThenElse(exact, zero, hn::Div(lost, u));
  const V rest = log_series<T>(f, hn::MulAdd(k, hn::Set(d, F::kLn2Low), correction));
  const V most = hn::MulAdd(k, hn::Set(d, F::kLn2High), f);  // exact for small k
  const V whole = log_specials<T>(x, T(-1), hn::Add(most, rest));
  return hn::IfThenElse(hn::Eq(x, zero), x, whole);  // -0
}

}  // namespace
}  // namespace outrace::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
