// pow and fmod of a vector. The same bits on every instruction set, as in simd_math.h. Included once a target from
// *_simd.cpp files, hence no #pragma once but Highway's toggled guard.
#if defined(OUTRACE_BACKEND_CPU_SIMD_POW_H) == defined(HWY_TARGET_TOGGLE)
#ifdef OUTRACE_BACKEND_CPU_SIMD_POW_H
#undef OUTRACE_BACKEND_CPU_SIMD_POW_H
#else
#define OUTRACE_BACKEND_CPU_SIMD_POW_H
#endif

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "hwy/highway.h"
#include "outrace/backend/cpu/simd_math.h"
#include "outrace/backend/cpu/simd_trig.h"

HWY_BEFORE_NAMESPACE();
namespace outrace::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// An unevaluated sum of two numbers, the second below the last place of the first.
template <class V>
struct Pair {
  V high, low;
};
// For |a| >= |b| or a = 0 (Dekker).
template <class V>
HWY_INLINE Pair<V> sum_of(V a, V b) {
  const V s = hn::Add(a, b);
  return {s, hn::Add(hn::Sub(a, s), b)};
}
template <class V>
HWY_INLINE Pair<V> product_of(Pair<V> a, Pair<V> b) {
  const V p = hn::Mul(a.high, b.high);
  return {p, hn::MulAdd(a.high, b.low, hn::MulAdd(a.low, b.high, hn::MulSub(a.high, b.high, p)))};
}

// log x to about 2^-65, for positive finite x: with s = f / (2 + f), 2s (1 + s^2 (1/3 + s^2 (1/5 + ...))), of which the
// outer terms are pairs.
template <class V>
HWY_INLINE Pair<V> log_pair(V x) {
  const hn::DFromV<V> d;
  constexpr double kRest[] = {1 / 5.,  1 / 7.,  1 / 9.,  1 / 11., 1 / 13., 1 / 15.,
                              1 / 17., 1 / 19., 1 / 21., 1 / 23., 1 / 25., 1 / 27.};
  V k, f;
  split_log<double>(x, k, f);
  const Pair<V> below = sum_of(hn::Set(d, 2.0), f);
  Pair<V> s;
  s.high = hn::Div(f, below.high);
  s.low = hn::Div(hn::NegMulAdd(s.high, below.low, hn::NegMulAdd(s.high, below.high, f)), below.high);
  const Pair<V> z = product_of(s, s);
  const V rest = polynomial(kRest, z.high);
  const V fifth = hn::Mul(z.high, rest), fifth_low = hn::MulAdd(z.low, rest, hn::MulSub(z.high, rest, fifth));
  Pair<V> third = sum_of(hn::Set(d, 0x1.5555555555555p-2), fifth);
  third.low = hn::Add(third.low, hn::Add(fifth_low, hn::Set(d, 0x1.5555555555555p-56)));
  const Pair<V> two_s = {hn::Add(s.high, s.high), hn::Add(s.low, s.low)};
  const Pair<V> correction = product_of(two_s, product_of(z, third));
  Pair<V> y = sum_of(two_s.high, correction.high);
  y.low = hn::Add(y.low, hn::Add(correction.low, two_s.low));
  // k ln2, the first word with 42 bits
  Pair<V> all = sum_of(hn::Mul(k, hn::Set(d, 0x1.62e42fefa3800p-1)), y.high);
  all.low = hn::Add(all.low, hn::MulAdd(k, hn::Set(d, 0x1.ef35793c76730p-45), y.low));
  return all;
}

// |x|^z of doubles but for the cases that IEEE 754 names; 0 and infinity as x or z are right.
template <class V>
HWY_NOINLINE V power_of_magnitudes(V x, V z) {
  using F = MathFacts<double>;
  const hn::DFromV<V> d;
  const V infinity = infinity_of<double, V>(), zero = hn::Zero(d), one = hn::Set(d, 1.0);
  Pair<V> l = log_pair(x);
  const auto no_number = hn::Or(hn::Eq(x, zero), hn::Not(hn::Lt(x, infinity)));
  l.high = hn::IfThenElse(hn::Eq(x, zero), hn::Neg(infinity), hn::IfThenElse(hn::Lt(x, infinity), l.high, x));
  l.low = hn::IfThenZeroElse(no_number, l.low);
  const V exponent = hn::Mul(z, l.high);
  const V clipped = limit<double>(exponent, F::kExpLow, F::kExpHigh);
  const V exponent_low =
      hn::IfThenElseZero(hn::Eq(clipped, exponent), hn::MulAdd(z, l.low, hn::MulSub(z, l.high, exponent)));
  // e^(clipped + exponent_low)
  const V n = nearest<double>(hn::Mul(clipped, hn::Set(d, 1.44269504088896340736)));
  const V most = hn::NegMulAdd(n, hn::Set(d, F::kLn2High), clipped);
  const Pair<V> r = sum_of(most, hn::NegMulAdd(n, hn::Set(d, F::kLn2Low), exponent_low));
  return scale_by<double>(hn::Add(one, hn::Add(r.high, hn::Add(exp_rest<double>(r.high), r.low))), n);
}

template <class T, class V>
HWY_NOINLINE V pow_of(V x, V z) {
  const hn::ScalableTag<T> d;
  const V one = hn::Set(d, T(1)), zero = hn::Zero(d), half = hn::Set(d, T(0.5));
  const V magnitude = hn::Abs(x);
  V y;
  if constexpr (std::is_same_v<T, double>)
    y = power_of_magnitudes(magnitude, z);
  else  // y log x rounded to a double is near enough
    y = in_double([](auto a, auto b) HWY_ATTR { return exp_of<double>(hn::Mul(b, log_of<double>(a))); }, magnitude, z);
  // (+-1)^(+-infinity) = 1
  y = hn::IfThenElse(hn::And(hn::Eq(magnitude, one), hn::Eq(z, z)), one, y);
  // Of a negative number: the sign of an odd power, NaN for a fraction.
  const V half_z = hn::Mul(z, half);
  const auto whole = hn::Eq(hn::Trunc(z), z), even = hn::Eq(hn::Trunc(half_z), half_z);
  const V odd = hn::CopySign(y, x);
  y = hn::IfThenElse(whole, hn::IfThenElse(even, y, odd), y);
  const auto finite_negative = hn::And(hn::Lt(x, zero), hn::Lt(magnitude, infinity_of<T, V>()));
  y = hn::IfThenElse(hn::AndNot(whole, finite_negative), hn::Set(d, static_cast<T>(__builtin_nan(""))), y);
  return hn::IfThenElse(hn::Or(hn::Eq(z, zero), hn::Eq(x, one)), one, y);  // even of NaN
}

// Lanes whose quotient has too many digits or is no number, by the C library; its fmod is exact.
template <class T, class V>
HWY_NOINLINE V fmod_one_by_one(V x, V z, V y) {
  const hn::ScalableTag<T> d;
  constexpr size_t kLanes = hn::MaxLanes(d);
  alignas(64) T a[kLanes], b[kLanes], out[kLanes];
  hn::Store(x, d, a);
  hn::Store(z, d, b);
  hn::Store(y, d, out);
  for (size_t i = 0; i < kLanes; ++i)
    if (!(std::abs(a[i] / b[i]) < MathFacts<T>::kRound) || std::isinf(b[i])) out[i] = std::fmod(a[i], b[i]);
  return hn::Load(d, out);
}

// x - trunc(x / z) z: exact, as the quotient, rounded, is at most one too large, and remainders are whole multiples of
// the last place of z or x.
template <class T, class V>
HWY_INLINE V fmod_of(V x, V z) {
  const hn::ScalableTag<T> d;
  const V a = hn::Abs(x), b = hn::Abs(z);
  const V quotient = hn::Div(a, b);
  V y = hn::NegMulAdd(hn::Trunc(quotient), b, a);
  y = hn::IfThenElse(hn::Lt(y, hn::Zero(d)), hn::Add(y, b), y);
  y = hn::CopySign(y, x);
  // kRound is 1.5 times the first number past which all are whole; below it a quotient's error is under 1.
  const auto easy = hn::And(hn::Lt(quotient, hn::Set(d, MathFacts<T>::kRound)), hn::Lt(b, infinity_of<T, V>()));
  if (HWY_UNLIKELY(!hn::AllTrue(d, easy))) return fmod_one_by_one<T>(x, z, y);
  return y;
}

}  // namespace
}  // namespace outrace::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
