// The two 16-bit float formats as storage: convert to float, compute there, convert back. No arithmetic on purpose.
#pragma once
#include <bit>
#include <cstdint>

namespace outrace {

namespace detail {
constexpr uint16_t bf16_bits(float value);
constexpr uint16_t f16_bits(float value);
constexpr float f16_value(uint16_t bits);
}  // namespace detail

// The upper half of a float: 8 bits of exponent, 7 of mantissa.
struct bf16 {
  uint16_t bits;

  bf16() = default;
  // Rounds to nearest, ties to even; a NaN stays a NaN. A double is first rounded to float, as in PyTorch.
  constexpr explicit bf16(float value) : bits(detail::bf16_bits(value)) {}
  constexpr explicit operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
  static constexpr bf16 from_bits(uint16_t bits) {
    bf16 out{};
    out.bits = bits;
    return out;
  }
};

// IEEE 754 binary16: 5 bits of exponent, 10 of mantissa, with subnormals. 65520 and above round to infinity.
struct f16 {
  uint16_t bits;

  f16() = default;
  constexpr explicit f16(float value) : bits(detail::f16_bits(value)) {}
  constexpr explicit operator float() const { return detail::f16_value(bits); }
  static constexpr f16 from_bits(uint16_t bits) {
    f16 out{};
    out.bits = bits;
    return out;
  }
};

namespace detail {

constexpr uint16_t bf16_bits(float value) {
  const uint32_t x = std::bit_cast<uint32_t>(value);
  // NaN: the quiet bit is set, as the payload may lie in the dropped bits alone.
  if ((x & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>(x >> 16 | 0x40u);
  return static_cast<uint16_t>((x + 0x7fffu + (x >> 16 & 1u)) >> 16);
}

constexpr uint16_t f16_bits(float value) {
  const uint32_t x = std::bit_cast<uint32_t>(value);
  const uint32_t sign = x >> 16 & 0x8000u;
  const uint32_t magnitude = x & 0x7fffffffu;
  uint32_t out = 0;
  if (magnitude > 0x7f800000u) {
    out = 0x7e00u | (magnitude >> 13 & 0x3ffu);  // NaN
  } else if (magnitude >= 0x47800000u) {
    out = 0x7c00u;  // 65536 and above
  } else if (magnitude >= 0x38800000u) {
    // Normal: move the bias from 127 to 15 and drop 13 bits; a carry out of 65504 gives infinity by itself.
    const uint32_t moved = magnitude - (112u << 23);
    out = (moved + 0xfffu + (moved >> 13 & 1u)) >> 13;
  } else if (magnitude >= 0x33000000u) {
    // Subnormal, a multiple of 2^-24: the mantissa counts units of 2^(exponent - 150).
    const uint32_t shift = 126u - (magnitude >> 23);  // 14 to 24
    const uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
    const uint32_t half = 1u << (shift - 1);
    out = (mantissa + half - 1u + (mantissa >> shift & 1u)) >> shift;
  }
  return static_cast<uint16_t>(sign | out);
}

constexpr float f16_value(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t magnitude = bits & 0x7fffu;
  if (magnitude < 0x400u) {  // subnormal or zero: exact in float
    const float value = static_cast<float>(magnitude) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(value) | sign);
  }
  const uint32_t bias = magnitude >= 0x7c00u ? 224u << 23 : 112u << 23;  // infinity and NaN go to exponent 255
  return std::bit_cast<float>(sign | ((magnitude << 13) + bias));
}

}  // namespace detail

}  // namespace outrace
