// sin, cos, tan and their inverses of a vector of doubles; floats are computed in double. The same bits on every
// instruction set, as in simd_math.h. Polynomials are those of FreeBSD's msun (k_sin.c, k_cos.c, e_asin.c, s_atan.c;
// Sun Microsystems, 1993). Included once a target from *_simd.cpp files, hence no #pragma once but Highway's toggled
// guard.
#if defined(OUTRACE_BACKEND_CPU_SIMD_TRIG_H) == defined(HWY_TARGET_TOGGLE)
#ifdef OUTRACE_BACKEND_CPU_SIMD_TRIG_H
#undef OUTRACE_BACKEND_CPU_SIMD_TRIG_H
#else
#define OUTRACE_BACKEND_CPU_SIMD_TRIG_H
#endif

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "hwy/highway.h"
#include "outrace/backend/cpu/reduce_angle.h"
#include "outrace/backend/cpu/simd_math.h"

HWY_BEFORE_NAMESPACE();
namespace outrace::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// How precise a function must be: a float's needs no second word of its reduced argument.
enum class For { f32, f64 };

constexpr double kSin[] = {-1.66666666666666324348e-01, 8.33333333332248946124e-03,  -1.98412698298579493134e-04,
                           2.75573137070700676789e-06,  -2.50507602534068634195e-08, 1.58969099521155010221e-10};
constexpr double kCos[] = {4.16666666666666019037e-02,  -1.38888888888741095749e-03, 2.48015872894767294178e-05,
                           -2.75573143513906633035e-07, 2.08757232129817482790e-09,  -1.13596475577881948265e-11};
// asin(x) = x + x P(x^2) / Q(x^2)
constexpr double kAsinP[] = {0,
                             1.66666666666666657415e-01,
                             -3.25565818622400915405e-01,
                             2.01212532134862925881e-01,
                             -4.00555345006794114027e-02,
                             7.91534994289814532176e-04,
                             3.47933107596021167570e-05};
constexpr double kAsinQ[] = {1, -2.40339491173441421878e+00, 2.02094576023350569471e+00, -6.88283971605453293030e-01,
                             7.70381505559019352791e-02};
// atan(x) = x - x^3 times this, |x| < 7 / 16
constexpr double kAtan[] = {3.33333333333329318027e-01,  -1.99999999998764832476e-01, 1.42857142725034663711e-01,
                            -1.11111104054623557880e-01, 9.09088713343650656196e-02,  -7.69187620504482999495e-02,
                            6.66107313738753120669e-02,  -5.83357013379057348645e-02, 4.97687799461593236017e-02,
                            -3.65315727442169155270e-02, 1.62858201153657823623e-02};
constexpr double kHalfPi = 0x1.921fb54442d18p+0, kHalfPiLow = 0x1.1a62633145c07p-54;

// x = quarter * pi/2 + high + low, |high + low| a little over pi/4 at most; quarter's lowest two bits count.
template <class V>
struct Angle {
  V high, low;
  hn::Vec<hn::RebindToUnsigned<hn::DFromV<V>>> quarter;
};

// The lanes with |x| >= bound, one by one. Kept out of line: almost never needed.
template <class V>
HWY_NOINLINE void reduce_large(V x, double bound, Angle<V>& a) {
  const hn::DFromV<V> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  constexpr size_t kLanes = hn::MaxLanes(d);
  alignas(64) double values[kLanes], high[kLanes], low[kLanes];
  alignas(64) uint64_t quarter[kLanes];
  hn::Store(x, d, values);
  hn::Store(a.high, d, high);
  hn::Store(a.low, d, low);
  hn::Store(a.quarter, du, quarter);
  for (size_t i = 0; i < kLanes; ++i) {
    if (!(std::abs(values[i]) >= bound) || std::isinf(values[i])) continue;
    const cpu::ReducedAngle r = cpu::reduce_angle(values[i]);
    high[i] = r.high;
    low[i] = r.low;
    quarter[i] = static_cast<uint64_t>(r.quarter);
  }
  a = {hn::Load(d, high), hn::Load(d, low), hn::Load(du, quarter)};
}

// Cody and Waite's reduction with fused multiply-adds. For doubles in three words, 33 + 53 + 53 bits of pi / 2, with
// the rounding of the difference kept; a float is nowhere so near a multiple of pi / 2 that 106 bits would not do.
template <For kFor, class V>
HWY_INLINE Angle<V> reduce(V x) {
  const hn::DFromV<V> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  // Up to here the first product is exact (f64: of 20 + 33 bits) or near enough.
  constexpr double kBound = kFor == For::f32 ? 0x1p39 : 0x1p20;
  const V round = hn::Set(d, MathFacts<double>::kRound);
  const V planted = hn::MulAdd(x, hn::Set(d, 0.63661977236758134308), round);
  const V n = hn::Sub(planted, round);
  Angle<V> a;
  a.quarter = hn::BitCast(du, planted);
  if constexpr (kFor == For::f32) {
    a.high = hn::NegMulAdd(n, hn::Set(d, kHalfPiLow), hn::NegMulAdd(n, hn::Set(d, kHalfPi), x));
    a.low = hn::Zero(d);
  } else {
    const V middle = hn::Set(d, 0x1.0b4611a626331p-34), last = hn::Set(d, 0x1.1701b839a2520p-88);
    const V first = hn::NegMulAdd(n, hn::Set(d, 0x1.921fb544p+0), x);  // exact
    const V product = hn::Mul(n, middle), product_low = hn::MulSub(n, middle, product);
    const V sum = hn::Sub(first, product);
    const V back = hn::Sub(sum, first);  // Knuth's exact difference
    const V sum_low = hn::Sub(hn::Sub(first, hn::Sub(sum, back)), hn::Add(product, back));
    const V rest = hn::NegMulAdd(n, last, hn::Sub(sum_low, product_low));
    a.high = hn::Add(sum, rest);
    a.low = hn::Add(hn::Sub(sum, a.high), rest);
  }
  const auto large = hn::Ge(hn::Abs(x), hn::Set(d, kBound));
  if (HWY_UNLIKELY(!hn::AllFalse(d, large))) reduce_large(x, kBound, a);
  return a;
}

// On |high + low| <= pi/4.
template <class V>
HWY_INLINE V sin_near(const Angle<V>& a) {
  const hn::DFromV<V> d;
  const V x = a.high, z = hn::Mul(x, x), cube = hn::Mul(z, x);
  const V sixth = hn::Set(d, kSin[0]);
  const V rest = hn::MulAdd(z, polynomial({kSin[1], kSin[2], kSin[3], kSin[4], kSin[5]}, z), sixth);
  // x + (x^3 P + low cos(x)), cos(x) being 1 - x^2 / 2 here
  const V low = hn::NegMulAdd(hn::Mul(hn::Set(d, 0.5), z), a.low, a.low);
  return hn::Add(x, hn::MulAdd(cube, rest, low));
}
template <class V>
HWY_INLINE V cos_near(const Angle<V>& a) {
  const hn::DFromV<V> d;
  const V x = a.high, z = hn::Mul(x, x), one = hn::Set(d, 1.0);
  const V half = hn::Mul(hn::Set(d, 0.5), z), most = hn::Sub(one, half);
  const V lost = hn::Sub(hn::Sub(one, most), half);
  const V rest = hn::NegMulAdd(x, a.low, hn::Mul(hn::Mul(z, z), polynomial(kCos, z)));
  return hn::Add(most, hn::Add(lost, rest));
}

// A double without a lane's sign bit or with it flipped where bit `kBit` of the quarter is set.
template <int kBit, class V, class Q>
HWY_INLINE V flip_if(Q quarter, V v) {
  const hn::DFromV<V> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  const auto sign = hn::And(hn::ShiftLeft<63 - kBit>(quarter), hn::Set(du, uint64_t{1} << 63));
  return hn::Xor(v, hn::BitCast(d, sign));
}
template <class V, class Q>
HWY_INLINE auto is_odd(Q quarter, V) {
  const hn::DFromV<V> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  return hn::RebindMask(d, hn::Ne(hn::And(quarter, hn::Set(du, uint64_t{1})), hn::Zero(du)));
}

template <For kFor, class V>
HWY_NOINLINE V sin_of_double(V x) {
  const hn::DFromV<V> d;
  const Angle<V> a = reduce<kFor>(x);
  const V y = flip_if<1>(a.quarter, hn::IfThenElse(is_odd(a.quarter, x), cos_near(a), sin_near(a)));
  return hn::IfThenElse(hn::Lt(hn::Abs(x), hn::Set(d, 0x1p-28)), x, y);  // also -0
}
template <For kFor, class V>
HWY_NOINLINE V cos_of_double(V x) {
  const hn::RebindToUnsigned<hn::DFromV<V>> du;
  const Angle<V> a = reduce<kFor>(x);
  const V y = hn::IfThenElse(is_odd(a.quarter, x), sin_near(a), cos_near(a));
  return flip_if<1>(hn::Add(a.quarter, hn::Set(du, uint64_t{1})), y);
}
template <For kFor, class V>
HWY_NOINLINE V tan_of_double(V x) {
  const hn::DFromV<V> d;
  const Angle<V> a = reduce<kFor>(x);
  const V s = sin_near(a), c = cos_near(a);
  const auto odd = is_odd(a.quarter, x);
  const V y = flip_if<0>(a.quarter, hn::Div(hn::IfThenElse(odd, c, s), hn::IfThenElse(odd, s, c)));
  return hn::IfThenElse(hn::Lt(hn::Abs(x), hn::Set(d, 0x1p-28)), x, y);
}

// For |x| > 1/2 by way of the square root s of z = (1 - |x|) / 2, s + s_low to twice the bits.
template <class V>
struct InverseSine {
  V argument, series, low;  // asin(argument) = argument + series; s_low
  hn::Mask<hn::DFromV<V>> large;
};
template <class V>
HWY_INLINE InverseSine<V> inverse_sine(V x) {
  const hn::DFromV<V> d;
  const V half = hn::Set(d, 0.5), magnitude = hn::Abs(x);
  const auto large = hn::Gt(magnitude, half);
  const V z = hn::IfThenElse(large, hn::NegMulAdd(half, magnitude, half), hn::Mul(x, x));
  const V s = hn::IfThenElse(large, hn::Sqrt(z), magnitude);
  const V low = hn::Div(hn::NegMulAdd(s, s, z), hn::Add(hn::Add(s, s), hn::Set(d, MathFacts<double>::kNormal)));
  const V quotient = hn::Div(polynomial(kAsinP, z), polynomial(kAsinQ, z));
  return {s, hn::Mul(s, quotient), hn::IfThenElseZero(large, low), large};
}
// whole - 2 (s + s_low + series), whole = high + low
template <class V>
HWY_INLINE V less_twice(double high, double low, const InverseSine<V>& a) {
  const hn::DFromV<V> d;
  const V two = hn::Set(d, 2.0), whole = hn::Set(d, high);
  const V most = hn::NegMulAdd(two, a.argument, whole);
  const V lost = hn::NegMulAdd(two, a.argument, hn::Sub(whole, most));
  const V rest = hn::NegMulAdd(two, hn::Add(a.series, a.low), hn::Set(d, low));
  return hn::Add(most, hn::Add(lost, rest));
}

template <class V>
HWY_NOINLINE V asin_of_double(V x) {
  const InverseSine<V> a = inverse_sine(x);
  const V small = hn::Add(a.argument, a.series);
  return hn::CopySign(hn::IfThenElse(a.large, less_twice(kHalfPi, kHalfPiLow, a), small), x);
}
template <class V>
HWY_NOINLINE V acos_of_double(V x) {
  const hn::DFromV<V> d;
  const InverseSine<V> a = inverse_sine(x);
  const V middle = hn::Sub(hn::Set(d, kHalfPi), hn::Sub(x, hn::Sub(hn::Set(d, kHalfPiLow), hn::CopySign(a.series, x))));
  const V positive = hn::Mul(hn::Set(d, 2.0), hn::Add(a.argument, hn::Add(a.series, a.low)));
  const V negative = less_twice(2 * kHalfPi, 2 * kHalfPiLow, a);
  return hn::IfThenElse(a.large, hn::IfThenElse(hn::Lt(x, hn::Zero(d)), negative, positive), middle);
}

// atan(x) - y for x >= 0 is returned, y being the part that is known: the arctangent of the point (0, 1/2, 1, 3/2,
// infinity) that x is near; `low` is what y lacks.
template <class V>
HWY_INLINE V atan_positive(V x) {
  const hn::DFromV<V> d;
  const auto set = [&](double v) HWY_ATTR { return hn::Set(d, v); };
  // (x - p) / (1 + x p) for the point p, multiplied out for p = 1/2.
  V above = x, below = set(1), y = hn::Zero(d), low = y;
  const auto choose = [&](double from, V a, V b, double high, double rest) HWY_ATTR {
    const auto here = hn::Ge(x, set(from));
    above = hn::IfThenElse(here, a, above);
    below = hn::IfThenElse(here, b, below);
    y = hn::IfThenElse(here, set(high), y);
    low = hn::IfThenElse(here, set(rest), low);
  };
  choose(0.4375, hn::Sub(hn::Add(x, x), set(1)), hn::Add(x, set(2)), 4.63647609000806093515e-01,
         2.26987774529616870924e-17);
  choose(0.6875, hn::Sub(x, set(1)), hn::Add(x, set(1)), kHalfPi / 2, kHalfPiLow / 2);
  choose(1.1875, hn::Sub(x, set(1.5)), hn::MulAdd(x, set(1.5), set(1)), 9.82793723247329054082e-01,
         1.39033110312309984516e-17);
  choose(2.4375, set(-1), x, kHalfPi, kHalfPiLow);
  const V t = hn::Div(above, below), z = hn::Mul(t, t);
  const V rest = hn::NegMulAdd(hn::Mul(t, z), polynomial(kAtan, z), low);
  return hn::Add(y, hn::Add(t, rest));
}
template <class V>
HWY_NOINLINE V atan_of_double(V x) {
  return hn::CopySign(atan_positive(hn::Abs(x)), x);
}
// The angle of the point (z, x): x is the ordinate, as in C.
template <class V>
HWY_NOINLINE V atan2_of_double(V x, V z) {
  const hn::DFromV<V> d;
  const V ordinate = hn::Abs(x), abscissa = hn::Abs(z), zero = hn::Zero(d);
  V ratio = hn::Div(ordinate, abscissa);
  ratio = hn::IfThenElse(hn::Eq(ordinate, abscissa), hn::Set(d, 1.0), ratio);  // infinities too
  ratio = hn::IfThenElse(hn::Eq(ordinate, zero), zero, ratio);
  const V angle = atan_positive(ratio);
  const V left = hn::Sub(hn::Set(d, 2 * kHalfPi), hn::Sub(angle, hn::Set(d, 2 * kHalfPiLow)));
  const V y = hn::CopySign(hn::IfNegativeThenElse(z, left, angle), x);
  return hn::IfThenElse(hn::Or(hn::IsNaN(x), hn::IsNaN(z)), hn::Add(x, z), y);
}

// fn over vectors of floats by way of halves of doubles.
template <class Fn, class... V>
HWY_INLINE auto in_double(const Fn& fn, V... x) {
  const hn::ScalableTag<float> d;
  const hn::Half<decltype(d)> dh;
  const hn::Repartition<double, decltype(d)> dd;
  const auto low = hn::DemoteTo(dh, fn(hn::PromoteTo(dd, hn::LowerHalf(dh, x))...));
  return hn::Combine(d, hn::DemoteTo(dh, fn(hn::PromoteTo(dd, hn::UpperHalf(dh, x))...)), low);
}

// sin_of<T>(x) ...: the double's function, or that of a float's halves.
#define OUTRACE_PERIODIC(name)                                                                  \
  template <class T, class V>                                                                   \
  HWY_INLINE V name##_of(V x) {                                                                 \
    if constexpr (std::is_same_v<T, double>)                                                    \
      return name##_of_double<For::f64>(x);                                                     \
    else                                                                                        \
      return in_double([](auto half) HWY_ATTR { return name##_of_double<For::f32>(half); }, x); \
  }
#define OUTRACE_INVERSE(name)                                                                  \
  template <class T, class... V>                                                               \
  HWY_INLINE auto name##_of(V... x) {                                                          \
    if constexpr (std::is_same_v<T, double>)                                                   \
      return name##_of_double(x...);                                                           \
    else                                                                                       \
      return in_double([](auto... half) HWY_ATTR { return name##_of_double(half...); }, x...); \
  }
OUTRACE_PERIODIC(sin)
OUTRACE_PERIODIC(cos)
OUTRACE_PERIODIC(tan)
OUTRACE_INVERSE(asin)
OUTRACE_INVERSE(acos)
OUTRACE_INVERSE(atan)
OUTRACE_INVERSE(atan2)
#undef OUTRACE_PERIODIC
#undef OUTRACE_INVERSE

}  // namespace
}  // namespace outrace::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
