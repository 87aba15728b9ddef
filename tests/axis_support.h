// What the tests of ops along an axis share: numbers with ties and special values, and lines of an array.
#pragma once
#include <cmath>
#include <limits>
#include <vector>

#include "outrace/core/thread.h"
#include "outrace/ops/ops.h"
#include "tests/tile_support.h"

namespace outrace::test {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

struct Threads {
  explicit Threads(int count) { set_num_threads(count); }
  ~Threads() { set_num_threads(before); }
  int before = num_threads();
};

// Small whole numbers, many alike; for floats some NaN, infinities and zeros of both signs if `special`.
inline std::vector<double> tied_numbers(int64_t count, DType dtype, bool special, uint64_t seed) {
  Dice dice{seed};
  std::vector<double> out(static_cast<size_t>(count));
  for (double& v : out) {
    v = static_cast<double>(dice.below(2001)) - 1000;
    if (dtype == DType::u8) v = static_cast<double>(dice.below(256));
    if (dtype == DType::boolean) v = static_cast<double>(dice.below(2));
    if (size_of(dtype) == 2) v = static_cast<double>(dice.below(201)) - 100;  // exact in bf16 too
    if (!special || !is_float(dtype)) continue;
    const auto kind = dice.below(40);
    if (kind == 0) v = kNaN;
    if (kind == 1) v = kInf;
    if (kind == 2) v = -kInf;
    if (kind == 3) v = -0.0;
    if (kind == 4) v = 0;
  }
  return out;
}

// The array [outer, size, inner] that `axis` makes of a shape, and where element i of line l lies.
struct Lines {
  int64_t outer = 1, size = 1, inner = 1;
  Lines(const Shape& shape, int axis) {
    for (int i = 0; i < shape.rank(); ++i) (i < axis ? outer : i == axis ? size : inner) *= shape[i];
  }
  int64_t count() const { return outer * inner; }
  size_t at(int64_t line, int64_t i) const {
    return static_cast<size_t>((line / inner * size + i) * inner + line % inner);
  }
  template <class T>
  std::vector<T> line(const std::vector<T>& x, int64_t l) const {
    std::vector<T> out;
    for (int64_t i = 0; i < size; ++i) out.push_back(x[at(l, i)]);
    return out;
  }
};

// Half the distance between subnormal numbers: what rounding to one may be off.
inline double half_smallest(DType dtype) {
  switch (dtype) {
    case DType::f32: return 0x1p-150;
    case DType::bf16: return 0x1p-134;
    case DType::f16: return 0x1p-25;
    default: return std::numeric_limits<double>::denorm_min();
  }
}

inline bool same_number(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

template <class Fn>
ErrorKind kind_of(Fn&& fn) {
  try {
    fn();
  } catch (const Error& e) {
    return e.kind();
  }
  ADD_FAILURE() << "no error";
  return ErrorKind::state;
}

}  // namespace outrace::test
