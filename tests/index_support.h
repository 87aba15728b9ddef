// Plain host references for the ops that move elements, over all dtypes.
#pragma once
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "expect_error.h"
#include "outrace/ops/ops.h"

namespace outrace {

using Values = std::vector<double>;

constexpr DType kAllTypes[] = {DType::f32, DType::f64, DType::bf16, DType::f16,
                               DType::i32, DType::i64, DType::u8,   DType::boolean};

// Whole numbers that every dtype holds: 0 to 12, for bool 0 and 1.
inline Values whole_numbers(const Shape& s, DType t, int64_t seed = 1) {
  Values v(static_cast<size_t>(s.numel()));
  for (size_t i = 0; i < v.size(); ++i) {
    const auto k = static_cast<double>((static_cast<int64_t>(i) * 7 + seed * 5 + static_cast<int64_t>(i) / 11) % 13);
    v[i] = t == DType::boolean ? (k > 6 ? 1 : 0) : k;
  }
  return v;
}

inline Tensor make(const Values& v, const Shape& s, DType t) { return cast(Tensor::from(v, s), t).eval(); }

inline Tensor ids(const std::vector<int64_t>& v, const Shape& s, DType t = DType::i64) {
  return cast(Tensor::from(v, s), t).eval();
}
inline Tensor ids(const std::vector<int64_t>& v) { return ids(v, {static_cast<int64_t>(v.size())}); }

// The position of an element in each axis.
inline std::vector<int64_t> place_of(const Shape& s, int64_t at) {
  std::vector<int64_t> p(static_cast<size_t>(s.rank()));
  for (int i = s.rank() - 1; i >= 0; --i) {
    p[i] = at % s[i];
    at /= s[i];
  }
  return p;
}
inline int64_t at_place(const Shape& s, const std::vector<int64_t>& place) {
  int64_t at = 0;
  for (int i = 0; i < s.rank(); ++i) at = at * s[i] + place[i];
  return at;
}

// `out` of a shape, each element given by its place.
inline Values by_place(const Shape& s, const std::function<double(const std::vector<int64_t>&)>& value) {
  Values v(static_cast<size_t>(s.numel()));
  for (size_t i = 0; i < v.size(); ++i) v[i] = value(place_of(s, static_cast<int64_t>(i)));
  return v;
}

inline void expect_values(const Tensor& got, const Shape& shape, const Values& expected, const std::string& what = "") {
  ASSERT_EQ(got.shape(), shape) << what << ": " << got.shape().str() << " for " << shape.str();
  const Values v = got.to_vector<double>();
  for (size_t i = 0; i < v.size(); ++i)
    ASSERT_TRUE(v[i] == expected[i] || (v[i] != v[i] && expected[i] != expected[i]))
        << what << ", element " << i << ": " << v[i] << " for " << expected[i];
}

}  // namespace outrace
