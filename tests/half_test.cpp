// bf16 and f16 against plain restatements of their definition, for every 16-bit pattern and for floats between the
// patterns.
#include "outrace/core/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <type_traits>

#include "outrace/core/dtype.h"
#include "outrace/core/error.h"

namespace outrace {
namespace {

static_assert(std::is_trivial_v<bf16> && std::is_trivial_v<f16> && sizeof(bf16) == 2 && sizeof(f16) == 2);
static_assert(bf16(1.0f).bits == 0x3f80 && f16(1.0f).bits == 0x3c00 && static_cast<float>(f16(0.5f)) == 0.5f);
static_assert(!std::is_convertible_v<float, bf16> && !std::is_convertible_v<bf16, float>);

// The value that a pattern stands for, by the formats' definition.
double value_of(uint16_t bits, int mantissa_bits, int bias) {
  const int exponent = (bits & 0x7fff) >> mantissa_bits, mantissa = bits & ((1 << mantissa_bits) - 1);
  const double magnitude = exponent == 0 ? std::ldexp(mantissa, 1 - bias - mantissa_bits)
                                         : std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
  return bits & 0x8000 ? -magnitude : magnitude;
}

template <class T>
void check_every_pattern(int mantissa_bits, int bias) {
  const uint16_t infinity = static_cast<uint16_t>(0x7fff >> mantissa_bits << mantissa_bits);
  for (uint32_t p = 0; p < 0x10000; ++p) {
    const auto bits = static_cast<uint16_t>(p);
    const float value = static_cast<float>(T::from_bits(bits));
    const uint16_t magnitude = bits & 0x7fff;
    if (magnitude > infinity) {
      ASSERT_TRUE(std::isnan(value)) << p;
      ASSERT_TRUE(std::isnan(static_cast<float>(T(value)))) << p;
      continue;
    }
    ASSERT_EQ(std::signbit(value), (bits & 0x8000) != 0) << p;
    ASSERT_EQ(T(value).bits, bits) << p;
    if (magnitude == infinity) {
      ASSERT_TRUE(std::isinf(value)) << p;
      continue;
    }
    ASSERT_EQ(value, value_of(bits, mantissa_bits, bias)) << p;

    // Between this number and the next of the same sign: a tie goes to the even pattern, the floats beside the tie to
    // the nearer. The number after the largest is the one that infinity's pattern would stand for.
    const auto next = static_cast<uint16_t>(bits + 1);
    const double middle = (value_of(bits, mantissa_bits, bias) + value_of(next, mantissa_bits, bias)) / 2;
    const float tie = static_cast<float>(middle);
    if (static_cast<double>(tie) != middle || std::isinf(tie))
      continue;  // too fine for a float: bf16's own subnormals reach its end
    const float zero = 0.0f;
    ASSERT_EQ(T(tie).bits, bits % 2 == 0 ? bits : next) << p;
    ASSERT_EQ(T(std::nextafter(tie, zero)).bits, bits) << p;
    ASSERT_EQ(T(std::nextafter(tie, std::copysign(std::numeric_limits<float>::infinity(), tie))).bits, next) << p;
  }
}

TEST(Half, EveryPatternOfBf16) { check_every_pattern<bf16>(7, 127); }
TEST(Half, EveryPatternOfF16) { check_every_pattern<f16>(10, 15); }

TEST(Half, Ends) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(f16(65504.0f).bits, 0x7bff);
  EXPECT_EQ(f16(65519.9f).bits, 0x7bff);
  EXPECT_EQ(f16(65520.0f).bits, 0x7c00);
  EXPECT_EQ(f16(1e30f).bits, 0x7c00);
  EXPECT_EQ(f16(-infinity).bits, 0xfc00);
  EXPECT_EQ(f16(0x1p-25f).bits, 0) << "half of the least subnormal ties to zero";
  EXPECT_EQ(f16(0x1.000002p-25f).bits, 1);
  EXPECT_EQ(f16(1e-30f).bits, 0);
  EXPECT_EQ(f16(-1e-30f).bits, 0x8000);
  EXPECT_EQ(bf16(std::numeric_limits<float>::max()).bits, 0x7f80);
  EXPECT_EQ(bf16(-infinity).bits, 0xff80);
  // A NaN whose payload lies only in the dropped bits must not become infinity.
  EXPECT_TRUE(std::isnan(static_cast<float>(bf16(std::bit_cast<float>(0x7f800001u)))));
  EXPECT_TRUE(std::isnan(static_cast<float>(f16(std::bit_cast<float>(0xff800001u)))));
}

TEST(DType, ParsesItsOwnNames) {
  for (int i = 0; i < kDTypeCount; ++i) EXPECT_EQ(parse_dtype(name_of(static_cast<DType>(i))), static_cast<DType>(i));
  try {
    parse_dtype("float32");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::option);
    EXPECT_STREQ(e.what(),
                 "[dtype] unknown element type 'float32'; known names: f32, f64, bf16, f16, i32, i64, u8, bool");
  }
}

TEST(DType, VisitsTheTypeOfItsName) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const DType t = static_cast<DType>(i);
    visit_dtype(t, [&](auto zero) {
      EXPECT_EQ(dtype_of<decltype(zero)>(), t);
      EXPECT_EQ(static_cast<int64_t>(sizeof zero), size_of(t));
    });
  }
}

}  // namespace
}  // namespace outrace
