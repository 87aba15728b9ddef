// Reductions against sums in long double with computed tolerances, and that nothing but shape, type and instruction set
// changes bits.
#include "outrace/backend/cpu/reduce.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "outrace/core/half.h"
#include "outrace/core/thread.h"
#include "tests/tile_support.h"

namespace outrace::cpu {
namespace {

using test::Dice;
using test::EachIsa;
using test::Guarded;
using test::ProgramBuilder;

using Reduce = EachIsa;
INSTANTIATE_TEST_SUITE_P(Isa, Reduce, testing::ValuesIn(test::isas_here()), test::isa_name);

struct Threads {
  explicit Threads(int count) { set_num_threads(count); }
  ~Threads() { set_num_threads(before); }
  int before = num_threads();
};

template <class T>
constexpr double kUnit = std::is_floating_point_v<T> ? static_cast<double>(std::numeric_limits<T>::epsilon()) / 2 : 0;

// What a result may be off: each of its elements takes part in at most `depth` roundings of sums no larger than the sum
// of magnitudes. In reduce.cpp: a block's 64 additions (f64, AVX2), 32 rows, and one a level of the pairwise trees and
// of the lanes.
double tolerance(double unit, int64_t elements, double magnitudes) {
  const double depth =
      std::min<double>(static_cast<double>(elements), 128 + 2 * std::bit_width(static_cast<uint64_t>(elements)));
  return 1.01 * depth * unit * magnitudes;
}

Shape kept_shape(const Shape& space, int64_t axes) {
  std::vector<int64_t> dims;
  for (int i = 0; i < space.rank(); ++i)
    if ((axes >> i & 1) == 0) dims.push_back(space[i]);
  return Shape(dims);
}

struct Reference {
  std::vector<long double> value, magnitudes;
  int64_t elements = 1;  // of each
};

template <class T>
Reference reference(ReduceKind kind, const Shape& space, int64_t axes, const std::vector<T>& x) {
  const Shape kept = kept_shape(space, axes);
  Reference r;
  r.value.resize(static_cast<size_t>(kept.numel()), kind == ReduceKind::max    ? -INFINITY
                                                    : kind == ReduceKind::min  ? INFINITY
                                                    : kind == ReduceKind::prod ? 1
                                                                               : 0);
  r.magnitudes.resize(r.value.size());
  for (int i = 0; i < space.rank(); ++i)
    if (axes >> i & 1) r.elements *= space[i];
  for (int64_t i = 0; i < space.numel(); ++i) {
    int64_t out = 0, stride = 1, left = i;
    for (int axis = space.rank() - 1; axis >= 0; --axis) {
      if ((axes >> axis & 1) == 0) {
        out += left % space[axis] * stride;
        stride *= space[axis];
      }
      left /= space[axis];
    }
    const long double v = static_cast<long double>(x[i]);
    auto& sum = r.value[out];
    if (kind == ReduceKind::prod)
      sum *= v;
    else if (kind != ReduceKind::max && kind != ReduceKind::min)
      sum += v;
    else if (std::isnan(v) || (kind == ReduceKind::max ? v > sum : v < sum))
      sum = std::isnan(sum) ? sum : v;
    r.magnitudes[out] += std::fabs(v);
  }
  if (kind == ReduceKind::mean)
    for (size_t i = 0; i < r.value.size(); ++i) {
      r.value[i] /= static_cast<long double>(r.elements);
      r.magnitudes[i] /= static_cast<long double>(r.elements);
    }
  return r;
}

template <class T>
std::vector<T> numbers(int64_t count, uint64_t seed) {
  Dice dice{seed};
  std::vector<T> out(static_cast<size_t>(count));
  for (auto& v : out)
    v = std::is_integral_v<T> ? static_cast<T>(dice.below(2001) - 1000) : static_cast<T>(dice.uniform(-1, 1.5));
  return out;
}

template <class T>
ReduceCall dense_call(ReduceKind kind, const Shape& space, int64_t axes) {
  ReduceCall call;
  call.kind = kind;
  call.space = space;
  call.axes = axes;
  call.input = call.output = dtype_of<T>();
  call.view.strides = contiguous_strides(space);
  return call;
}

// Runs a call that reads x and stores as Out, between guards.
template <class Out, class In>
std::vector<Out> run(const ReduceCall& call, const std::vector<In>& x) {
  const int64_t count = kept_shape(call.space, call.axes).numel();
  Guarded out(count * static_cast<int64_t>(sizeof(Out)), sizeof(Out));
  std::fill_n(out.data(), out.bytes(), 0x77);
  void* values[] = {const_cast<In*>(x.data())};
  Reducer::prepare(call)->run(values, nullptr, call.prologue ? nullptr : x.data(), out.data());
  EXPECT_TRUE(out.guards_hold()) << call.space.str() << " axes " << call.axes;
  return std::vector<Out>(out.as<Out>(), out.as<Out>() + count);
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

template <class T>
void expect_right(ReduceKind kind, const Shape& space, int64_t axes) {
  const auto x = numbers<T>(space.numel(), 7);
  const Reference want = reference(kind, space, axes, x);
  const bool extreme = kind == ReduceKind::max || kind == ReduceKind::min;
  if (want.elements == 0 && extreme) return;  // the graph refuses it
  const auto got = run<T>(dense_call<T>(kind, space, axes), x);
  for (size_t i = 0; i < got.size(); ++i) {
    const double off = std::fabs(static_cast<double>(static_cast<long double>(got[i]) - want.value[i]));
    double allowed = extreme ? 0 : tolerance(kUnit<T>, want.elements, static_cast<double>(want.magnitudes[i]));
    // Each factor rounds once, and on the way the product may have been subnormal.
    if (kind == ReduceKind::prod)
      allowed = 1.01 * static_cast<double>(want.elements) *
                (kUnit<T> * static_cast<double>(std::fabs(want.value[i])) + std::numeric_limits<T>::denorm_min());
    if (kind == ReduceKind::mean)
      allowed += 2 * kUnit<T> * static_cast<double>(want.magnitudes[i]);  // count and division
    if (want.elements == 0 && kind == ReduceKind::mean) {
      EXPECT_TRUE(std::isnan(static_cast<double>(got[i])));
    } else {
      ASSERT_LE(off, allowed) << space.str() << " axes " << axes << " kind " << static_cast<int>(kind) << " at " << i;
    }
  }
}

template <class T>
void expect_all_right(const Shape& space) {
  for (int64_t axes = 0; axes < int64_t{1} << space.rank(); ++axes) {
    expect_right<T>(ReduceKind::sum, space, axes);
    expect_right<T>(ReduceKind::max, space, axes);
    expect_right<T>(ReduceKind::min, space, axes);
    if constexpr (std::is_floating_point_v<T>) {
      expect_right<T>(ReduceKind::mean, space, axes);
      expect_right<T>(ReduceKind::prod, space, axes);
    }
  }
}

TEST_P(Reduce, all_sets_of_axes) {
  for (const Shape& space : {Shape{},
                             Shape{1},
                             Shape{7},
                             Shape{0},
                             Shape{3, 0},
                             Shape{0, 3},
                             Shape{2, 0, 3},
                             Shape{1, 1, 1},
                             Shape{5, 1, 3},
                             Shape{2, 3, 4},
                             Shape{3, 1, 1, 5},
                             Shape{2, 3, 4, 5},
                             Shape{33, 2, 17},
                             Shape{40, 3},
                             Shape{3, 65, 3},
                             Shape{2, 2, 2, 2, 2},
                             Shape{3, 2, 5, 1, 4, 3},
                             Shape{9, 8, 7, 6},
                             Shape{1025, 2},
                             Shape{2, 1025},
                             Shape{70, 1030}}) {
    expect_all_right<float>(space);
    expect_all_right<double>(space);
    expect_all_right<int64_t>(space);
  }
}

TEST_P(Reduce, every_length) {
  for (int64_t n = 1; n <= 140; ++n) {
    expect_all_right<float>(Shape{3, n});
    expect_all_right<float>(Shape{n, 3});
    expect_all_right<double>(Shape{3, n});
    expect_all_right<int64_t>(Shape{3, n});
  }
  for (const int64_t n : {1023, 1024, 1025, 2047, 2049, 3072, 4096, 70001}) expect_all_right<float>(Shape{n});
}

// Shapes that are cut in every way there is: depth, rows, strips, outer indices, folded rows, several groups of axes.
const Shape kCutShapes[] = {{300001},     {64, 512},      {64, 10},       {50001, 3},       {200003, 2},
                            {3, 5003, 7}, {40, 6, 50, 3}, {100, 64, 3},   {2, 3, 70001},    {4097, 301},
                            {37, 4099},   {1000, 64, 2},  {3, 100, 1500}, {6, 5, 4, 3, 70}, {5000, 4, 7}};

TEST_P(Reduce, threads_and_fusion_change_no_bit) {
  for (const Shape& space : kCutShapes) {
    const auto x = numbers<float>(space.numel(), 11);
    ProgramBuilder square(DType::f32, space);
    square.p.result = square.op(Ew::square, square.dense(0));
    const auto square_kernel = TileKernel::compile(square.p);
    std::vector<float> squared(x.size());
    for (size_t i = 0; i < x.size(); ++i) squared[i] = x[i] * x[i];
    for (int64_t axes = 0; axes < int64_t{1} << space.rank(); ++axes) {
      SCOPED_TRACE(space.str() + " axes " + std::to_string(axes));
      for (const ReduceKind kind : {ReduceKind::mean, ReduceKind::max, ReduceKind::min, ReduceKind::prod}) {
        ReduceCall call = dense_call<float>(kind, space, axes);
        std::vector<float> first;
        {
          const Threads one(1);
          first = run<float>(call, squared);
        }
        for (const int count : {2, 3}) {
          const Threads more(count);
          ASSERT_TRUE(same_bits(first, run<float>(call, squared))) << count << " threads";
        }
        // Through a prologue.
        ReduceCall fused = call;
        fused.prologue = square_kernel.get();
        ASSERT_TRUE(same_bits(first, run<float>(fused, x))) << "prologue";
        // To an epilogue, alone and beside the stored result; doubling is exact.
        const Shape kept = kept_shape(space, axes);
        ProgramBuilder twice(DType::f32, Shape{kept.numel()});
        const int loaded = twice.producer();
        twice.store(twice.op(Ew::add, loaded, loaded), 1);
        const auto twice_kernel = TileKernel::compile(twice.p);
        for (const bool store : {false, true}) {
          fused.epilogue = twice_kernel.get();
          fused.store = store;
          std::vector<float> doubled(first.size()), stored(first.size());
          void* values[] = {const_cast<float*>(x.data()), doubled.data()};
          Reducer::prepare(fused)->run(values, nullptr, nullptr, store ? stored.data() : nullptr);
          for (float& v : doubled) v *= 0.5f;
          ASSERT_TRUE(same_bits(first, doubled)) << "epilogue";
          ASSERT_TRUE(!store || same_bits(first, stored)) << "stored beside the epilogue";
        }
      }
    }
  }
}

TEST_P(Reduce, strides_change_no_bit) {
  // The array in memory is [c, a, b]; it is read as [a, b, c], from element 5 on.
  const int64_t a = 37, b = 50, c = 45;
  const auto memory = numbers<float>(5 + a * b * c, 3);
  std::vector<float> dense;
  for (int64_t i = 0; i < a; ++i)
    for (int64_t j = 0; j < b; ++j)
      for (int64_t k = 0; k < c; ++k) dense.push_back(memory[5 + k * a * b + i * b + j]);
  for (int64_t axes = 0; axes < 8; ++axes) {
    const ReduceCall plain = dense_call<float>(ReduceKind::sum, {a, b, c}, axes);
    ReduceCall strided = plain;
    strided.view.offset = 5;
    strided.view.strides = {b, 1, a * b};
    EXPECT_TRUE(same_bits(run<float>(plain, dense), run<float>(strided, memory))) << axes;
    strided.view.strides = {0, 0, 0};  // one element, repeated
    const auto repeated = run<float>(strided, memory);
    EXPECT_TRUE(same_bits(run<float>(plain, std::vector<float>(dense.size(), memory[5])), repeated)) << axes;
  }
}

TEST_P(Reduce, dense_with_an_offset) {
  const auto memory = numbers<double>(103, 5);
  ReduceCall call = dense_call<double>(ReduceKind::max, {100}, 1);
  call.view.offset = 3;
  EXPECT_EQ(run<double>(call, memory)[0], *std::max_element(memory.begin() + 3, memory.end()));
}

TEST_P(Reduce, squared_difference_without_a_temporary) {
  const Shape space{300, 70};
  const auto a = numbers<double>(space.numel(), 1), b = numbers<double>(space.numel(), 2);
  std::vector<double> apart(a.size());
  for (size_t i = 0; i < a.size(); ++i) apart[i] = (a[i] - b[i]) * (a[i] - b[i]);
  ProgramBuilder program(DType::f64, space);
  const int x = program.dense(0), y = program.dense(1);
  program.p.result = program.op(Ew::square, program.op(Ew::sub, x, y));
  const auto kernel = TileKernel::compile(program.p);
  ReduceCall call = dense_call<double>(ReduceKind::mean, space, 3);
  const auto want = run<double>(call, apart);
  call.prologue = kernel.get();
  void* values[] = {const_cast<double*>(a.data()), const_cast<double*>(b.data())};
  double got = 0;
  Reducer::prepare(call)->run(values, nullptr, nullptr, &got);
  EXPECT_EQ(got, want[0]);
}

TEST_P(Reduce, nan_and_infinity) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  for (const int64_t n : {1, 2, 5, 8, 9, 16, 17, 40, 100, 1024, 1500}) {
    for (const int64_t at : {int64_t{0}, n / 2, n - 1}) {
      // Three rows, the middle one has it; then the same as columns.
      for (const bool columns : {false, true}) {
        auto x = numbers<float>(3 * n, 9);
        const auto index = [&](int64_t row) { return columns ? at * 3 + row : row * n + at; };
        const Shape space = columns ? Shape{n, 3} : Shape{3, n};
        for (const float special : {nan, inf, -inf}) {
          x[index(1)] = special;
          for (const ReduceKind kind : {ReduceKind::sum, ReduceKind::max, ReduceKind::min}) {
            const auto got = run<float>(dense_call<float>(kind, space, columns ? 1 : 2), x);
            EXPECT_TRUE(std::isfinite(got[0]) && std::isfinite(got[2])) << n << " at " << at;
            const bool wins = kind == ReduceKind::sum || n == 1 || (kind == ReduceKind::max) == (special > 0);
            if (std::isnan(special)) {
              EXPECT_TRUE(std::isnan(got[1])) << n << " at " << at;
            } else if (wins) {
              EXPECT_EQ(got[1], special) << n << " at " << at;
            } else {
              EXPECT_TRUE(std::isfinite(got[1])) << n << " at " << at;
            }
          }
        }
      }
    }
  }
  const std::vector<float> low(1500, -inf);
  EXPECT_EQ(run<float>(dense_call<float>(ReduceKind::max, {1500}, 1), low)[0], -inf);
  EXPECT_TRUE(std::isnan(run<float>(dense_call<float>(ReduceKind::sum, {2}, 1), std::vector<float>{inf, -inf})[0]));
}

TEST_P(Reduce, sixteen_bit_floats_are_summed_in_f32) {
  const Shape space{70, 33};
  const auto x = numbers<float>(space.numel(), 4);
  for (int64_t axes = 1; axes < 4; ++axes) {
    const auto check = [&](auto zero) {
      using H = decltype(zero);
      std::vector<H> narrow;
      std::vector<float> wide;
      for (const float v : x) {
        narrow.push_back(H(v));
        wide.push_back(static_cast<float>(narrow.back()));
      }
      for (const ReduceKind kind :
           {ReduceKind::sum, ReduceKind::mean, ReduceKind::max, ReduceKind::min, ReduceKind::prod}) {
        const auto want = run<float>(dense_call<float>(kind, space, axes), wide);
        const auto got = run<H>(dense_call<H>(kind, space, axes), narrow);
        ReduceCall kept_wide = dense_call<H>(kind, space, axes);
        kept_wide.output = DType::f32;
        EXPECT_TRUE(same_bits(want, run<float>(kept_wide, narrow)));
        for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i].bits, H(want[i]).bits);
      }
    };
    check(bf16{});
    check(f16{});
  }
}

TEST_P(Reduce, integers_are_summed_in_i64) {
  const Shape space{50, 21};
  const auto x = numbers<int64_t>(space.numel(), 6);
  const std::vector<int32_t> narrow(x.begin(), x.end());
  std::vector<uint8_t> bytes;
  std::vector<uint8_t> truths;
  int64_t byte_sum = 0, truth_sum = 0;
  for (const int64_t v : x) {
    bytes.push_back(static_cast<uint8_t>(v & 0xff));
    truths.push_back(v > 0);
    byte_sum += bytes.back();
    truth_sum += truths.back();
  }
  for (int64_t axes = 0; axes < 4; ++axes) {
    const auto want = run<int64_t>(dense_call<int64_t>(ReduceKind::sum, space, axes), x);
    ReduceCall call = dense_call<int32_t>(ReduceKind::sum, space, axes);
    call.output = DType::i64;
    EXPECT_EQ(run<int64_t>(call, narrow), want);
    call.kind = ReduceKind::max;
    call.output = DType::i32;
    const auto most = run<int64_t>(dense_call<int64_t>(ReduceKind::max, space, axes), x);
    EXPECT_EQ(run<int32_t>(call, narrow), std::vector<int32_t>(most.begin(), most.end()));
  }
  ReduceCall call = dense_call<uint8_t>(ReduceKind::sum, space, 3);
  call.output = DType::i64;
  EXPECT_EQ(run<int64_t>(call, bytes)[0], byte_sum);
  call.input = DType::boolean;
  EXPECT_EQ(run<int64_t>(call, truths)[0], truth_sum);
  const std::vector<int64_t> extremes{std::numeric_limits<int64_t>::min(), -5, std::numeric_limits<int64_t>::max(), 2};
  EXPECT_EQ(run<int64_t>(dense_call<int64_t>(ReduceKind::max, {4}, 1), extremes)[0],
            std::numeric_limits<int64_t>::max());
  EXPECT_EQ(run<int64_t>(dense_call<int64_t>(ReduceKind::min, {4}, 1), extremes)[0],
            std::numeric_limits<int64_t>::min());
  for (const int64_t n : {1, 7, 8, 100, 5000}) {  // products wrap around
    const std::vector<int64_t> threes(static_cast<size_t>(n * 2), 3);
    uint64_t power = 1;
    for (int64_t i = 0; i < n; ++i) power *= 3;
    for (const int64_t axis : {0, 1}) {
      const Shape shape = axis == 0 ? Shape{n, 2} : Shape{2, n};
      const auto got = run<int64_t>(dense_call<int64_t>(ReduceKind::prod, shape, axis == 0 ? 1 : 2), threes);
      EXPECT_EQ(got, std::vector<int64_t>(2, static_cast<int64_t>(power))) << n;
    }
  }
}

// ---- named cases ----

TEST_P(Reduce, p051_a_mean_of_many_ones_does_not_stall) {
  const int64_t n = 20'000'000;
  const std::vector<float> ones(static_cast<size_t>(2 * n), 1.0f);
  EXPECT_EQ(run<float>(dense_call<float>(ReduceKind::sum, {n}, 1), ones)[0], 2.0e7f);
  EXPECT_EQ(run<float>(dense_call<float>(ReduceKind::mean, {n}, 1), ones)[0], 1.0f);
  EXPECT_EQ(run<float>(dense_call<float>(ReduceKind::sum, {n, 2}, 1), ones), (std::vector<float>{2.0e7f, 2.0e7f}));
  EXPECT_EQ(run<float>(dense_call<float>(ReduceKind::mean, {n, 2}, 1), ones), (std::vector<float>{1.0f, 1.0f}));
}

TEST_P(Reduce, p052_a_mean_of_f16_does_not_overflow) {
  EXPECT_EQ(
      static_cast<float>(run<f16>(dense_call<f16>(ReduceKind::mean, {3}, 1), std::vector<f16>(3, f16(40000.0f)))[0]),
      40000.0f);
  EXPECT_EQ(
      static_cast<float>(run<f16>(dense_call<f16>(ReduceKind::sum, {3}, 1), std::vector<f16>(3, f16(40000.0f)))[0]),
      INFINITY);
  EXPECT_EQ(static_cast<float>(
                run<f16>(dense_call<f16>(ReduceKind::mean, {70000}, 1), std::vector<f16>(70000, f16(1.0f)))[0]),
            1.0f);
}

TEST_P(Reduce, a_sum_of_1e8_numbers_stays_right) {
  const int64_t n = 100'000'000;
  ProgramBuilder program(DType::f32, Shape{n});
  program.p.result = program.view(0, DType::f32, Strides{});  // the same number again and again
  const auto kernel = TileKernel::compile(program.p);
  ReduceCall call = dense_call<float>(ReduceKind::sum, {n}, 1);
  call.prologue = kernel.get();
  const float got = run<float>(call, std::vector<float>{0.1f})[0];
  const double want = static_cast<double>(n) * static_cast<double>(0.1f);
  EXPECT_NEAR(static_cast<double>(got), want, tolerance(kUnit<float>, n, want));
  EXPECT_NEAR(static_cast<double>(got), want, want * 1e-5);  // and in practice much closer
}

TEST_P(Reduce, indexes_beyond_31_bits) {
  // 3 x 2^30 elements that are three numbers in memory.
  const Shape space{3, 1 << 15, 1 << 15};
  ProgramBuilder program(DType::i64, space);
  program.p.result = program.view(0, DType::i64, Strides{1, 0, 0});
  const auto kernel = TileKernel::compile(program.p);
  ReduceCall call = dense_call<int64_t>(ReduceKind::sum, space, 6);
  call.prologue = kernel.get();
  const std::vector<int64_t> x{1, 10, 100};
  EXPECT_EQ(run<int64_t>(call, x), (std::vector<int64_t>{1 << 30, int64_t{10} << 30, int64_t{100} << 30}));
}

}  // namespace
}  // namespace outrace::cpu
