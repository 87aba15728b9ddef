// What the `value` texts of ops.def are compiled over: a vector of floats with operators, and a single int64_t with the
// same face. Included once a target from *_simd.cpp files (after Highway), hence no #pragma once but Highway's toggled
// guard.
#if defined(OUTRACE_BACKEND_CPU_SIMD_VALUE_H) == defined(HWY_TARGET_TOGGLE)
#ifdef OUTRACE_BACKEND_CPU_SIMD_VALUE_H
#undef OUTRACE_BACKEND_CPU_SIMD_VALUE_H
#else
#define OUTRACE_BACKEND_CPU_SIMD_VALUE_H
#endif

#include <cstdint>

#include "hwy/highway.h"
#include "outrace/backend/cpu/simd_erf.h"
#include "outrace/backend/cpu/simd_math.h"
#include "outrace/backend/cpu/simd_pow.h"
#include "outrace/backend/cpu/simd_trig.h"

HWY_BEFORE_NAMESPACE();
namespace outrace::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// A vector of T = float or double. Every operation is the IEEE one, lane by lane; nothing is contracted.
template <class T>
class Simd {
 public:
  using Tag = hn::ScalableTag<T>;
  using Vector = hn::Vec<Tag>;
  struct Truth {
    hn::Mask<Tag> m;
    friend HWY_INLINE Truth operator&(Truth x, Truth z) { return {hn::And(x.m, z.m)}; }
    friend HWY_INLINE Truth operator|(Truth x, Truth z) { return {hn::Or(x.m, z.m)}; }
    friend HWY_INLINE Truth operator^(Truth x, Truth z) { return {hn::Xor(x.m, z.m)}; }
  };
  static constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(Tag()));

  Vector v;

  Simd() = default;
  HWY_INLINE Simd(Vector raw) : v(raw) {}
  HWY_INLINE Simd(double literal) : v(hn::Set(Tag(), static_cast<T>(literal))) {}

  static HWY_INLINE Simd load(const T* p) { return hn::LoadU(Tag(), p); }
  static HWY_INLINE Simd splat(const T* p) { return hn::Set(Tag(), *p); }
  HWY_INLINE void store(T* p) const { hn::StoreU(v, Tag(), p); }
  // The first 0 < n < kLanes only; memory behind them is neither read nor written.
  static HWY_INLINE Simd load_first(const T* p, int64_t n) {
    return hn::MaskedLoad(hn::FirstN(Tag(), static_cast<size_t>(n)), Tag(), p);
  }
  HWY_INLINE void store_first(T* p, int64_t n) const {
    hn::BlendedStore(v, hn::FirstN(Tag(), static_cast<size_t>(n)), Tag(), p);
  }

  friend HWY_INLINE Simd operator-(Simd x) { return hn::Neg(x.v); }
  friend HWY_INLINE Simd operator+(Simd x, Simd z) { return hn::Add(x.v, z.v); }
  friend HWY_INLINE Simd operator-(Simd x, Simd z) { return hn::Sub(x.v, z.v); }
  friend HWY_INLINE Simd operator*(Simd x, Simd z) { return hn::Mul(x.v, z.v); }
  friend HWY_INLINE Simd operator/(Simd x, Simd z) { return hn::Div(x.v, z.v); }
  friend HWY_INLINE Truth operator<(Simd x, Simd z) { return {hn::Lt(x.v, z.v)}; }
  friend HWY_INLINE Truth operator<=(Simd x, Simd z) { return {hn::Le(x.v, z.v)}; }
  friend HWY_INLINE Truth operator>(Simd x, Simd z) { return {hn::Gt(x.v, z.v)}; }
  friend HWY_INLINE Truth operator>=(Simd x, Simd z) { return {hn::Ge(x.v, z.v)}; }
  friend HWY_INLINE Truth operator==(Simd x, Simd z) { return {hn::Eq(x.v, z.v)}; }
  // Not hn::Ne, which on x86 says that a NaN equals everything.
  friend HWY_INLINE Truth operator!=(Simd x, Simd z) { return {hn::Not(hn::Eq(x.v, z.v))}; }
  friend HWY_INLINE Simd select(Truth c, Simd x, Simd z) { return hn::IfThenElse(c.m, x.v, z.v); }
  friend HWY_INLINE Simd abs(Simd x) { return hn::Abs(x.v); }
  friend HWY_INLINE Simd sqrt(Simd x) { return hn::Sqrt(x.v); }
  // A NaN wins, and of two equal numbers (0 and -0) the second, on every instruction set.
  friend HWY_INLINE Simd max(Simd x, Simd z) { return select(Truth{hn::IsNaN(x.v)}, x, select(x > z, x, z)); }
  friend HWY_INLINE Simd min(Simd x, Simd z) { return select(Truth{hn::IsNaN(x.v)}, x, select(x < z, x, z)); }
  friend HWY_INLINE Simd floor(Simd x) { return hn::Floor(x.v); }
  friend HWY_INLINE Simd ceil(Simd x) { return hn::Ceil(x.v); }
  friend HWY_INLINE Simd round(Simd x) { return hn::Round(x.v); }  // halves to even
  friend HWY_INLINE Simd trunc(Simd x) { return hn::Trunc(x.v); }
  friend HWY_INLINE Simd copysign(Simd x, Simd z) { return hn::CopySign(x.v, z.v); }
  friend HWY_INLINE Simd exp(Simd x) { return exp_of<T>(x.v); }
  friend HWY_INLINE Simd exp2(Simd x) { return exp2_of<T>(x.v); }
  friend HWY_INLINE Simd expm1(Simd x) { return expm1_of<T>(x.v); }
  friend HWY_INLINE Simd sinh(Simd x) { return sinh_of<T>(x.v); }
  friend HWY_INLINE Simd cosh(Simd x) { return cosh_of<T>(x.v); }
  friend HWY_INLINE Simd tanh(Simd x) { return tanh_of<T>(x.v); }
  friend HWY_INLINE Simd log(Simd x) { return log_of<T>(x.v); }
  friend HWY_INLINE Simd log2(Simd x) { return log2_of<T>(x.v); }
  friend HWY_INLINE Simd log1p(Simd x) { return log1p_of<T>(x.v); }
  friend HWY_INLINE Simd sin(Simd x) { return sin_of<T>(x.v); }
  friend HWY_INLINE Simd cos(Simd x) { return cos_of<T>(x.v); }
  friend HWY_INLINE Simd tan(Simd x) { return tan_of<T>(x.v); }
  friend HWY_INLINE Simd asin(Simd x) { return asin_of<T>(x.v); }
  friend HWY_INLINE Simd acos(Simd x) { return acos_of<T>(x.v); }
  friend HWY_INLINE Simd atan(Simd x) { return atan_of<T>(x.v); }
  friend HWY_INLINE Simd erf(Simd x) { return erf_of<T>(x.v); }
  friend HWY_INLINE Simd erfc(Simd x) { return erfc_of<T>(x.v); }
  friend HWY_INLINE Simd atan2(Simd x, Simd z) { return atan2_of<T>(x.v, z.v); }
  friend HWY_INLINE Simd pow(Simd x, Simd z) { return pow_of<T>(x.v, z.v); }
  friend HWY_INLINE Simd fmod(Simd x, Simd z) { return fmod_of<T>(x.v, z.v); }
};

// One int64_t. Arithmetic wraps around, as PyTorch's integers do.
class Integer {
 public:
  static constexpr int64_t kLanes = 1;

  int64_t v;

  Integer() = default;
  HWY_INLINE Integer(int64_t value) : v(value) {}
  HWY_INLINE Integer(int literal) : v(literal) {}

  static HWY_INLINE Integer load(const int64_t* p) { return *p; }
  static HWY_INLINE Integer splat(const int64_t* p) { return *p; }
  HWY_INLINE void store(int64_t* p) const { *p = v; }
  // With one lane there is never a part of a vector; these keep the loops common.
  static HWY_INLINE Integer load_first(const int64_t* p, int64_t) { return *p; }
  HWY_INLINE void store_first(int64_t* p, int64_t) const { *p = v; }

  friend HWY_INLINE Integer operator-(Integer x) { return wrap(0 - x.bits()); }
  friend HWY_INLINE Integer operator+(Integer x, Integer z) { return wrap(x.bits() + z.bits()); }
  friend HWY_INLINE Integer operator-(Integer x, Integer z) { return wrap(x.bits() - z.bits()); }
  friend HWY_INLINE Integer operator*(Integer x, Integer z) { return wrap(x.bits() * z.bits()); }
  friend HWY_INLINE bool operator<(Integer x, Integer z) { return x.v < z.v; }
  friend HWY_INLINE bool operator<=(Integer x, Integer z) { return x.v <= z.v; }
  friend HWY_INLINE bool operator>(Integer x, Integer z) { return x.v > z.v; }
  friend HWY_INLINE bool operator>=(Integer x, Integer z) { return x.v >= z.v; }
  friend HWY_INLINE bool operator==(Integer x, Integer z) { return x.v == z.v; }
  friend HWY_INLINE bool operator!=(Integer x, Integer z) { return x.v != z.v; }
  friend HWY_INLINE Integer select(bool c, Integer x, Integer z) { return c ? x.v : z.v; }
  friend HWY_INLINE Integer abs(Integer x) { return x.v < 0 ? wrap(0 - x.bits()) : x; }
  friend HWY_INLINE Integer floor(Integer x) { return x; }
  friend HWY_INLINE Integer ceil(Integer x) { return x; }
  friend HWY_INLINE Integer round(Integer x) { return x; }
  friend HWY_INLINE Integer trunc(Integer x) { return x; }
  // 0 where z is 0; the quotient by -1 can overflow and its remainder is 0.
  friend HWY_INLINE Integer fmod(Integer x, Integer z) { return z.v == 0 || z.v == -1 ? 0 : x.v % z.v; }
  friend HWY_INLINE Integer max(Integer x, Integer z) { return x.v > z.v ? x.v : z.v; }
  friend HWY_INLINE Integer min(Integer x, Integer z) { return x.v < z.v ? x.v : z.v; }

 private:
  HWY_INLINE uint64_t bits() const { return static_cast<uint64_t>(v); }
  static HWY_INLINE Integer wrap(uint64_t bits) { return static_cast<int64_t>(bits); }
};

// The value type of a compute type: float, double or int64_t.
template <class T>
struct ValueOf {
  using Type = Simd<T>;
};
template <>
struct ValueOf<int64_t> {
  using Type = Integer;
};
template <class T>
using Value = typename ValueOf<T>::Type;

}  // namespace
}  // namespace outrace::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
