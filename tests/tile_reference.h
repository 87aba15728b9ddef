// Tile programs done one element at a time in plain C++: what the tile kernels are compared with, bit for bit.
// Elementary functions come from the caller; their accuracy is a matter of its own.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "outrace/core/dtype.h"
#include "outrace/graph/plan.h"

namespace outrace::test {

// The functions of vectors that are more than a few IEEE operations; each has a row of its own name in ops.def.
// clang-format off
#define OUTRACE_ELEMENTARY(X)                                                                                  \
  X(exp) X(exp2) X(expm1) X(sinh) X(cosh) X(tanh) X(log) X(log2) X(log1p) X(sin) X(cos) X(tan) X(asin) X(acos) \
  X(atan) X(erf) X(erfc)
#define OUTRACE_ELEMENTARY_OF_TWO(X) X(pow) X(atan2)
// clang-format on

// A number over which the texts of ops.def compile. Elementary functions are a hook, so that T = float can use the
// kernels' own.
template <class T>
struct Plain {
  T v;
  Plain() = default;
  Plain(T value) : v(value) {}
  template <class Number>
  requires(std::is_arithmetic_v<Number> && !std::is_same_v<Number, T>) Plain(Number literal)
      : v(static_cast<T>(literal)) {}

  static inline T (*elementary)(Ew op, T x, T z) = nullptr;

  // Integers wrap around.
  using Bits = std::conditional_t<std::is_same_v<T, int64_t>, uint64_t, T>;
  Bits bits() const { return static_cast<Bits>(v); }
  static Plain of(Bits b) { return Plain(static_cast<T>(b)); }
  friend Plain operator-(Plain x) {
    if constexpr (std::is_integral_v<T>) return of(0 - x.bits());
    return Plain(-x.v);
  }
  friend Plain operator+(Plain x, Plain z) { return of(x.bits() + z.bits()); }
  friend Plain operator-(Plain x, Plain z) { return of(x.bits() - z.bits()); }
  friend Plain operator*(Plain x, Plain z) { return of(x.bits() * z.bits()); }
  friend Plain operator/(Plain x, Plain z) { return Plain(x.v / z.v); }
  friend bool operator<(Plain x, Plain z) { return x.v < z.v; }
  friend bool operator<=(Plain x, Plain z) { return x.v <= z.v; }
  friend bool operator>(Plain x, Plain z) { return x.v > z.v; }
  friend bool operator>=(Plain x, Plain z) { return x.v >= z.v; }
  friend bool operator==(Plain x, Plain z) { return x.v == z.v; }
  friend bool operator!=(Plain x, Plain z) { return x.v != z.v; }
  friend Plain select(bool c, Plain x, Plain z) { return c ? x : z; }
  friend Plain abs(Plain x) {
    if constexpr (std::is_integral_v<T>)
      return x.v < 0 ? -x : x;
    else
      return Plain(std::abs(x.v));
  }
  friend Plain sqrt(Plain x) { return Plain(std::sqrt(x.v)); }
#define FUNCTION(name) \
  friend Plain name(Plain x) { return Plain(elementary(Ew::name, x.v, x.v)); }
  OUTRACE_ELEMENTARY(FUNCTION)
#undef FUNCTION
#define FUNCTION(name) \
  friend Plain name(Plain x, Plain z) { return Plain(elementary(Ew::name, x.v, z.v)); }
  OUTRACE_ELEMENTARY_OF_TWO(FUNCTION)
#undef FUNCTION
  friend Plain floor(Plain x) {
    return x.whole([](auto v) { return std::floor(v); });
  }
  friend Plain ceil(Plain x) {
    return x.whole([](auto v) { return std::ceil(v); });
  }
  friend Plain round(Plain x) {
    return x.whole([](auto v) { return std::nearbyint(v); });
  }
  friend Plain trunc(Plain x) {
    return x.whole([](auto v) { return std::trunc(v); });
  }
  friend Plain fmod(Plain x, Plain z) {
    if constexpr (std::is_integral_v<T>)
      return z.v == 0 || z.v == -1 ? 0 : x.v % z.v;
    else
      return Plain(std::fmod(x.v, z.v));
  }
  friend Plain copysign(Plain x, Plain z) { return Plain(std::copysign(x.v, z.v)); }
  // NaN wins; of two equal numbers the second.
  friend Plain max(Plain x, Plain z) { return x.v != x.v ? x : x.v > z.v ? x : z; }
  friend Plain min(Plain x, Plain z) { return x.v != x.v ? x : x.v < z.v ? x : z; }

 private:
  template <class Fn>
  Plain whole(const Fn& fn) const {
    if constexpr (std::is_integral_v<T>)
      return *this;
    else
      return Plain(fn(v));
  }
};

template <class T>
T reference_row(Ew op, [[maybe_unused]] Plain<T> x, [[maybe_unused]] Plain<T> z, [[maybe_unused]] Plain<T> w) {
  switch (op) {
#define UNARY(name, value, gx, types, autocast, low, high)                             \
  case Ew::name:                                                                       \
    if constexpr (!(detail::types && std::is_integral_v<T>)) return Plain<T>(value).v; \
    break;
#define BINARY(name, value, gx, gz, types, autocast, low, high)                        \
  case Ew::name:                                                                       \
    if constexpr (!(detail::types && std::is_integral_v<T>)) return Plain<T>(value).v; \
    break;
#define COMPARE(name, value)   \
  case Ew::name: {             \
    return T((value) ? 1 : 0); \
  }
#define SELECT(name, value, gz, gw, low, high) \
  case Ew::name: {                             \
    return Plain<T>(value).v;                  \
  }
#include "outrace/ops/ops.def"
#undef UNARY
#undef BINARY
#undef COMPARE
#undef SELECT
  }
  return T(0);
}

template <class Stored, class T>
Stored reference_convert(T x) {
  if constexpr (std::is_same_v<Stored, bool>)
    return x != T(0);
  else if constexpr (std::is_same_v<Stored, bf16> || std::is_same_v<Stored, f16>)
    return Stored(static_cast<float>(x));
  else if constexpr (std::is_integral_v<Stored> && std::is_floating_point_v<T>) {
    if (x != x) return 0;
    const long double low = std::numeric_limits<Stored>::min(), high = std::numeric_limits<Stored>::max();
    return static_cast<Stored>(std::clamp(std::trunc(static_cast<long double>(x)), low, high));
  } else {
    return static_cast<Stored>(x);
  }
}

template <class T, class Stored>
T reference_load(const char* p) {
  Stored s;
  std::memcpy(&s, p, sizeof s);
  if constexpr (std::is_same_v<Stored, bf16> || std::is_same_v<Stored, f16>)
    return reference_convert<T>(static_cast<float>(s));
  else if constexpr (std::is_same_v<Stored, bool>)
    return s ? T(1) : T(0);
  else
    return reference_convert<T>(s);
}

// Where element `index` of the space lies in a view.
inline int64_t element_of(const View& view, const Shape& space, int64_t index) {
  int64_t at = view.offset;
  for (int i = space.rank() - 1; i >= 0; --i) {
    at += index % space[i] * view.strides[i];
    index /= space[i];
  }
  return at;
}

// All registers of one element. producer: its value there.
template <class T>
std::vector<T> reference_registers(const TileProgram& p, const std::vector<const char*>& values,
                                   const ScalarValue* scalars, const T* producer, int64_t index) {
  std::vector<T> reg;
  for (const TileLoad& load : p.loads) {
    switch (load.kind) {
      case TileLoad::Kind::view: {
        const char* at = values[load.view.value] + element_of(load.view, p.space, index) * size_of(load.dtype);
        reg.push_back(visit_dtype(load.dtype, [&]<class Stored>(Stored) { return reference_load<T, Stored>(at); }));
        break;
      }
      case TileLoad::Kind::constant: reg.push_back(static_cast<T>(load.constant)); break;
      case TileLoad::Kind::scalar:
        reg.push_back(is_float(load.dtype) ? reference_convert<T>(scalars[load.scalar].real)
                                           : static_cast<T>(scalars[load.scalar].integer));
        break;
      case TileLoad::Kind::producer: reg.push_back(*producer); break;
    }
  }
  for (const TileInstr& i : p.instrs) {
    const auto at = [&](int r) { return Plain<T>(r < 0 ? T(0) : reg[static_cast<size_t>(r)]); };
    reg.push_back(reference_row<T>(i.op, at(i.x), at(i.z), at(i.w)));
  }
  return reg;
}

// Elements [index, index + length): reads `before`, writes `after`, which begins as a copy of it.
template <class T>
void reference_run(const TileProgram& p, const std::vector<const char*>& before, const std::vector<char*>& after,
                   const ScalarValue* scalars, const T* producer, int64_t index, int64_t length) {
  for (int64_t i = 0; i < length; ++i) {
    const std::vector<T> reg = reference_registers<T>(p, before, scalars, producer ? producer + i : nullptr, index + i);
    for (const TileStore& s : p.stores) {
      char* at = after[s.view.value] + element_of(s.view, p.space, index + i) * size_of(s.dtype);
      visit_dtype(s.dtype, [&]<class Stored>(Stored) {
        const Stored out = reference_convert<Stored>(reg[static_cast<size_t>(s.reg)]);
        std::memcpy(at, &out, sizeof out);
      });
    }
  }
}

// Equal bits; any NaN equals any other.
inline bool same_bits(DType dtype, const char* a, const char* b) {
  return visit_dtype(dtype, [&]<class Stored>(Stored) {
    if (std::memcmp(a, b, sizeof(Stored)) == 0) return true;
    if constexpr (std::is_integral_v<Stored>)
      return false;
    else
      return std::isnan(reference_load<double, Stored>(a)) && std::isnan(reference_load<double, Stored>(b));
  });
}

}  // namespace outrace::test
