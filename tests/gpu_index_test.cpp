// label: backend
// Ops that choose, write, join and move elements, on every GPU found: what the CPU gives, bit for bit; and what indices
// out of range do there.
#include <gtest/gtest.h>

#include "gpu_support.h"
#include "index_support.h"
#include "outrace/backend/backend.h"
#include "outrace/backend/gpu/kernel_rows.h"
#include "outrace/graph/autograd.h"
#include "outrace/ops/random.h"

namespace outrace {
namespace {

using Args = std::vector<Tensor>;
using Function = std::function<Tensor(const Args&)>;

Args moved(const Args& a, Device d) {
  Args out;
  for (const Tensor& t : a) out.push_back(t.to(d).eval());
  return out;
}

// The CPU's numbers, twice.
void expect_equal(const std::string& what, const Args& a, const Function& f) {
  for (const Device d : gpus()) {
    SCOPED_TRACE(cat(what, " on ", d));
    const Args there = moved(a, d);
    const Tensor expected = f(a), got = f(there);
    const Values v = got.to_vector<double>();
    expect_values(got, expected.shape(), expected.to_vector<double>(), what);
    ASSERT_EQ(v, f(there).to_vector<double>()) << "a second run differs";
  }
}

Tensor random_ids(int64_t below, const Shape& s, DType t = DType::i64) {
  return randint(0, static_cast<double>(below), s, {.dtype = t}).eval();
}

Tensor numbers(const Shape& s, DType t) {
  if (is_float(t)) return randn(s).to(t).eval();
  return randint(0, t == DType::boolean ? 2 : 200, s, {.dtype = DType::i64}).to(t).eval();
}

// Elements that are only moved are told apart by their size: one dtype of each, with either kind of indices.
struct Types {
  DType element, index;
};
constexpr Types kSizes[] = {
    {DType::f32, DType::i64}, {DType::bf16, DType::i32}, {DType::u8, DType::i64}, {DType::i64, DType::i32}};

TEST(GpuIndex, RowsAndElementsAreReadAsOnTheCpu) {
  manual_seed(1);
  for (const auto [t, i] : kSizes) {
    const std::string what = cat(name_of(t), " by ", name_of(i));
    const Tensor x = numbers({37, 300}, t);
    for (const int64_t axis : {0, 1})
      expect_equal("index_select " + what, {x, random_ids(37, {50}, i)},
                   [&](const Args& a) { return index_select(a[0], axis, a[1]); });
    expect_equal("embedding " + what, {x, random_ids(37, {3, 11}, i)},
                 [](const Args& a) { return embedding(a[0], a[1]); });
    expect_equal("take " + what, {x, random_ids(37 * 300, {5, 400}, i)},
                 [](const Args& a) { return take(a[0], a[1]); });
    expect_equal("gather " + what, {x, random_ids(300, {30, 70}, i)},
                 [](const Args& a) { return gather(a[0], 1, a[1]); });
    if (t == DType::f32)
      expect_equal("gather across " + what, {x, random_ids(37, {1001, 299}, i)},
                   [](const Args& a) { return gather(a[0], 0, a[1]); });
    expect_equal("one_hot " + what, {random_ids(9, {41, 3}, i)}, [&](const Args& a) { return one_hot(a[0], 9, t); });
  }
  const Tensor cube = numbers({4, 5, 6, 7}, DType::f32);
  for (const int64_t axis : {0, 1, 2, 3})
    expect_equal(cat("gather along ", axis), {cube, random_ids(4, {3, 4, 2, 4})},
                 [&](const Args& a) { return gather(a[0], axis, a[1]); });
}

TEST(GpuIndex, TheLastWriterWins) {
  manual_seed(2);
  for (const auto [t, i] : kSizes) {
    const std::string what = cat("scatter of ", name_of(t), " by ", name_of(i));
    expect_equal(what, {numbers({7, 50}, t), random_ids(50, {7, 333}, i), numbers({7, 333}, t)},
                 [](const Args& a) { return scatter(a[0], 1, a[1], a[2]); });
    if (t != DType::f32) continue;
    expect_equal(what, {numbers({10, 6, 5}, t), random_ids(6, {3, 40, 4}, i), numbers({3, 41, 5}, t)},
                 [](const Args& a) { return scatter(a[0], 1, a[1], a[2]); });
  }
  expect_equal("one axis", {numbers({300}, DType::f32), random_ids(300, {5000}), numbers({5000}, DType::f32)},
               [](const Args& a) { return scatter(a[0], 0, a[1], a[2]); });
}

// Whole numbers: sums are exact in any order; the orders themselves are compared below.
TEST(GpuIndex, TermsAreAddedWhereIndicesSay) {
  manual_seed(3);
  // A text each: the other dtypes take part in the order of sums below, and in forward_test.
  for (const DType t : {DType::f32, DType::u8, DType::boolean, DType::i32}) {
    const DType i = t == DType::i32 ? DType::i32 : DType::i64;
    const auto whole = [&](const Shape& s) {
      return randint(0, t == DType::boolean ? 2 : 3, s, {.dtype = DType::i64}).to(t).eval();
    };
    for (const int64_t n : {3, 40, 3000}) {
      if (n != 3000 && t != DType::f32) continue;
      const std::string what = cat(name_of(t), " by ", n, " of ", name_of(i));
      expect_equal("index_add of rows of " + what, {whole({70, 5}), random_ids(70, {n}, i), whole({n, 5})},
                   [](const Args& a) { return index_add(a[0], 0, a[1], a[2]); });
      if (t != DType::f32) continue;
      expect_equal("index_add inside " + what, {whole({2, 30, 3}), random_ids(30, {n}, i), whole({2, n, 3})},
                   [](const Args& a) { return index_add(a[0], 1, a[1], a[2]); });
      expect_equal("scatter_add of " + what, {whole({6, 20}), random_ids(20, {6, n}, i), whole({6, n})},
                   [](const Args& a) { return scatter_add(a[0], 1, a[1], a[2]); });
      expect_equal("scatter_add in a corner of " + what,
                   {whole({7, 20, 3}), random_ids(20, {6, n, 2}, i), whole({6, n, 2})},
                   [](const Args& a) { return scatter_add(a[0], 1, a[1], a[2]); });
    }
  }
}

TEST(GpuIndex, SumsAreFormedInTheCpusOrder) {
  manual_seed(4);
  for (const DType t : {DType::f32, DType::f64, DType::bf16, DType::f16})
    for (const int64_t n : {20, 2000, 9000}) {
      const std::string what = cat(name_of(t), ", ", n);
      expect_equal("index_add " + what, {numbers({300, 9}, t), random_ids(300, {n}), numbers({n, 9}, t)},
                   [](const Args& a) { return index_add(a[0], 0, a[1], a[2]); });
      expect_equal("scatter_add " + what, {numbers({4, 99}, t), random_ids(99, {4, n}), numbers({4, n}, t)},
                   [](const Args& a) { return scatter_add(a[0], 1, a[1], a[2]); });
    }
  // Lines enough for an item each.
  for (const DType t : {DType::f32, DType::bf16, DType::u8}) {
    expect_equal(cat("scatter_add along lines of ", name_of(t)),
                 {numbers({300, 70}, t), random_ids(70, {299, 50}), numbers({299, 50}, t)},
                 [](const Args& a) { return scatter_add(a[0], 1, a[1], a[2]); });
    if (t == DType::f32)
      expect_equal("scatter_add along columns",
                   {numbers({9, 9, 400}, t), random_ids(9, {7, 100, 350}), numbers({7, 100, 350}, t)},
                   [](const Args& a) { return scatter_add(a[0], 1, a[1], a[2]); });
  }
  // Many keys of many bits; and all of them one.
  expect_equal("a large table",
               {numbers({70'000, 2}, DType::f32), random_ids(70'000, {50'000}), numbers({50'000, 2}, DType::f32)},
               [](const Args& a) { return index_add(a[0], 0, a[1], a[2]); });
  expect_equal("one row",
               {zeros({5000, 3}).eval(), zeros({4000}, {.dtype = DType::i64}).eval(), ones({4000, 3}).eval()},
               [](const Args& a) { return index_add(a[0], 0, a[1], a[2]); });
}

// A group adds up a place: the order is another one, and the same each time.
TEST(GpuIndex, ManyTermsForFewPlaces) {
  manual_seed(5);
  const Tensor at = random_ids(4, {5000}), terms = randn({5000, 2}).eval(), base = randn({4, 2}).eval();
  const Values expected = index_add(base.to(DType::f64), 0, at, terms.to(DType::f64)).to_vector<double>();
  for (const Device d : gpus()) {
    const auto once = [&] { return index_add(base.to(d), 0, at.to(d), terms.to(d)).to_vector<double>(); };
    const Values got = once();
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-4);
    EXPECT_EQ(got, once());
  }
  expect_equal("whole numbers", {ones({3}).eval(), random_ids(3, {4000}), ones({4000}).eval()},
               [](const Args& a) { return index_add(a[0], 0, a[1], a[2]); });
}

TEST(GpuIndex, DerivativesAndThePaddingRow) {
  manual_seed(6);
  for (const int64_t n : {5, 500}) {
    const Args a{randn({40, 6}).eval(), random_ids(40, {n})};
    expect_equal("embedding's derivative", a, [](const Args& args) {
      Tensor w = args[0] * 1;
      w = w.eval().detach().requires_grad_();
      return grad(sum(embedding(w, args[1], 3) * 2), {w})[0];
    });
    expect_equal("derivative of the derivative", a, [](const Args& args) {
      Tensor w = args[0] * 1;
      w = w.eval().detach().requires_grad_();
      const Tensor y = embedding(w, args[1], 3);
      const Tensor g = grad(sum(y * y * y), {w}, {.create_graph = true})[0];
      return grad(sum(g), {w})[0];
    });
  }
}

TEST(GpuIndex, BagsOfRows) {
  manual_seed(7);
  for (const auto [t, i] : {Types{DType::f32, DType::i64}, Types{DType::bf16, DType::i32}}) {
    const Args a{randint(-9, 9, {30, 7}, {.dtype = DType::i64}).to(t).eval(), random_ids(30, {100}, i),
                 ids({0, 4, 4, 50, 99, 100, 100}, {7}, i)};
    for (const BagMode mode : {BagMode::sum, BagMode::mean, BagMode::max})
      if ((mode == BagMode::mean) == (t == DType::bf16))
        expect_equal(cat("bags of ", name_of(t), ", mode ", static_cast<int>(mode)), a,
                     [&](const Args& args) { return embedding_bag(args[0], args[1], args[2], mode); });
  }
}

TEST(GpuIndex, ArraysAreJoined) {
  manual_seed(8);
  for (const DType t : {DType::f32, DType::f16, DType::boolean, DType::i64}) {
    const std::string what(name_of(t));
    expect_equal("cat of rows of " + what, {numbers({3, 70}, t), numbers({100, 70}, t)}, [](const Args& a) {
      return cat({a[0], a[1]});
    });
    expect_equal("cat of columns of " + what, {numbers({60, 3}, t), numbers({60, 40}, t), numbers({2, 60}, t)},
                 [](const Args& a) {
                   return cat({a[0], a[1], a[2].t()}, 1);
                 });
    expect_equal("cat of slices of " + what, {numbers({60, 9}, t), numbers({60, 40}, t)}, [](const Args& a) {
      return cat({a[0].slice(1, 1, 3), a[1].slice(1, 7, 36), a[0]}, 1);
    });
    for (const int64_t count : {7, 8, 9, 17, 33, 100}) {
      const Args a{numbers({4, count, 5}, t)};
      expect_equal(cat("cat of ", count, " of ", what), a, [&](const Args& args) {
        std::vector<Tensor> parts;
        for (int64_t k = 0; k < count; ++k) parts.push_back(args[0].slice(1, k, k + 1).slice(2, 0, 1 + k % 5));
        return cat(parts, 2);
      });
    }
  }
  expect_equal("cat of long pieces", {numbers({3, 5000}, DType::f32), numbers({5, 1300}, DType::f32)},
               [](const Args& a) {
                 return cat({a[0], a[1].slice(0, 1, 4).slice(1, 3, 1203), a[0]}, 1);
               });
  expect_equal("cat of long rows", {numbers({3, 5000}, DType::bf16), numbers({5, 5000}, DType::bf16)},
               [](const Args& a) {
                 return cat({a[0], a[1]});
               });
  expect_equal("cat with nothing", {ones({2, 3}).eval(), zeros({2, 0}).eval()}, [](const Args& a) {
    return cat({a[1], a[0], a[1]}, 1);
  });
}

TEST(GpuIndex, ArraysArePadded) {
  manual_seed(9);
  for (const DType t : kAllTypes) {
    const std::string what(name_of(t));
    const Args a{numbers({5, 6, 30}, t)};
    if (t == DType::f32)
      for (const PadMode mode : {PadMode::constant, PadMode::reflect})
        expect_equal(cat("pad of ", what, ", mode ", static_cast<int>(mode)), a, [&](const Args& args) {
          return pad(args[0], {3, 20, -1, 2, 1, 4}, mode);
        });
    expect_equal("pad of " + what + " with 1", a, [](const Args& args) {
      return pad_constant(args[0], {0, 0, 5, -2, 7, 7}, 1);
    });
  }
  expect_equal("derivative of a slice with steps", {randn({40, 30, 20}).eval()}, [](const Args& args) {
    Tensor x = args[0] * 1;
    x = x.eval().detach().requires_grad_();
    const Tensor y = x.slice(0, 3, 37, 5).slice(2, 1, 20, 3);
    return grad(sum(flip(y, {1}) * y), {x})[0];
  });
  expect_equal("pad of nothing", {zeros({0, 3}).eval()}, [](const Args& args) {
    return pad_constant(args[0], {1, 1, 2, 2}, 7);
  });
}

TEST(GpuIndex, WindowsAreAddedUp) {
  manual_seed(10);
  for (const DType t : {DType::f32, DType::f16, DType::i32, DType::boolean})
    for (const int64_t step : {1, 3, 7}) {
      if (step != 3 && t != DType::f32) continue;
      const int64_t size = (50 - 1) * step + 5;
      expect_equal(cat("fold of ", name_of(t), " every ", step), {numbers({3, 50, 4, 5}, t)}, [&](const Args& a) {
        return fold(a[0], {3, size, 4}, 1, step);
      });
    }
}

TEST(GpuIndex, EmptyArraysAndNumbers) {
  const Tensor none = zeros({0}, {.dtype = DType::i64}).eval(), one = ids({2}, {});
  expect_equal("index_select of nothing", {ones({3, 4}).eval(), none},
               [](const Args& a) { return index_select(a[0], 1, a[1]); });
  expect_equal("index_add of nothing", {ones({3, 4}).eval(), none, zeros({3, 0}).eval()},
               [](const Args& a) { return index_add(a[0], 1, a[1], a[2]); });
  expect_equal("scatter of nothing", {ones({3}).eval(), none, zeros({0}).eval()},
               [](const Args& a) { return scatter(a[0], 0, a[1], a[2]); });
  expect_equal("embedding of nothing", {ones({3, 4}).eval(), none},
               [](const Args& a) { return embedding(a[0], a[1]); });
  expect_equal("one_hot of nothing", {none}, [](const Args& a) { return one_hot(a[0], 4); });
  expect_equal("embedding of a number", {numbers({3, 4}, DType::f32), one},
               [](const Args& a) { return embedding(a[0], a[1]); });
  expect_equal("gather of a number", {numbers({3}, DType::f32), one},
               [](const Args& a) { return gather(a[0], 0, a[1]); });
  expect_equal("bags without rows", {ones({3, 4}).eval(), none, zeros({2}, {.dtype = DType::i64}).eval()},
               [](const Args& a) { return embedding_bag(a[0], a[1], a[2], BagMode::mean); });
}

// The CPU's words, no matter where; the array that was read is as before, and the device goes on.
TEST(GpuIndex, AnIndexOutOfRangeIsReported) {
  struct Case {
    const char* name;
    Args inputs;
    Function f;
  };
  manual_seed(11);
  const auto with = [](int64_t n, int64_t bad, DType t = DType::i64) {
    std::vector<int64_t> v(static_cast<size_t>(n), 1);
    v[static_cast<size_t>(n) * 2 / 3] = bad;
    return ids(v, {n}, t);
  };
  const Tensor x = randn({5, 4}).eval(), flat = randn({5}).eval();
  const auto term = [](int64_t n) { return ones({n, 4}).eval(); };
  std::vector<Case> cases;
  for (const int64_t bad : {int64_t{-1}, int64_t{5}, INT64_MAX, INT64_MIN}) {
    cases.push_back(
        {"gather", {x, with(9, bad).reshape({3, 3}).eval()}, [](const Args& a) { return gather(a[0], 0, a[1]); }});
    cases.push_back({"index_select", {x, with(9, bad)}, [](const Args& a) { return index_select(a[0], 0, a[1]); }});
    cases.push_back({"embedding", {x, with(7, bad)}, [](const Args& a) { return embedding(a[0], a[1]); }});
    cases.push_back({"one_hot", {with(7, bad)}, [](const Args& a) { return one_hot(a[0], 5); }});
    cases.push_back({"take", {flat, with(7, bad)}, [](const Args& a) { return take(a[0], a[1]); }});
    cases.push_back({"scatter", {flat, with(7, bad), ones({7}).eval()}, [](const Args& a) {
                       return scatter(a[0], 0, a[1], a[2]);
                     }});
    cases.push_back({"scatter_add along lines",
                     {zeros({300, 5}).eval(), with(12'000, bad).reshape({300, 40}).eval(), ones({300, 40}).eval()},
                     [](const Args& a) { return scatter_add(a[0], 1, a[1], a[2]); }});
    for (const int64_t n : {7, 70, 7000}) {
      cases.push_back(
          {"index_add", {x, with(n, bad), term(n)}, [](const Args& a) { return index_add(a[0], 0, a[1], a[2]); }});
      cases.push_back({"scatter_add", {x, with(n, bad).reshape({n, 1}).eval(), term(n)}, [](const Args& a) {
                         return scatter_add(a[0], 0, a[1], a[2]);
                       }});
    }
  }
  cases.push_back({"i32", {x, with(9, -7, DType::i32)}, [](const Args& a) { return index_select(a[0], 0, a[1]); }});
  cases.push_back({"rows of nothing", {zeros({5, 0}).eval(), with(9, 5)}, [](const Args& a) {
                     return index_select(a[0], 0, a[1]);
                   }});
  const Args bag{x, with(8, 2)};
  for (const std::vector<int64_t>& wrong : std::vector<std::vector<int64_t>>{{1, 3}, {0, 5, 4, 2}, {0, 9}, {0, -1}, {}})
    for (const BagMode mode : {BagMode::sum, BagMode::max}) {
      if (wrong.empty() && mode == BagMode::max) continue;
      Args inputs = bag;
      inputs.push_back(ids(wrong, {static_cast<int64_t>(wrong.size())}));
      cases.push_back({"bags", inputs, [mode](const Args& a) { return embedding_bag(a[0], a[1], a[2], mode); }});
    }
  for (const Device d : gpus())
    for (const Case& c : cases) {
      SCOPED_TRACE(c.name);
      const Args there = moved(c.inputs, d);
      const auto words = [&](const Args& a) {
        return error_of([&] {
          static_cast<void>(c.f(a).to_vector<double>());
          backend_for(d).synchronize(d);  // nothing is read back of an empty result
        });
      };
      const std::string expected = words(c.inputs);
      EXPECT_EQ(expected[0], '[') << expected;
      EXPECT_EQ(words(there), expected);
      for (size_t k = 0; k < there.size(); ++k)
        EXPECT_EQ(there[k].to_vector<double>(), c.inputs[k].to_vector<double>()) << "input " << k << " changed";
      EXPECT_EQ((there[0] + there[0]).to_vector<double>(), (c.inputs[0] + c.inputs[0]).to_vector<double>());
    }
}

}  // namespace
}  // namespace outrace
