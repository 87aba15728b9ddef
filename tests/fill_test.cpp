// Random arrays against the numbers drawn one by one; pad against loops over indexes.
#include "outrace/backend/cpu/fill.h"

#include <gtest/gtest.h>

#include <vector>

#include "outrace/core/half.h"
#include "outrace/core/thread.h"
#include "tests/tile_support.h"

namespace outrace::cpu {
namespace {

using test::Dice;
using test::Guarded;

constexpr RandomState kState{42, 7};

struct Threads {
  explicit Threads(int count) { set_num_threads(count); }
  ~Threads() { set_num_threads(before); }
  int before = num_threads();
};

template <class T>
std::vector<T> drawn(const RandomAttrs& attrs, int64_t count) {
  Guarded out(count * static_cast<int64_t>(sizeof(T)), sizeof(T));
  fill_random(attrs, kState, dtype_of<T>(), out.data(), count);
  EXPECT_TRUE(out.guards_hold());
  return std::vector<T>(out.as<T>(), out.as<T>() + count);
}

TEST(Fill, floats_are_those_of_the_generator) {
  for (const int64_t count : {0, 1, 3, 511, 513, 16384, 50001}) {
    const auto uniform = drawn<float>({Distribution::uniform, -2, 3}, count);
    const auto uniform64 = drawn<double>({Distribution::uniform, -2, 3}, count);
    const auto normal = drawn<float>({Distribution::normal, 1, 0.5}, count);
    const auto normal64 = drawn<double>({Distribution::normal, 1, 0.5}, count);
    for (int64_t i = 0; i < count; ++i) {
      const auto index = static_cast<uint64_t>(i);
      ASSERT_EQ(uniform[i], -2.0f + uniform_f32(kState, index) * 5.0f) << i;
      ASSERT_EQ(uniform64[i], -2.0 + uniform_f64(kState, index) * 5.0) << i;
      ASSERT_EQ(normal[i], 1.0f + 0.5f * normal_f32(kState, index)) << i;
      ASSERT_EQ(normal64[i], 1.0 + 0.5 * normal_f64(kState, index)) << i;
    }
  }
}

TEST(Fill, sixteen_bit_floats_are_rounded_f32) {
  const int64_t count = 20'001;
  for (const Distribution distribution : {Distribution::uniform, Distribution::normal}) {
    const auto wide = drawn<float>({distribution, 0, 1}, count);
    const auto b = drawn<bf16>({distribution, 0, 1}, count);
    const auto h = drawn<f16>({distribution, 0, 1}, count);
    for (int64_t i = 0; i < count; ++i) {
      ASSERT_EQ(b[i].bits, bf16(wide[i]).bits) << i;
      ASSERT_EQ(h[i].bits, f16(wide[i]).bits) << i;
    }
  }
}

TEST(Fill, integers_of_every_type) {
  const int64_t count = 20'001;
  const RandomAttrs attrs{Distribution::integer, 0, 2};
  const auto wide = drawn<int64_t>(attrs, count);
  const auto narrow = drawn<int32_t>(attrs, count);
  const auto bytes = drawn<uint8_t>(attrs, count);
  const auto truths = drawn<bool>(attrs, count);
  const auto floats = drawn<float>(attrs, count);
  const auto halves = drawn<bf16>(attrs, count);
  for (int64_t i = 0; i < count; ++i) {
    ASSERT_EQ(wide[i], integer_i64(kState, static_cast<uint64_t>(i), 0, 2));
    ASSERT_EQ(narrow[i], wide[i]);
    ASSERT_EQ(bytes[i], wide[i]);
    ASSERT_EQ(truths[i], wide[i] == 1);
    ASSERT_EQ(floats[i], static_cast<float>(wide[i]));
    ASSERT_EQ(static_cast<float>(halves[i]), floats[i]);
  }
  for (const int64_t v : drawn<int64_t>({Distribution::integer, -5, 3}, 1000)) ASSERT_TRUE(v >= -5 && v < 3);
}

TEST(Fill, threads_change_no_bit) {
  std::vector<float> first;
  {
    const Threads one(1);
    first = drawn<float>({Distribution::normal, 0, 1}, 100'003);
  }
  const Threads more(3);
  EXPECT_EQ(first, drawn<float>({Distribution::normal, 0, 1}, 100'003));
}

// ---- pad ----

template <class T>
void expect_padded(const Shape& from, const SliceAttrs& attrs, const Shape& to) {
  std::vector<T> x(static_cast<size_t>(from.numel()));
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<T>(i % 250 + 1);
  std::vector<T> want(static_cast<size_t>(to.numel()), T{0});
  for (int64_t i = 0; i < from.numel(); ++i) {
    int64_t left = i, at = 0, stride = 1;
    for (int axis = to.rank() - 1; axis >= 0; --axis) {
      at += (attrs.start[axis] + left % from[axis] * attrs.step[axis]) * stride;
      left /= from[axis];
      stride *= to[axis];
    }
    want[at] = x[i];
  }
  Guarded out(to.numel() * static_cast<int64_t>(sizeof(T)), sizeof(T));
  std::fill_n(out.data(), out.bytes(), 0x77);
  pad(dtype_of<T>(), x.data(), from, attrs, out.data(), to);
  EXPECT_TRUE(out.guards_hold());
  EXPECT_EQ(std::vector<T>(out.as<T>(), out.as<T>() + to.numel()), want) << from.str() << " into " << to.str();
}

TEST(Fill, pad_of_slices_of_every_sort) {
  Dice dice{5};
  for (int round = 0; round < 2000; ++round) {
    const int rank = static_cast<int>(dice.below(5));
    std::vector<int64_t> from, to;
    SliceAttrs attrs;
    for (int axis = 0; axis < rank; ++axis) {
      to.push_back(1 + dice.below(7));
      const bool whole = dice.below(3) == 0;
      const int64_t step = whole ? 1 : 1 + dice.below(3);
      const int64_t most = whole ? to.back() : (to.back() + step - 1) / step;
      from.push_back(whole ? most : 1 + dice.below(most));
      const int64_t reach = (from.back() - 1) * step;
      attrs.start[axis] = dice.below(to.back() - reach);
      attrs.step[axis] = step;
      if (dice.below(4) == 0) {
        attrs.start[axis] += reach;
        attrs.step[axis] = -step;
      }
    }
    expect_padded<float>(Shape(from), attrs, Shape(to));
    expect_padded<double>(Shape(from), attrs, Shape(to));
    expect_padded<uint8_t>(Shape(from), attrs, Shape(to));
  }
}

TEST(Fill, pad_in_many_tasks) {
  SliceAttrs attrs;
  attrs.start = {3, 17};
  attrs.step = {2, 1};
  expect_padded<float>({100, 900}, attrs, {205, 1000});
  attrs.start = {0, 299'999};
  attrs.step = {1, -3};
  expect_padded<float>({1, 100'000}, attrs, {1, 300'001});
  attrs.start = {5, 0};
  attrs.step = {1, 1};
  expect_padded<int64_t>({70, 1000}, attrs, {90, 1000});
}

TEST(Fill, pad_of_nothing) {
  SliceAttrs attrs;
  attrs.step = {1, 1};
  expect_padded<float>({0, 3}, attrs, {4, 3});
  expect_padded<float>({2, 0}, attrs, {2, 5});
  expect_padded<float>({0, 3}, attrs, {0, 3});
  expect_padded<float>({2, 0}, attrs, {2, 0});
}

}  // namespace
}  // namespace outrace::cpu
