// Element types of tensors.
#pragma once
#include <cstdint>
#include <string_view>

#include "outrace/core/half.h"

namespace outrace {

enum class DType : uint8_t { f32, f64, bf16, f16, i32, i64, u8, boolean };

constexpr int kDTypeCount = 8;

constexpr int64_t size_of(DType t) {
  constexpr int64_t bytes[kDTypeCount] = {4, 8, 2, 2, 4, 8, 1, 1};
  return bytes[static_cast<int>(t)];
}
constexpr std::string_view name_of(DType t) {
  constexpr std::string_view names[kDTypeCount] = {"f32", "f64", "bf16", "f16", "i32", "i64", "u8", "bool"};
  return names[static_cast<int>(t)];
}
constexpr bool is_float(DType t) { return t <= DType::f16; }
// What kernels compute in with elements stored so: f32, f64 or i64.
constexpr DType compute_of(DType t) { return t == DType::f64 ? DType::f64 : is_float(t) ? DType::f32 : DType::i64; }

// The distance from 1 to the next number, the unit in which tolerances are computed. 0 for integers.
constexpr double epsilon_of(DType t) {
  constexpr double eps[kDTypeCount] = {0x1p-23, 0x1p-52, 0x1p-7, 0x1p-10, 0, 0, 0, 0};
  return eps[static_cast<int>(t)];
}

// Parses "f32", "bf16", ...; throws Error(option) that lists the names.
DType parse_dtype(std::string_view text);

template <class T>
constexpr DType dtype_of();
template <>
constexpr DType dtype_of<float>() {
  return DType::f32;
}
template <>
constexpr DType dtype_of<double>() {
  return DType::f64;
}
template <>
constexpr DType dtype_of<bf16>() {
  return DType::bf16;
}
template <>
constexpr DType dtype_of<f16>() {
  return DType::f16;
}
template <>
constexpr DType dtype_of<int32_t>() {
  return DType::i32;
}
template <>
constexpr DType dtype_of<int64_t>() {
  return DType::i64;
}
template <>
constexpr DType dtype_of<uint8_t>() {
  return DType::u8;
}
template <>
constexpr DType dtype_of<bool>() {
  return DType::boolean;
}

// Calls fn(T{}) with the C++ type of `t`.
template <class Fn>
decltype(auto) visit_dtype(DType t, Fn&& fn) {
  switch (t) {
    case DType::f64: return fn(double{});
    case DType::bf16: return fn(bf16{});
    case DType::f16: return fn(f16{});
    case DType::i32: return fn(int32_t{});
    case DType::i64: return fn(int64_t{});
    case DType::u8: return fn(uint8_t{});
    case DType::boolean: return fn(bool{});
    case DType::f32: break;
  }
  return fn(float{});
}

}  // namespace outrace
