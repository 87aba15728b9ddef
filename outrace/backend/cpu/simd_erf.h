// erf and erfc of a vector. The same bits on every instruction set, as in simd_math.h. Included once a target from
// *_simd.cpp files, hence no #pragma once but Highway's toggled guard.
#if defined(OUTRACE_BACKEND_CPU_SIMD_ERF_H) == defined(HWY_TARGET_TOGGLE)
#ifdef OUTRACE_BACKEND_CPU_SIMD_ERF_H
#undef OUTRACE_BACKEND_CPU_SIMD_ERF_H
#else
#define OUTRACE_BACKEND_CPU_SIMD_ERF_H
#endif

#include "hwy/highway.h"
#include "outrace/backend/cpu/simd_math.h"

HWY_BEFORE_NAMESPACE();
namespace outrace::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Polynomials through the values at Chebyshev's nodes, computed with 60 digits.
template <class T>
struct ErfFacts;
template <>
struct ErfFacts<float> {
  static constexpr float kCenter = 3, kLargest = 10.2f;  // erfc(10.06) is below half the least float
  // erf(x) = x + x P(x^2), |x| <= 1; error 1.3e-9
  static constexpr float kErf[] = {1.2837917e-01f, -3.7612626e-01f, 1.1283594e-01f, -2.6854211e-02f,
                                   5.1890872e-03f, -8.0168643e-04f, 7.875875e-05f};
  // (1 + 2x) e^(x^2) erfc(x), a polynomial of (x - kCenter) / (x + kCenter) for 0 <= x <= kLargest; error 3e-9
  static constexpr float kErfc[] = {1.253008e+00f,   -1.3562115e-01f, -4.756229e-02f,  1.2964661e-01f,
                                    -1.1927248e-01f, 6.829337e-02f,   -2.3791349e-02f, 2.5788452e-03f,
                                    1.9963759e-03f,  -7.9574925e-04f, -2.7639026e-04f};
};
template <>
struct ErfFacts<double> {
  static constexpr double kCenter = 4, kLargest = 27.4;  // erfc(27.23) is below half the least double
  static constexpr double kErf[] = {0.12837916709551256,     -0.37612638903183543,   0.11283791670945006,
                                    -0.02686617064323777,    0.0052239776071164225,  -0.0008548325975389692,
                                    0.00012055294904839707,  -1.492473690741966e-05, 1.6447424703317362e-06,
                                    -1.6208483801871705e-07, 1.3720064546777686e-08, -7.795898827002142e-10};
  // error 1.3e-17
  static constexpr double kErfc[] = {
      1.2329951186255526,     -0.13962111684056286,    0.015379652102621042,    0.06809705425473414,
      -0.1010390660363707,    0.09373283499688893,     -0.06633036581108195,    0.03716751556127147,
      -0.01619773406461013,   0.005031969763652847,    -0.0007577733027442623,  -0.00019925553039734192,
      0.000150622079740619,   -2.4403163176592525e-05, -1.1224365307564075e-05, 5.718043609773559e-06,
      3.0071444837511043e-07, -8.356147219289347e-07,  6.318100986366053e-08,   1.1588542956541465e-07,
      -7.783296115022294e-09, -1.391155394532715e-08,  -1.8947876100626396e-09};
};

// erfc of x >= 0 (M. M. Shepherd and J. G. Laframboise, Mathematics of Computation 36, 1981).
template <class T, class V>
HWY_INLINE V erfc_positive(V x) {
  using F = ErfFacts<T>;
  const hn::ScalableTag<T> d;
  const V one = hn::Set(d, T(1)), center = hn::Set(d, F::kCenter);
  x = hn::Min(hn::Set(d, F::kLargest), x);  // NaN stays
  const V q = hn::Div(hn::Sub(x, center), hn::Add(x, center));
  const V scaled = hn::Div(horner(F::kErfc, q), hn::MulAdd(hn::Set(d, T(2)), x, one));
  // e^(-x^2) with x^2 to twice the bits
  const V square = hn::Mul(x, x), square_low = hn::MulSub(x, x, square);
  V n, r;
  reduce_exp<T>(hn::Neg(square), n, r);
  r = hn::Sub(r, square_low);
  return scale_by<T>(hn::Mul(exp_near_0<T>(r), scaled), n);
}

template <class T, class V>
HWY_INLINE V erf_small(V x) {
  return hn::MulAdd(x, polynomial(ErfFacts<T>::kErf, hn::Mul(x, x)), x);
}

template <class T, class V>
HWY_INLINE V erf_of(V x) {
  const hn::ScalableTag<T> d;
  const V one = hn::Set(d, T(1)), magnitude = hn::Abs(x);
  const V large = hn::CopySign(hn::Sub(one, erfc_positive<T>(magnitude)), x);
  return hn::IfThenElse(hn::Le(magnitude, one), erf_small<T>(x), large);
}

template <class T, class V>
HWY_INLINE V erfc_of(V x) {
  const hn::ScalableTag<T> d;
  const V far = erfc_positive<T>(hn::Abs(x));
  const V large = hn::IfNegativeThenElse(x, hn::Sub(hn::Set(d, T(2)), far), far);
  const V small = hn::Sub(hn::Set(d, T(1)), erf_small<T>(x));
  return hn::IfThenElse(hn::Le(hn::Abs(x), hn::Set(d, T(0.25))), small, large);
}

}  // namespace
}  // namespace outrace::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
