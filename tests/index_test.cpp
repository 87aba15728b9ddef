// Ops that take indices: values against plain loops for every dtype, errors, threads, and reported failures of others.
#include <unistd.h>

#include <bit>
#include <cmath>

#include "index_support.h"
#include "outrace/core/thread.h"
#include "outrace/graph/autograd.h"
#include "outrace/outrace.h"

namespace outrace {
namespace {

// Array shape, axis, index shape.
struct Form {
  Shape array;
  int axis;
  Shape index;
};
const std::vector<Form> kForms = {
    {{4, 5}, 0, {3, 5}},       {{4, 5}, 1, {4, 7}},       {{4, 5}, 1, {2, 3}},    {{3, 4, 5}, 1, {3, 6, 5}},
    {{3, 4, 5}, 1, {2, 6, 4}}, {{3, 4, 5}, 2, {3, 4, 1}}, {{7}, 0, {9}},          {{1, 1}, 0, {1, 1}},
    {{5, 4}, 0, {0, 4}},       {{2, 1300}, 0, {3, 1300}}, {{2, 9}, 1, {2, 1300}}, {{}, 0, {}},
    {{0, 4}, 1, {0, 2}}};

std::vector<int64_t> some_ids(const Shape& s, int64_t size) {
  std::vector<int64_t> v(static_cast<size_t>(s.numel()));
  for (size_t i = 0; i < v.size(); ++i) v[i] = static_cast<int64_t>(i * i + 3 * i + 2) % size;
  return v;
}

// Where an index's element points to in the array.
int64_t target(const Form& f, const std::vector<int64_t>& index, int64_t i) {
  std::vector<int64_t> p = place_of(f.index, i);
  if (p.empty()) return 0;
  p[f.axis] = index[i];
  return at_place(f.array, p);
}

int64_t size_of_axis(const Form& f) { return f.array.rank() == 0 ? 1 : f.array[f.axis]; }

TEST(Index, GatherAndScatterOfEveryTypeAgainstLoops) {
  for (DType t : kAllTypes)
    for (DType it : {DType::i64, DType::i32})
      for (const Form& f : kForms) {
        SCOPED_TRACE(cat(name_of(t), " ", f.array, " axis ", f.axis, " index ", f.index, " ", name_of(it)));
        const std::vector<int64_t> index = some_ids(f.index, size_of_axis(f));
        const Values array = whole_numbers(f.array, t), source = whole_numbers(f.index, t, 3);
        Values read(index.size()), put = array, added = array;
        for (size_t i = 0; i < index.size(); ++i) {
          const auto to = static_cast<size_t>(target(f, index, static_cast<int64_t>(i)));
          read[i] = array[to];
          put[to] = source[i];
          added[to] = t == DType::boolean ? std::max(added[to], source[i]) : added[to] + source[i];
          if (t == DType::u8) added[to] = static_cast<double>(static_cast<int64_t>(added[to]) % 256);
        }
        const Tensor x = make(array, f.array, t), s = make(source, f.index, t), at = ids(index, f.index, it);
        expect_values(gather(x, f.axis, at), f.index, read, "gather");
        expect_values(scatter(x, f.axis, at, s), f.array, put, "scatter");
        added = make(added, f.array, t).to_vector<double>();  // rounded once
        expect_values(scatter_add(x, f.axis, at, s), f.array, added, "scatter_add");
        expect_values(x, f.array, array, "the argument");
      }
}

TEST(Index, RowsOfEveryTypeAgainstLoops) {
  const std::vector<Form> forms = {{{5, 3}, 0, {7}},   {{3, 5}, 1, {7}},    {{2, 5, 3}, 1, {4}},
                                   {{5}, 0, {9}},      {{2, 6, 0}, 1, {3}}, {{9, 2}, 0, {0}},
                                   {{200, 3}, 0, {2}}, {{3, 600}, 0, {5}},  {{2, 3, 70000}, 1, {4}}};
  for (DType t : kAllTypes)
    for (const Form& f : forms) {
      SCOPED_TRACE(cat(name_of(t), " ", f.array, " axis ", f.axis, " n ", f.index));
      const std::vector<int64_t> index = some_ids(f.index, f.array[f.axis]);
      const Shape rows = f.array.with(f.axis, f.index.numel());
      const Values array = whole_numbers(f.array, t), source = whole_numbers(rows, t, 3);
      Values added = array, copied = array;
      for (size_t i = 0; i < source.size(); ++i) {
        std::vector<int64_t> p = place_of(rows, static_cast<int64_t>(i));
        p[f.axis] = index[p[f.axis]];
        const auto to = static_cast<size_t>(at_place(f.array, p));
        added[to] = t == DType::boolean ? std::max(added[to], source[i]) : added[to] + source[i];
        copied[to] = source[i];
      }
      const Tensor x = make(array, f.array, t), s = make(source, rows, t), at = ids(index, f.index, DType::i32);
      const auto chosen = [&](std::vector<int64_t> p) {
        p[f.axis] = index[p[f.axis]];
        return array[at_place(f.array, p)];
      };
      expect_values(index_select(x, f.axis, at), rows, by_place(rows, chosen), "index_select");
      expect_values(index_add(x, f.axis, at, s), f.array, added, "index_add");
      expect_values(index_copy(x, f.axis, at, s), f.array, copied, "index_copy");
      // The same of views.
      const Tensor turned = make(array, f.array, t).transpose(0, -1);
      const int axis = f.axis == 0 ? f.array.rank() - 1 : f.axis == f.array.rank() - 1 ? 0 : f.axis;
      const Shape back = turned.shape().with(axis, f.index.numel());
      expect_values(index_select(turned, axis, at).transpose(0, -1), rows, by_place(rows, chosen), "of a view");
      ASSERT_EQ(index_select(turned, axis, at).shape(), back);
    }
}

TEST(Index, TakeOneHotAndMasks) {
  const Tensor x = make(whole_numbers({3, 4}, DType::f32), {3, 4}, DType::f32);
  const Values v = x.to_vector<double>();
  expect_values(take(x.t(), ids({0, 1, 11}, {3, 1})), {3, 1}, {v[0], v[4], v[11]});
  expect_values(one_hot(ids({2, 0}), 3), {2, 3}, {0, 0, 1, 1, 0, 0});
  EXPECT_EQ(one_hot(ids({2, 0}), 3).dtype(), DType::i64);
  for (DType t : kAllTypes) expect_values(one_hot(ids({1, 0}, {2, 1}, DType::i32), 2, t), {2, 1, 2}, {0, 1, 1, 0});
  const Tensor mask = x > 6;
  Values filled = v, kept;
  std::vector<double> places;
  for (size_t i = 0; i < v.size(); ++i) {
    if (v[i] <= 6) continue;
    filled[i] = -1;
    kept.push_back(v[i]);
    places.insert(places.end(), {static_cast<double>(i / 4), static_cast<double>(i % 4)});
  }
  const auto count = static_cast<int64_t>(kept.size());
  expect_values(masked_fill(x, mask, -1), {3, 4}, filled);
  expect_values(masked_select(x, mask), {count}, kept);
  expect_values(nonzero(mask), {count, 2}, places);
  expect_values(nonzero(zeros({2, 3})), {0, 2}, {});
  expect_values(nonzero(full({}, 3)), {1, 0}, {});
  expect_values(masked_select(make({5}, {1}, DType::i32), make({1, 0, 1}, {3}, DType::boolean)), {2}, {5, 5});
  EXPECT_EQ(masked_fill(make({1, 2}, {2}, DType::u8), make({1, 0}, {2}, DType::boolean), 9).dtype(), DType::u8);
  expect_values(masked_fill(make({0, 1}, {2}, DType::boolean), make({1, 0}, {2}, DType::boolean), 1), {2}, {1, 1});
}

TEST(Index, ErrorsNameOpPositionIndexAndSize) {
  const Tensor x = zeros({3, 4});
  const auto says = [](const std::function<Tensor()>& f, const std::string& part) {
    const std::string text = error_of([&] { f().eval(); });
    EXPECT_NE(text.find(part), std::string::npos) << text << " for " << part;
  };
  says(
      [&] {
        return gather(x, 1, ids({0, 1, 2, 4}, {2, 2}));
      },
      "[gather] index 4 at position [1, 1] is out of range: axis 1 has 4 entries");
  says([&] { return gather(x, 0, ids({-1}, {1, 1})); }, "[gather] index -1 at position [0, 0]");
  says(
      [&] {
        return index_select(x, 0, ids({2, 3}));
      },
      "[index_select] index 3 at position [1] is out of range: axis 0");
  says([&] { return take(x, ids({12})); }, "[take] index 12 at position [0] is out of range: axis 0 has 12 entries");
  says([&] { return scatter(x, 1, ids({0, -2}, {2, 1}), 1.0); }, "[scatter] index -2 at position [1, 0]");
  says([&] { return scatter_add(x, 0, ids({3}, {1, 1}), ones({1, 1})); }, "[scatter_add] index 3 at position [0, 0]");
  says([&] { return index_add(x, 0, ids({0, 5}), ones({2, 4})); }, "[index_add] index 5 at position [1]");
  says([&] { return index_copy(x, 0, ids({0, 5}), ones({2, 4})); }, "[scatter] index 5 at position [1, 0]");
  says([&] { return embedding(x, ids({0, 1, 7}, {1, 3})); }, "[embedding] index 7 at position [0, 2]");
  says([&] { return one_hot(ids({4}), 4); }, "[one_hot] index 4 at position [0] is out of range: axis 1 has 4 entries");
  says([&] { return index_select(zeros({0, 2}), 0, ids({0})); }, "axis 0 has 0 entries");
  says([&] { return index_select(zeros({2, 0}), 0, ids({2})); }, "[index_select] index 2 at position [0]");
  // At once: what shapes and types show.
  says([&] { return gather(x, 1, ones({2, 2})); }, "[gather] the index must be i64 or i32; got f32");
  says([&] { return gather(x, 1, ids({0, 0, 0, 0}, {4, 1})); }, "nowhere larger than the array but along axis 1");
  says([&] { return gather(x, 1, ids({0})); }, "got index [1] and array [3, 4]");
  says([&] { return scatter(x, 1, ids({0, 1}, {1, 2}), ones({1, 1})); }, "nowhere larger than the source");
  says(
      [&] {
        return scatter_add(x, 1, ids({0}, {1, 1}), ones({1, 1}, {.dtype = DType::f64}));
      },
      "[scatter_add] both arrays must have one dtype; got f32 and f64");
  says([&] { return index_select(x, 2, ids({0})); }, "[index_select] axis out of range");
  says([&] { return index_select(x, 0, ids({0}, {1, 1})); }, "the index must be a vector");
  says([&] { return index_add(x, 0, ids({0}), ones({2, 4})); }, "[index_add] needs an index [n]");
  says([&] { return masked_fill(x, x, 1); }, "[masked_fill] the mask must be bool; got f32");
  says([&] { return masked_fill(cast(x, DType::i32), x > 1, 0.5); }, "must be a whole number for i32; got 0.5");
  says([&] { return one_hot(ids({0}), 0); }, "[one_hot] needs at least one class");
  // Each kind.
  try {
    gather(x, 1, ids({9}, {1, 1})).eval();
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::value);
  }
}

TEST(Index, WhatDependsOnValuesIsRefusedInACapture) {
  for (bool select : {true, false}) {
    auto step = capture([&](const Tensor& x) { return select ? masked_select(x, x > 0) : nonzero(x); });
    const std::string text = error_of([&] { step(ones({3})); });
    EXPECT_NE(text.find(select ? "[masked_select] the shape" : "[nonzero] the shape"), std::string::npos) << text;
  }
  auto step = capture([](const Tensor& w, const Tensor& i) { return embedding(w, i) * 2; });
  const Tensor w = make({1, 2, 3}, {3, 1}, DType::f32);
  expect_values(step(w, ids({0, 2})), {2, 1}, {2, 6});
  expect_values(step(w, ids({1, 1})), {2, 1}, {4, 4});
  EXPECT_NE(error_of([&] { step(w, ids({1, 3})); }).find("[embedding] index 3"), std::string::npos);
  expect_values(step(w, ids({2, 0})), {2, 1}, {6, 2});
}

// Sums in order of position whatever the number of threads.
TEST(Index, TheSameBitsForAnyNumberOfThreads) {
  manual_seed(3);
  const Tensor base = randn({40, 64}).eval(), terms = randn({5000, 64}).eval(), line = randn({20000}).eval();
  const Tensor rows = randint(0, 40, {5000}).eval(), places = randint(0, 40, {5000, 64}).eval();
  const Tensor spots = randint(0, 300, {20000}).eval(), far = randint(0, 20000, {50000}).eval();
  const auto all = [&] {
    std::vector<std::vector<float>> v;
    v.push_back(index_add(base, 0, rows, terms).to_vector<float>());
    v.push_back(scatter_add(base, 0, places, terms).to_vector<float>());
    v.push_back(scatter_add(zeros({300}), 0, spots, line).to_vector<float>());
    v.push_back(scatter(base, 0, places, terms).to_vector<float>());
    v.push_back(gather(line, 0, far).to_vector<float>());
    v.push_back(gather(terms, 1, slice(places, 1, 0, 9)).to_vector<float>());
    v.push_back(fold(terms.slice(0, 0, 4000), {6000}, 0, 1).to_vector<float>());
    return v;
  };
  const int before = num_threads();
  set_num_threads(1);
  const auto expected = all();
  for (int threads : {2, 3, 7}) {
    set_num_threads(threads);
    EXPECT_EQ(all(), expected) << threads;
  }
  set_num_threads(before);
  // In order of position: the plain loop's bits.
  const std::vector<float> t = terms.to_vector<float>();
  std::vector<float> sums = base.to_vector<float>();
  const std::vector<int64_t> r = rows.to_vector<int64_t>();
  for (size_t i = 0; i < t.size(); ++i) sums[r[i / 64] * 64 + i % 64] += t[i];
  EXPECT_EQ(expected[0], sums);
}

// 16-bit sums are kept in f32: 1 + 1 + ... would end at 256 in bf16.
TEST(Index, NarrowSumsAreRoundedOnce) {
  for (DType t : {DType::bf16, DType::f16}) {
    const Tensor many = ones({1000, 1}, {.dtype = t});
    EXPECT_EQ(index_add(zeros({1, 1}, {.dtype = t}), 0, zeros({1000}, {.dtype = DType::i64}), many).item(), 1000);
    EXPECT_EQ(scatter_add(zeros({1, 1}, {.dtype = t}), 0, zeros({1000, 1}, {.dtype = DType::i64}), many).item(), 1000);
    EXPECT_EQ(fold(ones({1, 1, 1000}, {.dtype = t}).reshape({1, 1000}), {1000}, 0, 1).to_vector<double>()[5], 1);
    EXPECT_EQ(fold(ones({1000, 1000}, {.dtype = t}), {1999}, 0, 1).to_vector<double>()[999], 1000);
  }
}

// The bits of what is moved do not change, NaN's payload and -0 included.
TEST(Index, MovesBits) {
  const float nan = std::bit_cast<float>(0x7fc12345u), tiny = 1e-42f;
  const Tensor x = Tensor::from(std::vector<float>{nan, -0.0f, tiny, HUGE_VALF}, {4, 1});
  const auto bits = [](const Tensor& t) {
    std::vector<uint32_t> out;
    for (float v : t.to_vector<float>()) out.push_back(std::bit_cast<uint32_t>(v));
    return out;
  };
  const auto expected = bits(x);
  const Tensor all = ids({0, 1, 2, 3});
  EXPECT_EQ(bits(gather(x, 0, all.reshape({4, 1}))), expected);
  EXPECT_EQ(bits(index_select(x, 0, all)), expected);
  EXPECT_EQ(bits(scatter(zeros({4, 1}), 0, all.reshape({4, 1}), x)), expected);
  EXPECT_EQ(bits(cat({x.slice(0, 0, 2), x.slice(0, 2, 4)})), expected);
  EXPECT_EQ(bits(index_add(x, 0, ids({}), zeros({0, 1}))), expected);
  EXPECT_EQ(bits(flip(flip(x))), expected);
}

// Of two elements written to one place the later one gets the gradient.
TEST(Index, GradientOfScatterGoesToWhatWasKept) {
  Tensor source = make({1, 2, 3}, {3}, DType::f64).requires_grad_();
  Tensor x = make({5, 6}, {2}, DType::f64).requires_grad_();
  sum(scatter(x, 0, ids({1, 1, 1}), source) * make({10, 20}, {2}, DType::f64)).backward();
  expect_values(source.grad(), {3}, {0, 0, 20});
  expect_values(x.grad(), {2}, {10, 0});
}

// Case P-040, pytorch#6411
TEST(Index, PaddingRowIsReadAndNotTrained) {
  Tensor w = full({3, 2}, 5).requires_grad_();
  optim::SGD sgd({w}, {.lr = 1});
  const Tensor y = embedding(w, ids({0, 1, 1}), 0);
  expect_values(y, {3, 2}, {5, 5, 5, 5, 5, 5});
  sum(y).backward();
  expect_values(w.grad(), {3, 2}, {0, 0, 2, 2, 0, 0});
  sgd.step();
  expect_values(w, {3, 2}, {5, 5, 3, 3, 5, 5});
}

// Case P-041, fairseq#4076
TEST(Index, PaddingAbsentOrNegative) {
  const auto gradient = [](std::optional<int64_t> padding) {
    Tensor w = ones({4, 4}).requires_grad_();
    sum(embedding(w, ids({0, 1, 2, 3}), padding)).backward();
    return sum(w.grad(), {{1}}).to_vector<double>();
  };
  EXPECT_EQ(gradient(std::nullopt), (Values{4, 4, 4, 4}));
  EXPECT_EQ(gradient(-1), (Values{4, 4, 4, 0}));
  EXPECT_NE(error_of([&] { gradient(4); }).find("padding_idx must name one of the 4 rows; got 4"), std::string::npos);
  EXPECT_NE(error_of([&] { gradient(-5); }).find("got -5"), std::string::npos);
  for (int64_t wrong : {-1, 4})
    EXPECT_NE(error_of([&] {
                embedding(ones({4, 4}), ids({wrong})).eval();
              }).find(cat("[embedding] index ", wrong)),
              std::string::npos);
}

// Case P-043, pytorch#11739 and others
TEST(Index, BagsThatAreEmptyAndTheirGradients) {
  Values table;
  for (int i = 0; i < 5; ++i) table.insert(table.end(), {1.0 * i, 10.0 * i});
  const Tensor index = ids({0, 1, 2, 3, 4});
  const auto bags = [&](BagMode mode, const std::vector<int64_t>& offsets) {
    return embedding_bag(make(table, {5, 2}, DType::f32), index, ids(offsets), mode);
  };
  const std::vector<int64_t> offsets{0, 1, 1, 3, 3, 4};
  expect_values(bags(BagMode::mean, offsets), {6, 2}, {0, 0, 0, 0, 1.5, 15, 0, 0, 3, 30, 4, 40});
  expect_values(bags(BagMode::sum, offsets), {6, 2}, {0, 0, 0, 0, 3, 30, 0, 0, 3, 30, 4, 40});
  expect_values(bags(BagMode::max, offsets), {6, 2}, {0, 0, 0, 0, 2, 20, 0, 0, 3, 30, 4, 40});
  expect_values(bags(BagMode::mean, {0, 1, 5}), {3, 2}, {0, 0, 2.5, 25, 0, 0});
  for (BagMode mode : {BagMode::sum, BagMode::mean, BagMode::max}) {
    Tensor w = make(table, {5, 2}, DType::f32).requires_grad_();
    sum(embedding_bag(w, index, ids(offsets), mode)).backward();
    const double one = mode == BagMode::sum    ? 1
                       : mode == BagMode::mean ? 0.5
                                               : 0,
                 two = mode == BagMode::mean ? 0.5 : 1;
    expect_values(w.grad(), {5, 2}, {1, 1, one, one, two, two, 1, 1, 1, 1});
    for (const std::vector<int64_t>& bad : {std::vector<int64_t>{0, 6}, {3, 1}, {0, 3, 1}, {}})
      EXPECT_NE(error_of([&] { bags(mode, bad).eval(); }).find("[embedding_bag]"), std::string::npos);
    EXPECT_NE(error_of([&] { embedding_bag(w, ids({-1923}), ids({0}), mode).eval(); }).find("[embedding] index -1923"),
              std::string::npos);
    expect_values(embedding_bag(w, ids({}), ids({0, 0}), mode), {2, 2}, {0, 0, 0, 0}, "no indices");
  }
  // Negative numbers: an empty bag is still 0, and NaN wins.
  const Tensor low = make({-1, -2, NAN, -5}, {2, 2}, DType::f64);
  expect_values(embedding_bag(low, ids({0, 1}), ids({0, 2}), BagMode::max), {2, 2}, {NAN, -2, 0, 0});
}

int64_t available_bytes() { return sysconf(_SC_AVPHYS_PAGES) * sysconf(_SC_PAGESIZE); }

// Case P-053, onnxruntime#28107: rows that begin beyond 2^31.
TEST(Index, RowsBeyondTwoToThe31) {
  constexpr int64_t kRows = 262144, kColumns = 8960;
  static_assert(int64_t{239674} * kColumns + 8959 == 2147487999);
  if (available_bytes() < int64_t{4} << 30) GTEST_SKIP() << "needs 4 GB";
  SliceAttrs at;
  at.step.fill(1);
  at.start[0] = 255999;
  at.start[1] = 7;
  const Tensor table = pad(make({7}, {1, 1}, DType::u8), {kRows, kColumns}, at).eval();
  const std::vector<int64_t> rows{0, 239673, 239674, 255999};
  Values expected(4 * kColumns, 0);
  expected[3 * kColumns + 7] = 7;
  expect_values(index_select(table, 0, ids(rows)), {4, kColumns}, expected, "index_select");
  expect_values(embedding(table, ids(rows)), {4, kColumns}, expected, "embedding");
  expect_values(gather(table, 0, expand(ids(rows, {4, 1}), {4, kColumns})), {4, kColumns}, expected, "gather");
  expect_values(take(table, ids({2147487999, 255999 * kColumns + 7})), {2}, {0, 7}, "take");
  expect_values(table[255999].slice(0, 5, 9), {4}, {0, 0, 7, 0}, "slice");
}

// Case P-097, pytorch#74079
TEST(Index, AnErrorLeavesTheDeviceWorking) {
  const Tensor x = arange(10).eval();
  const Tensor bad = gather(x, 0, ids({11})), later = x * 2;
  EXPECT_NE(error_of([&] { bad.eval(); }).find("[gather] index 11 at position [0] is out of range: axis 0 has 10"),
            std::string::npos);
  expect_values(gather(x, 0, ids({3})), {1}, {3});
  expect_values(later.slice(0, 8, 10), {2}, {16, 18});
}

// A step that fails leaves parameters, optimizer and gradients as they were.
TEST(Index, AFailedStepChangesNothing) {
  Tensor table = ones({4, 2}).requires_grad_(), w = full({2}, 3).requires_grad_();
  optim::SGD sgd({table, w}, {.lr = 0.5});
  const auto step = [&](const std::vector<int64_t>& at) {
    sgd.zero_grad();
    const Tensor loss = sum(embedding(table, ids(at)) * w);
    loss.backward();
    sgd.step();
  };
  EXPECT_NE(error_of([&] { step({0, 4}); }).find("[embedding] index 4"), std::string::npos);
  expect_values(table, {4, 2}, Values(8, 1));
  expect_values(w, {2}, {3, 3});
  step({0, 1});
  expect_values(table, {4, 2}, {-0.5, -0.5, -0.5, -0.5, 1, 1, 1, 1});
  expect_values(w, {2}, {2, 2});
}

TEST(Index, AnEmptyIndexKeepsTheArray) {
  const Tensor x = arange(12).reshape({3, 4}).eval(), none = zeros({0, 4}, {.dtype = DType::i64}),
               source = zeros({0, 4});
  EXPECT_EQ(scatter(x, 1, none, source).to_vector<float>(), x.to_vector<float>());
  EXPECT_EQ(scatter_add(x, 1, none, source).to_vector<float>(), x.to_vector<float>());
  Tensor leaf = (x * 1).eval().detach().requires_grad_();
  const Tensor y = gather(leaf, 1, none);
  EXPECT_EQ(grad(sum(y) + sum(leaf) * 0, {leaf})[0].to_vector<float>(), std::vector<float>(12, 0));
}

}  // namespace
}  // namespace outrace
