// The dense product: every form, shape and stride against the reference; the same bits from all forms and any number of
// threads; no access outside the arrays; each element handed to the epilogue exactly once.
#include "outrace/backend/cpu/gemm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "gemm_test_support.h"
#include "outrace/core/cpu_info.h"
#include "outrace/core/thread.h"

namespace outrace::cpu {
namespace {

const char* name_of(GemmForm form) {
  static constexpr const char* kNames[] = {"plain", "packed_weight", "packed_input", "packed_grad"};
  return kNames[static_cast<int>(form)];
}

constexpr GemmForm kForms[] = {GemmForm::plain, GemmForm::packed_weight, GemmForm::packed_input, GemmForm::packed_grad};
constexpr int64_t kSizes[] = {1, 2, 5, 6, 7, 8, 13, 16, 17, 31, 33, 64, 100};

struct Size {
  int64_t m, n, k;
};
// Beyond a chunk of K, a row group and a column group; several of each.
constexpr Size kLargeSizes[] = {{70, 530, 1025}, {13, 100, 1536}, {300, 1100, 65},
                                {1100, 33, 70},  {130, 65, 2100}, {700, 20, 1030}};

// How a plain operand lies in memory.
enum class Lay { rows, columns, padded_rows, scattered };

// Runs `test` once for each instruction set this CPU has, with two threads, and puts both settings back.
template <class F>
void on_each_isa(const F& test) {
  const Isa before = active_isa();
  const int threads = num_threads();
  set_num_threads(2);
  for (const Isa isa : {Isa::avx2, Isa::avx512, Isa::neon, Isa::generic}) {
    if (!cpu_info().supports(isa)) continue;
    SCOPED_TRACE(std::string(outrace::name_of(isa)));
    set_active_isa(isa);
    test();
  }
  set_active_isa(before);
  set_num_threads(threads);
}

// A product with its operands, made so that the plain matrices A [m, k] and B [k, n] are the same for every form.
template <class T>
struct Problem {
  GemmCall<T> call;
  EdgeArray<T> a, b;  // as the call reads them

  Problem(GemmForm form, Size s, Lay a_lay = Lay::rows, Lay b_lay = Lay::rows) {
    call.form = form;
    call.m = s.m, call.n = s.n, call.k = s.k;
    const std::vector<T> plain_a = random_numbers(s.m * s.k, 1), plain_b = random_numbers(s.k * s.n, 2);
    a = laid(plain_a, s.m, s.k, a_lay, call.a_row, call.a_col);
    if (form == GemmForm::packed_weight || form == GemmForm::packed_input) {
      const bool is_input = form == GemmForm::packed_input;
      b = EdgeArray<T>(s.k * s.n);
      if (is_input) {
        pack_weight(plain_b.data(), b.data(), s.k, s.n);
      } else {
        std::vector<T> turned(plain_b.size());
        for (int64_t i = 0; i < s.k; ++i)
          for (int64_t j = 0; j < s.n; ++j)
            turned[static_cast<size_t>(j * s.k + i)] = plain_b[static_cast<size_t>(i * s.n + j)];
        pack_weight(turned.data(), b.data(), s.n, s.k);
      }
    } else {
      b = laid(plain_b, s.k, s.n, b_lay, call.b_row, call.b_col);
    }
  }

  static std::vector<T> random_numbers(int64_t count, unsigned seed) {
    std::mt19937 generator(seed);
    std::vector<T> out(static_cast<size_t>(count));
    for (T& x : out) x = static_cast<T>(static_cast<double>(generator()) / 2147483648.0 - 1.0);
    return out;
  }

  // Gaps hold NaN: a kernel that reads one shows it.
  static EdgeArray<T> laid(const std::vector<T>& plain, int64_t rows, int64_t columns, Lay lay, int64_t& row,
                           int64_t& col) {
    switch (lay) {
      case Lay::rows: row = columns, col = 1; break;
      case Lay::columns: row = 1, col = rows; break;
      case Lay::padded_rows: row = columns + 3, col = 1; break;
      case Lay::scattered: row = 2, col = 2 * rows + 1; break;
    }
    EdgeArray<T> out(rows > 0 && columns > 0 ? (rows - 1) * row + (columns - 1) * col + 1 : 0);
    std::fill_n(out.data(), out.size(), std::numeric_limits<T>::quiet_NaN());
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j) out.data()[i * row + j * col] = plain[static_cast<size_t>(i * columns + j)];
    return out;
  }

  int64_t count() const { return call.m * call.n; }

  // How the result leaves: stored, through the epilogue from scratch, or both.
  enum class Way { store, epilogue, both };
  std::vector<T> run(Way way, int threads) const {
    const int before = num_threads();
    set_num_threads(threads);
    GemmCall<T> c = call;
    EdgeArray<T> stored(count());
    std::fill_n(stored.data(), count(), std::numeric_limits<T>::quiet_NaN());
    Collector<T> collector(count(), 1);
    c.store_c = way != Way::epilogue;
    if (way != Way::store) c.epilogue = &Collector<T>::collect;
    gemm<T>(c, {a.data(), b.data(), c.store_c ? stored.data() : nullptr, &collector});
    set_num_threads(before);
    EXPECT_TRUE(a.intact() && b.intact() && stored.intact());
    std::vector<T> out(stored.data(), stored.data() + count());
    if (way == Way::store) return out;
    EXPECT_TRUE(collector.each_once());
    EXPECT_TRUE(way == Way::epilogue || same_bits(out, collector.values()));
    return collector.values();
  }

  void expect_right(const std::vector<T>& got) const {
    std::vector<T> expected(static_cast<size_t>(count())), size(expected.size());
    gemm_reference<T>(call, {a.data(), b.data(), expected.data(), nullptr});
    EdgeArray<T> a_size(a.size()), b_size(b.size());
    for (int64_t i = 0; i < a.size(); ++i) a_size.data()[i] = std::abs(a.data()[i]);
    for (int64_t i = 0; i < b.size(); ++i) b_size.data()[i] = std::abs(b.data()[i]);
    gemm_reference<T>(call, {a_size.data(), b_size.data(), size.data(), nullptr});
    // k roundings of sums, and those of the reference, each at most half an eps of the sum of magnitudes.
    const double relative = static_cast<double>(call.k + 2) * std::numeric_limits<T>::epsilon();
    for (size_t i = 0; i < expected.size(); ++i)
      ASSERT_LE(std::abs(static_cast<double>(got[i]) - static_cast<double>(expected[i])),
                relative * static_cast<double>(size[i]))
          << "element " << i << ": " << got[i] << " for " << expected[i];
  }
};

// C as row-major [m, n], whatever the form.
template <class T>
std::vector<T> plain_result(const GemmCall<T>& call, const std::vector<T>& c) {
  if (call.form != GemmForm::packed_grad) return c;
  std::vector<T> out(c.size());
  unpack_weight(c.data(), out.data(), call.m, call.n);
  return out;
}

template <class T>
void check_all_forms(Size s, bool with_reference) {
  SCOPED_TRACE(testing::Message() << "m " << s.m << " n " << s.n << " k " << s.k);
  using Way = typename Problem<T>::Way;
  std::vector<T> first;
  for (const GemmForm form : kForms) {
    SCOPED_TRACE(name_of(form));
    const Problem<T> problem(form, s);
    const std::vector<T> got = problem.run(Way::store, 1);
    if (with_reference || form == GemmForm::packed_grad) problem.expect_right(got);
    ASSERT_TRUE(same_bits(got, problem.run(Way::epilogue, 2)));
    ASSERT_TRUE(same_bits(got, problem.run(Way::both, 3)));
    const std::vector<T> plain = plain_result(problem.call, got);
    if (first.empty()) first = plain;
    ASSERT_TRUE(same_bits(first, plain)) << "forms differ";
  }
}

template <class T>
class Gemm : public testing::Test {};
using Numbers = testing::Types<float, double>;
TYPED_TEST_SUITE(Gemm, Numbers);

TYPED_TEST(Gemm, SmallShapes) {
  on_each_isa([] {
    for (const int64_t m : kSizes)
      for (const int64_t n : kSizes)
        for (const int64_t k : kSizes) {
          check_all_forms<TypeParam>({m, n, k}, true);
          if (testing::Test::HasFailure()) return;
        }
  });
}

TYPED_TEST(Gemm, LargeShapes) {
  on_each_isa([] {
    for (const Size s : kLargeSizes) {
      check_all_forms<TypeParam>(s, false);
      if (testing::Test::HasFailure()) return;
    }
  });
}

TYPED_TEST(Gemm, Strides) {
  using Way = typename Problem<TypeParam>::Way;
  constexpr Lay kLays[] = {Lay::rows, Lay::columns, Lay::padded_rows, Lay::scattered};
  constexpr Size kStridedSizes[] = {{1, 1, 1},      {7, 10, 5},    {33, 100, 17},  {64, 40, 64},
                                    {140, 300, 90}, {5, 17, 1100}, {90, 300, 1030}};
  on_each_isa([&] {
    for (const Size s : kStridedSizes)
      for (const GemmForm form : kForms)
        for (const Lay a_lay : kLays)
          for (const Lay b_lay : kLays) {
            SCOPED_TRACE(testing::Message() << name_of(form) << " m " << s.m << " n " << s.n << " k " << s.k << " lays "
                                            << static_cast<int>(a_lay) << static_cast<int>(b_lay));
            const Problem<TypeParam> usual(form, s), problem(form, s, a_lay, b_lay);
            const auto got = problem.run(Way::store, 1);
            ASSERT_TRUE(same_bits(usual.run(Way::store, 1), got));
            ASSERT_TRUE(same_bits(got, problem.run(Way::epilogue, 2)));
          }
  });
}

TYPED_TEST(Gemm, RepeatedOperands) {
  on_each_isa([] {
    // A's one row and B's one column, repeated by strides of 0.
    const auto a = Problem<TypeParam>::random_numbers(50, 1), b = Problem<TypeParam>::random_numbers(50, 2);
    GemmCall<TypeParam> call{.m = 20, .n = 300, .k = 50, .a_row = 0, .a_col = 1, .b_row = 1, .b_col = 0};
    std::vector<TypeParam> c(20 * 300), expected(c.size());
    gemm<TypeParam>(call, {a.data(), b.data(), c.data(), nullptr});
    gemm_reference<TypeParam>(call, {a.data(), b.data(), expected.data(), nullptr});
    for (size_t i = 0; i < c.size(); ++i) {
      ASSERT_EQ(c[i], c[0]);
      ASSERT_NEAR(c[i], expected[i], 50 * 50 * std::numeric_limits<TypeParam>::epsilon());
    }
  });
}

TYPED_TEST(Gemm, RowsDoNotDependOnTheirNumber) {
  using Way = typename Problem<TypeParam>::Way;
  on_each_isa([] {
    for (const GemmForm form : {GemmForm::plain, GemmForm::packed_weight, GemmForm::packed_input}) {
      const Problem<TypeParam> all(form, {64, 100, 1300}), some(form, {7, 100, 1300});
      auto expected = all.run(Way::store, 1);
      expected.resize(7 * 100);
      EXPECT_TRUE(same_bits(expected, some.run(Way::store, 1))) << name_of(form);
    }
  });
}

TYPED_TEST(Gemm, Batches) {
  on_each_isa([] {
    for (const int64_t batch : {2, 3, 5, 9})
      for (const bool shared_b : {false, true}) {
        const Size s{21, 35, 40};
        GemmCall<TypeParam> call{
            .m = s.m, .n = s.n, .k = s.k, .batch = batch, .a_row = s.k, .a_col = 1, .a_batch = s.m * s.k};
        call.b_row = s.n, call.b_col = 1, call.b_batch = shared_b ? 0 : s.k * s.n, call.c_batch = s.m * s.n + 5;
        const auto a = Problem<TypeParam>::random_numbers(batch * s.m * s.k, 1),
                   b = Problem<TypeParam>::random_numbers(batch * s.k * s.n, 2);
        std::vector<TypeParam> c(static_cast<size_t>(batch * call.c_batch)), one(static_cast<size_t>(s.m * s.n));
        Collector<TypeParam> collector(s.m * s.n, batch);
        call.epilogue = &Collector<TypeParam>::collect;
        gemm<TypeParam>(call, {a.data(), b.data(), c.data(), &collector});
        EXPECT_TRUE(collector.each_once());
        GemmCall<TypeParam> single = call;
        single.batch = 1, single.epilogue = nullptr;
        for (int64_t i = 0; i < batch; ++i) {
          gemm<TypeParam>(single, {a.data() + i * call.a_batch, b.data() + i * call.b_batch, one.data(), nullptr});
          EXPECT_EQ(0, std::memcmp(one.data(), c.data() + i * call.c_batch, one.size() * sizeof(TypeParam)));
          EXPECT_EQ(0,
                    std::memcmp(one.data(), collector.values().data() + i * s.m * s.n, one.size() * sizeof(TypeParam)));
        }
      }
  });
}

TYPED_TEST(Gemm, SizesOfZero) {
  using Way = typename Problem<TypeParam>::Way;
  on_each_isa([] {
    for (const GemmForm form : kForms) {
      SCOPED_TRACE(name_of(form));
      for (const Size s : {Size{0, 5, 5}, Size{5, 0, 5}, Size{0, 0, 0}}) {
        const Problem<TypeParam> problem(form, s);
        for (const Way way : {Way::store, Way::epilogue}) EXPECT_TRUE(problem.run(way, 2).empty());
      }
      for (const Size s : {Size{1, 1, 0}, Size{70, 37, 0}, Size{300, 200, 0}}) {
        const Problem<TypeParam> problem(form, s);
        const std::vector<TypeParam> zeros(static_cast<size_t>(s.m * s.n));
        for (const Way way : {Way::store, Way::epilogue, Way::both}) EXPECT_TRUE(same_bits(zeros, problem.run(way, 2)));
      }
    }
  });
}

TYPED_TEST(Gemm, PackingIsAPermutation) {
  on_each_isa([] {
    const int64_t wide = panel_width<TypeParam>();
    for (const int64_t out : kSizes)
      for (const int64_t in : kSizes) {
        EdgeArray<TypeParam> plain(out * in), packed(out * in), back(out * in);
        for (int64_t i = 0; i < out * in; ++i) plain.data()[i] = static_cast<TypeParam>(i);
        pack_weight(plain.data(), packed.data(), out, in);
        unpack_weight(packed.data(), back.data(), out, in);
        EXPECT_EQ(0, std::memcmp(plain.data(), back.data(), static_cast<size_t>(out * in) * sizeof(TypeParam)))
            << out << " " << in;
        for (int64_t o = 0; o < out; ++o)
          for (int64_t i = 0; i < in; ++i) {
            const int64_t first = o / wide * wide, width = std::min(wide, out - first);
            ASSERT_EQ(packed.data()[first * in + i * width + o - first], plain.data()[o * in + i]);
          }
        EXPECT_TRUE(plain.intact() && packed.intact() && back.intact());
      }
  });
}

TYPED_TEST(Gemm, ReferenceByHand) {
  // [1 2 3; 4 5 6] * [1 0; 0 1; 1 1]
  const std::vector<TypeParam> a{1, 2, 3, 4, 5, 6}, b{1, 0, 0, 1, 1, 1};
  std::vector<TypeParam> c(4);
  gemm_reference<TypeParam>({.m = 2, .n = 2, .k = 3, .a_row = 3, .a_col = 1, .b_row = 2, .b_col = 1},
                            {a.data(), b.data(), c.data(), nullptr});
  EXPECT_EQ(c, (std::vector<TypeParam>{4, 5, 10, 11}));
  Collector<TypeParam> collector(4, 1);
  gemm_reference<TypeParam>({.m = 2,
                             .n = 2,
                             .k = 3,
                             .a_row = 3,
                             .a_col = 1,
                             .b_row = 2,
                             .b_col = 1,
                             .epilogue = &Collector<TypeParam>::collect,
                             .store_c = false},
                            {a.data(), b.data(), nullptr, &collector});
  EXPECT_TRUE(collector.each_once());
  EXPECT_EQ(c, collector.values());
}

TEST(GemmWidths, TwoVectors) {
  on_each_isa([] {
    const int64_t bits = active_isa() == Isa::avx512 ? 512 : active_isa() == Isa::avx2 ? 256 : 128;
    EXPECT_EQ(panel_width_f32(), 2 * bits / 32);
    EXPECT_EQ(panel_width_f64(), 2 * bits / 64);
  });
}

TEST(DnnlGemm, SameBitsForAnyThreadsAndRight) {
  const int before = num_threads();
  for (const Size s :
       {Size{1, 1, 1}, Size{1, 700, 300}, Size{64, 512, 1000}, Size{300, 600, 70}, Size{33, 5, 2000}, Size{20, 30, 0}})
    for (const Lay a_lay : {Lay::rows, Lay::columns, Lay::padded_rows})
      for (const Lay b_lay : {Lay::rows, Lay::columns, Lay::padded_rows}) {
        const Problem<float> problem(GemmForm::plain, s, a_lay, b_lay);
        ASSERT_EQ(dnnl_gemm_why_not(problem.call), nullptr);
        std::vector<std::vector<float>> results;
        for (const int threads : {1, 2, 3}) {
          set_num_threads(threads);
          EdgeArray<float> c(problem.count());
          std::fill_n(c.data(), problem.count(), std::numeric_limits<float>::quiet_NaN());
          dnnl_gemm(problem.call, {problem.a.data(), problem.b.data(), c.data(), nullptr});
          EXPECT_TRUE(c.intact());
          results.emplace_back(c.data(), c.data() + problem.count());
        }
        problem.expect_right(results[0]);
        EXPECT_TRUE(same_bits(results[0], results[1]) && same_bits(results[0], results[2]));
      }
  set_num_threads(before);
}

TEST(DnnlGemm, SaysWhatItRefuses) {
  const GemmCall<float> good{.m = 4, .n = 4, .k = 4, .a_row = 4, .a_col = 1, .b_row = 4, .b_col = 1};
  EXPECT_EQ(dnnl_gemm_why_not(good), nullptr);
  for (int fault = 0; fault < 5; ++fault) {
    GemmCall<float> bad = good;
    if (fault == 0) bad.form = GemmForm::packed_weight;
    if (fault == 1) bad.epilogue = &Collector<float>::collect;
    if (fault == 2) bad.store_c = false;
    if (fault == 3) bad.a_row = 8, bad.a_col = 2;
    if (fault == 4) bad.b_row = 0;
    EXPECT_NE(dnnl_gemm_why_not(bad), nullptr) << fault;
  }
}

}  // namespace
}  // namespace outrace::cpu
