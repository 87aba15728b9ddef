// Ops that join, cut, pad, turn and repeat: values against plain loops, views read by every kind of op, errors.
#include <algorithm>

#include "index_support.h"
#include "outrace/core/thread.h"
#include "outrace/graph/autograd.h"
#include "outrace/graph/program_cache.h"
#include "outrace/outrace.h"
#include "tile_support.h"

namespace outrace {
namespace {

using Place = std::vector<int64_t>;

// Views are read by code that is compiled for each instruction set; programs keep what they were compiled for.
class MovementOfEachIsa : public test::EachIsa {
 protected:
  void SetUp() override {
    EachIsa::SetUp();
    ProgramCache::global().clear();
  }
};
INSTANTIATE_TEST_SUITE_P(Isas, MovementOfEachIsa, testing::ValuesIn(test::isas_here()), test::isa_name);

Tensor numbers(const Shape& s, DType t = DType::f32, int64_t seed = 1) { return make(whole_numbers(s, t, seed), s, t); }

void expect_error(const std::function<Tensor()>& f, const std::string& part) {
  const std::string text = error_of([&] { f().eval(); });
  EXPECT_NE(text.find(part), std::string::npos) << text << " for " << part;
}

// Every element of `got` is the element of x at the place that `from` names.
void expect_moved(const Tensor& got, const Shape& shape, const Tensor& x,
                  const std::function<Place(const Place&)>& from, const std::string& what) {
  const Values v = x.to_vector<double>();
  expect_values(got, shape, by_place(shape, [&](const Place& p) { return v[at_place(x.shape(), from(p))]; }), what);
}

TEST(Movement, CatOfEveryType) {
  for (DType t : kAllTypes)
    for (int axis = 0; axis < 3; ++axis)
      for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{1}, {2, 0, 3}, {1, 1, 1, 1}, {0, 0}, {300, 5}}) {
        std::vector<Tensor> parts;
        std::vector<Values> values;
        int64_t total = 0;
        for (int64_t n : sizes) {
          const Shape s = Shape{2, 3, 4}.with(axis, n);
          values.push_back(whole_numbers(s, t, n));
          parts.push_back(make(values.back(), s, t));
          total += n;
        }
        const Shape shape = Shape{2, 3, 4}.with(axis, total);
        const Values expected = by_place(shape, [&](Place p) {
          size_t k = 0;
          for (; p[axis] >= sizes[k]; ++k) p[axis] -= sizes[k];
          return values[k][at_place(parts[k].shape(), p)];
        });
        const Tensor y = cat(parts, axis);
        EXPECT_EQ(y.dtype(), t);
        expect_values(y, shape, expected, cat(name_of(t), " axis ", axis));
        // Of views: slices along the axis are read in place, transposed ones copied first.
        std::vector<Tensor> slices, turned;
        for (const Tensor& p : parts) {
          const Tensor wide = cat({p, p, p}, axis).eval();
          slices.push_back(wide.slice(axis, p.shape()[axis], 2 * p.shape()[axis]));
          turned.push_back(p.permute({2, 1, 0}).eval().permute({2, 1, 0}));
        }
        expect_values(cat(slices, axis), shape, expected, "of slices");
        expect_values(cat(turned, axis), shape, expected, "of transposes");
      }
}

TEST(Movement, CatPromotesAndTakesAnyNumber) {
  EXPECT_EQ(cat({numbers({2}, DType::i32), numbers({2}, DType::bf16)}).dtype(), DType::bf16);
  EXPECT_EQ(cat({numbers({2}, DType::f16), numbers({2}, DType::bf16)}).dtype(), DType::f32);
  EXPECT_EQ(cat({numbers({2}, DType::boolean), numbers({2}, DType::u8)}).dtype(), DType::u8);
  EXPECT_EQ(cat({numbers({0}, DType::f64), numbers({2}, DType::u8)}).dtype(), DType::f64);
  std::vector<Tensor> many;
  std::vector<Tensor> rows;
  Values expected;
  for (int i = 0; i < 2500; ++i) {
    many.push_back(full({2}, i).requires_grad_());
    expected.insert(expected.end(), {1.0 * i, 1.0 * i});
  }
  const Tensor y = cat(many);
  expect_values(y, {5000}, expected);
  sum(y * y).backward();
  expect_values(many[2499].grad(), {2}, {4998, 4998});
  // Numbers without memory of their own, repeated rows, values computed in the same program.
  const Tensor x = numbers({3});
  expect_values(stack({sum(x), full({}, 2), max(x)}), {3}, {sum(x).item(), 2, max(x).item()});
  expect_values(cat({expand(x * 2, {2, 3}), expand(full({1, 1}, 1), {1, 3})}), {3, 3}, [&] {
    Values v = (x * 2).to_vector<double>(), out = v;
    out.insert(out.end(), v.begin(), v.end());
    out.insert(out.end(), {1, 1, 1});
    return out;
  }());
  expect_error([&] { return cat({}); }, "[cat] needs at least one array");
  expect_error([&] { return cat({x, numbers({3, 1})}); }, "[cat] all sizes but that of axis 0 must be equal; got [3]");
  expect_error([&] { return cat({numbers({2, 3}), numbers({2, 4})}, 0); }, "at position 1, [2, 4]");
  expect_error([&] { return cat({full({}, 1)}); }, "[cat] axis out of range");
  expect_error(
      [&] {
        return stack({x, numbers({4})});
      },
      "[stack] all shapes must be equal; got [3] and, at position 1");
}

TEST(Movement, LargeCatsForAnyNumberOfThreads) {
  const Tensor a = numbers({700, 900}), b = numbers({700, 1100}, DType::f32, 2);
  const auto all = [&] {
    return std::vector<std::vector<float>>{
        cat({a, b}, 1).to_vector<float>(),
        cat({a.slice(1, 3, 800), b.slice(1, 100, 897), a.slice(1, 0, 797)}).to_vector<float>(),
        stack({a, a * 2}, 2).to_vector<float>(), roll(b, 77, 0).to_vector<float>()};
  };
  const int before = num_threads();
  set_num_threads(1);
  const auto expected = all();
  EXPECT_EQ(expected[0][2000 * 5 + 900 + 17], b.to_vector<float>()[1100 * 5 + 17]);
  set_num_threads(3);
  EXPECT_EQ(all(), expected);
  set_num_threads(before);
}

TEST(Movement, SplitChunkUnbindNarrowSelect) {
  const Tensor x = numbers({5, 4});
  const auto sizes = [](const std::vector<Tensor>& parts, int axis) {
    std::vector<int64_t> out;
    for (const Tensor& p : parts) out.push_back(p.shape()[axis]);
    return out;
  };
  EXPECT_EQ(sizes(split(x, 2), 0), (Place{2, 2, 1}));
  EXPECT_EQ(sizes(split(x, {1, 0, 3}, 1), 1), (Place{1, 0, 3}));
  EXPECT_EQ(sizes(chunk(x, 3), 0), (Place{2, 2, 1}));
  EXPECT_EQ(sizes(chunk(x, 4), 0), (Place{2, 2, 1}));
  EXPECT_EQ(sizes(chunk(zeros({0, 2}), 4), 0), (Place{0}));
  const std::vector<Tensor> columns = unbind(x, 1);
  ASSERT_EQ(columns.size(), 4u);
  expect_moved(
      columns[2], {5}, x,
      [](const Place& p) {
        return Place{p[0], 2};
      },
      "unbind");
  expect_moved(
      select(x, 0, -2), {4}, x,
      [](const Place& p) {
        return Place{3, p[0]};
      },
      "select");
  expect_moved(
      narrow(x, 1, 1, 2), {5, 2}, x,
      [](const Place& p) {
        return Place{p[0], p[1] + 1};
      },
      "narrow");
  expect_values(cat(split(x, 2)), {5, 4}, x.to_vector<double>());
  expect_error([&] { return split(x, 0)[0]; }, "[split] the size must be positive; got 0");
  expect_error([&] { return split(x, {2, 2})[0]; }, "[split] the sizes must add up to 5");
  expect_error([&] { return chunk(x, 0)[0]; }, "[chunk] the count must be positive");
  expect_error([&] { return narrow(x, 0, 4, 2); }, "[narrow] entries 4 to 4 + 2 must lie within the 5 of axis 0");
  expect_error([&] { return select(x, 1, 4); }, "[select] axis 1 has 4 entries; got position 4");
}

TEST_P(MovementOfEachIsa, FlipIsReadBackwardsByEveryOp) {
  for (DType t : kAllTypes)
    for (const Shape& s : {Shape{3, 4}, Shape{2, 3, 700}, Shape{1, 5}, Shape{0, 3}, Shape{33, 40}}) {
      const Tensor x = numbers(s, t);
      const int last = s.rank() - 1;
      expect_moved(
          flip(x, {-1}), s, x, [&](Place p) { return p[last] = s[last] - 1 - p[last], p; },
          cat(name_of(t), " last ", s));
      expect_moved(
          flip(x, {0}), s, x, [&](Place p) { return p[0] = s[0] - 1 - p[0], p; }, "first");
      expect_moved(
          flip(x), s, x,
          [&](Place p) {
            for (int i = 0; i <= last; ++i) p[i] = s[i] - 1 - p[i];
            return p;
          },
          "all");
      expect_moved(
          flip(x.transpose(0, -1), {0}), x.transpose(0, -1).shape(), x,
          [&](Place p) { return p[0] = s[last] - 1 - p[0], std::swap(p[0], p[last]), p; }, "of a transpose");
    }
  const Tensor x = numbers({6, 8}, DType::f64), back = flip(x).eval();
  expect_values(sum(flip(x), {{1}}), {6}, sum(back, {{1}}).to_vector<double>());
  expect_values(max(flip(x, {1}) - x, {{0}}), {8}, max(flip(x, {1}).eval() - x, {{0}}).to_vector<double>());
  expect_values(matmul(flip(x), x.t()), {6, 6}, matmul(back, x.t()).to_vector<double>());
  expect_values(matmul(x, flip(x).t()), {6, 6}, matmul(x, back.t()).to_vector<double>());
  expect_values(softmax(flip(x)), {6, 8}, softmax(back).to_vector<double>());
  expect_values(flip(x).slice(1, 2, 8, 3).reshape({12}), {12}, back.slice(1, 2, 8, 3).to_vector<double>());
  expect_values(cat({flip(x), x}), {12, 8}, cat({back, x}).to_vector<double>());
  expect_values(index_select(flip(x), 0, ids({0})), {1, 8}, back[0].to_vector<double>());
  expect_values(flip(full({}, 3)), {}, {3});
  expect_error([&] { return flip(x, {0, -2}); }, "[flip] names axis -2 twice");
}

TEST(Movement, RollRepeatTileInterleave) {
  const Tensor x = numbers({3, 4}, DType::i32);
  for (int64_t by : {0, 1, -1, 5, -9})
    expect_moved(
        roll(x, by, 1), {3, 4}, x, [&](Place p) { return p[1] = ((p[1] - by) % 4 + 4) % 4, p; }, "roll");
  expect_moved(
      repeat(x, {2, 1, 3}), {2, 3, 12}, x,
      [](const Place& p) {
        return Place{p[1], p[2] % 4};
      },
      "repeat");
  expect_moved(
      tile(x, {3}), {3, 12}, x,
      [](const Place& p) {
        return Place{p[0], p[1] % 4};
      },
      "tile");
  expect_moved(
      repeat_interleave(x, 2, 0), {6, 4}, x,
      [](const Place& p) {
        return Place{p[0] / 2, p[1]};
      },
      "each");
  expect_moved(
      repeat_interleave(x, {0, 3, 1, 0}, 1), {3, 4}, x,
      [](const Place& p) {
        return Place{p[0], p[1] < 3 ? 1 : 2};
      },
      "each its own");
  expect_values(repeat(x, {0, 1}), {0, 4}, {});
  expect_values(roll(zeros({0}), 1, 0), {0}, {});
  expect_values(repeat(full({}, 2), {3}), {3}, {2, 2, 2});
  expect_error([&] { return repeat(x, {2}); }, "[repeat] needs a number for each of the 2 axes");
  expect_error([&] { return repeat(x, {2, -1}); }, "[repeat] a number must not be negative; got -1");
  expect_error([&] { return repeat_interleave(x, {1, 1}, 1); }, "needs a number for each of the 4 entries");
  expect_error([&] { return roll(x, std::vector<int64_t>{1}, {0, 1}); }, "[roll] needs one shift an axis");
}

TEST(Movement, AxesMovedSplitAndDropped) {
  const Tensor x = numbers({2, 3, 4});
  expect_moved(
      movedim(x, 0, 2), {3, 4, 2}, x,
      [](const Place& p) {
        return Place{p[2], p[0], p[1]};
      },
      "movedim");
  expect_moved(
      swapaxes(x, 0, -1), {4, 3, 2}, x,
      [](const Place& p) {
        return Place{p[2], p[1], p[0]};
      },
      "swapaxes");
  EXPECT_EQ(unflatten(x, 2, {2, -1}).shape(), (Shape{2, 3, 2, 2}));
  EXPECT_EQ(squeeze(numbers({1, 3, 1})).shape(), Shape{3});
  EXPECT_EQ(squeeze(numbers({1, 1})).shape(), Shape{});
  EXPECT_EQ(broadcast_to(numbers({3, 1}), {2, 3, 4}).shape(), (Shape{2, 3, 4}));
  EXPECT_EQ(contiguous(x).node_ptr(), x.node_ptr());
  expect_error([&] { return unflatten(x, 2, {3, 2}); }, "[unflatten] the sizes must multiply to 4");
  expect_error([&] { return unflatten(x, 2, {3, -1}); }, "[unflatten] 4 elements are no multiple of 3");
}

TEST(Movement, PadOfEveryTypeAndMode) {
  struct Pads {
    Shape shape;
    std::vector<int64_t> pads;
  };
  const std::vector<Pads> cases = {
      {{3, 4}, {1, 2}}, {{3, 4}, {3, 0, 2, 1}}, {{3, 4}, {-1, 2, 1, -2}}, {{2, 3, 700}, {5, 6, 1, 1}},
      {{4}, {-2, -1}},  {{3, 4}, {}},           {{3, 4}, {-4, 3}},        {{3, 4}, {3, -5}}};
  for (DType t : kAllTypes)
    for (const Pads& c : cases)
      for (PadMode mode : {PadMode::constant, PadMode::reflect, PadMode::replicate, PadMode::circular}) {
        const Tensor x = numbers(c.shape, t);
        const Values v = x.to_vector<double>();
        Shape shape = c.shape;
        std::vector<int64_t> before(4, 0);
        for (size_t i = 0; i < c.pads.size() / 2; ++i) {
          const int axis = c.shape.rank() - 1 - static_cast<int>(i);
          before[axis] = c.pads[2 * i];
          shape = shape.with(axis, shape[axis] + before[axis] + c.pads[2 * i + 1]);
        }
        const Values expected = by_place(shape, [&](Place p) {
          for (size_t i = 0; i < p.size(); ++i) {
            const int64_t size = c.shape[static_cast<int>(i)];
            int64_t at = p[i] - before[i];
            if (at < 0 || at >= size) {
              if (mode == PadMode::constant) return t == DType::boolean ? 1.0 : 3.0;
              at = mode == PadMode::replicate  ? (at < 0 ? 0 : size - 1)
                   : mode == PadMode::circular ? (at + size) % size
                   : at < 0                    ? -at
                                               : 2 * size - 2 - at;
            }
            p[i] = at;
          }
          return v[at_place(c.shape, p)];
        });
        expect_values(pad(x, c.pads, mode, 3), shape, expected,
                      cat(name_of(t), " ", c.shape, " ", static_cast<int>(mode)));
      }
  expect_values(pad_constant(numbers({0}), {1, 1}, -HUGE_VAL), {2}, {-HUGE_VAL, -HUGE_VAL});
  const Tensor x = numbers({3, 4});
  expect_error(
      [&] {
        return pad(x, {4, 0}, PadMode::reflect);
      },
      "mode reflect takes at most 3 entries on a side of axis 1");
  expect_error([&] { return pad(x, {0, 5}, PadMode::circular); }, "mode circular takes at most 4 entries");
  expect_error([&] { return pad(zeros({0}), {1, 0}, PadMode::replicate); }, "at most 0 entries");
  expect_error([&] { return pad_constant(x, {-3, -2}); }, "[pad] axis 1 of size 4 cannot be padded by -3 and -2");
  expect_error([&] { return pad_constant(x, {1}); }, "[pad] needs a pair of numbers");
  expect_error([&] { return pad_constant(x, {1, 1, 1, 1, 1, 1}); }, "at most 2 axes; got 6 numbers");
}

TEST(Movement, DiagonalsAndTriangles) {
  for (const Shape& s : {Shape{3, 4}, Shape{4, 2}, Shape{1, 1}, Shape{0, 2}}) {
    const Tensor x = numbers(s, DType::i64);
    for (int64_t k = -5; k <= 5; ++k) {
      const int64_t length = std::max<int64_t>(0, k < 0 ? std::min(s[0] + k, s[1]) : std::min(s[0], s[1] - k));
      expect_moved(
          diagonal(x, k), {length}, x,
          [&](const Place& p) {
            return Place{p[0] + std::max<int64_t>(0, -k), p[0] + std::max<int64_t>(0, k)};
          },
          cat("diagonal ", k));
      const Values v = x.to_vector<double>();
      const auto at = [&](const Place& p) { return v[at_place(s, p)]; };
      expect_values(tril(x, k), s, by_place(s, [&](const Place& p) { return p[1] - p[0] <= k ? at(p) : 0; }), "tril");
      expect_values(triu(x, k), s, by_place(s, [&](const Place& p) { return p[1] - p[0] >= k ? at(p) : 0; }), "triu");
    }
  }
  const Tensor x = numbers({4, 3, 2});
  expect_moved(
      diagonal(x, 1, 2, 0), {3, 2}, x,
      [](const Place& p) {
        return Place{p[1] + 1, p[0], p[1]};
      },
      "2, 0");
  expect_moved(
      diagonal(x.transpose(0, 1), -1, 1, 2), {3, 2}, x,
      [](const Place& p) {
        return Place{p[1] + 1, p[0], p[1]};
      },
      "of a transpose");
}

TEST(Movement, DiagonalsEmbedded) {
  const Tensor v = numbers({2, 3});
  const Values n = v.to_vector<double>();
  for (int64_t k : {-2, 0, 1}) {
    const int64_t size = 3 + std::abs(k);
    expect_values(diag_embed(v, k), {2, size, size}, by_place({2, size, size}, [&](const Place& p) {
                    const int64_t at = p[1] - std::max<int64_t>(0, -k);
                    return p[2] - p[1] == k && at >= 0 && at < 3 ? n[p[0] * 3 + at] : 0;
                  }));
    expect_values(diagonal(diag_embed(v, k, 2, 0), k, 2, 0), {2, 3}, n);
  }
  expect_values(diag(numbers({2})), {2, 2}, {n[0], 0, 0, n[1]});
  expect_values(diag(diag(v[0], -1), -1), {3}, {n[0], n[1], n[2]});
  EXPECT_EQ(trace(eye(4)).item(), 4);
  expect_error([&] { return diagonal(v, 0, 1, -1); }, "[diagonal] needs two axes; got axis 1 twice");
  expect_error([&] { return trace(v[0]); }, "[trace] needs a matrix; got [3]");
  expect_error([&] { return diag(numbers({1, 1, 1})); }, "[diag] needs a vector or a matrix");
  expect_error([&] { return tril(v[0]); }, "[tril] needs at least two axes");
  expect_values(sum(diagonal(expand(full({}, 2), {3, 3}))), {}, {6});
}

TEST_P(MovementOfEachIsa, WindowsAreReadInPlace) {
  for (DType t : kAllTypes) {
    const Tensor x = numbers({2, 9, 3}, t);
    expect_moved(
        unfold(x, 1, 4, 2), {2, 3, 3, 4}, x,
        [](const Place& p) {
          return Place{p[0], p[1] * 2 + p[3], p[2]};
        },
        "unfold");
  }
  const Tensor x = numbers({40}, DType::f64), windows = unfold(x, 0, 5, 1).eval();
  expect_values(mean(unfold(x, 0, 5, 1), {{1}}), {36}, mean(windows, {{1}}).to_vector<double>());
  expect_values(sum(unfold(x, 0, 5, 1) * 2, {{0}}), {5}, sum(windows * 2, {{0}}).to_vector<double>());
  const Tensor taps = numbers({5, 3}, DType::f64, 2);
  expect_values(matmul(unfold(x, 0, 5, 1), taps), {36, 3}, matmul(windows, taps).to_vector<double>());
  expect_values(matmul(taps.t(), unfold(x, 0, 5, 1).t()), {3, 36}, matmul(taps.t(), windows.t()).to_vector<double>());
  for (DType t : {DType::f32, DType::bf16, DType::i64})
    expect_values(cast(fold(cast(windows, t), {40}, 0, 1), DType::f64), {40},
                  fold(windows, {40}, 0, 1).to_vector<double>());
  expect_error([&] { return unfold(x, 0, 41); }, "[unfold] windows must have 1 to 40 entries of axis 0");
  expect_error([&] { return unfold(x, 0, 2, 0); }, "got size 2 and step 0");
  expect_error([&] { return fold(windows, {39}, 0, 1); }, "[fold] windows [36, 5]");
}

// One view of x, chosen by chance.
Tensor some_view(const Tensor& x, test::Dice& dice) {
  const int64_t rank = x.rank(), axis = dice.below(rank), size = x.size(axis);
  switch (dice.below(8)) {
    case 0: return flip(x, {axis});
    case 1: return x.transpose(axis, dice.below(rank));
    case 2: return slice(x, axis, dice.below(size), size, 1 + dice.below(2));
    case 3: return rank < 5 ? unfold(x, axis, 1 + dice.below(size), 1 + dice.below(3)) : flip(x);
    case 4: return rank > 1 ? diagonal(x, dice.below(2), axis, (axis + 1) % rank) : flip(x);
    case 5: return rank < 5 ? expand(unsqueeze(x, 0), x.shape().inserted(0, 2)) : x[0];
    case 6: return x.reshape({-1});
    default: return movedim(x, axis, -1);
  }
}

// Views of views, read through one set of strides where there is one, equal the same views copied one after another;
// so do the gradients through them.
TEST_P(MovementOfEachIsa, ChainsOfViewsEqualTheirSteps) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    std::vector<std::vector<double>> results[2];
    for (const bool copied : {true, false}) {
      test::Dice dice{seed};
      Tensor x = numbers({4, 3, 5}, DType::f64, static_cast<int64_t>(seed)).requires_grad_();
      Tensor y = x;
      for (int64_t i = dice.below(5); i >= 0; --i) {
        const Tensor next = some_view(y, dice);
        if (next.numel() == 0 || next.numel() > 5000) break;
        y = next;
        if (copied) y = (y * 1).eval();
      }
      const int64_t axis = dice.below(y.rank());
      const Tensor flat = y.reshape({1, -1});
      const Tensor used = dice.below(2) == 0 ? cat({y, y * 2}, axis) : max(y, {{axis}});
      results[copied] = {sum(y, {{axis}}).to_vector<double>(), used.to_vector<double>(),
                         matmul(flat, flat, {.transpose_b = true}).to_vector<double>(),
                         grad(sum(used * used), {x})[0].to_vector<double>()};
    }
    ASSERT_EQ(results[0], results[1]);
  }
}

// Case P-046, candle#3836: a kernel that is a transposed view, also one that does not begin at its memory's start.
TEST(Movement, ConvolutionWithATransposedKernel) {
  Values nine(9);
  for (int i = 0; i < 9; ++i) nine[i] = i + 1;
  const Tensor image = make(nine, {3, 3}, DType::f32);
  const Tensor patches = unfold(unfold(image, 0, 2), 1, 2);  // [2, 2, 2, 2]
  const Tensor kernel = make({1, 2, 3, 4}, {2, 2}, DType::f32),
               long_kernel = make({9, 9, 1, 2, 3, 4}, {3, 2}, DType::f32);
  for (const Tensor& k : {kernel.t(), kernel.t().eval(), long_kernel.slice(0, 1, 3).t()}) {
    expect_values(einsum("ijkl,kl->ij", {patches, k}), {2, 2}, {35, 45, 65, 75});
    Tensor leaf = (k * 1).eval(), x = (image * 1).eval();
    leaf.requires_grad_();
    x.requires_grad_();
    sum(einsum("ijkl,kl->ij", {unfold(unfold(x, 0, 2), 1, 2), leaf})).backward();
    expect_values(leaf.grad(), {2, 2}, {12, 16, 24, 28});
    expect_values(x.grad(), {3, 3}, {1, 4, 3, 3, 10, 7, 2, 6, 4});
  }
}

// Case P-044, pytorch#17935: writes through views. Tensors are values: a repeated view gets memory of its own, and the
// right side of an assignment is read before anything is written.
TEST(Movement, InPlaceOnViews) {
  const Tensor x = make({2}, {1}, DType::f32);
  Tensor wide = expand(x, {3});
  wide *= full({1}, 3);
  expect_values(wide, {3}, {6, 6, 6});
  expect_values(x, {1}, {2});
  expect_values(expand(x, {3}) * 3, {3}, {6, 6, 6});
  wide = expand(x, {3});
  wide.assign(arange(3));
  expect_values(wide, {3}, {0, 1, 2});
  expect_values(x, {1}, {2});

  Tensor y = make({1, 2, 3, 4}, {4}, DType::f32);
  const Tensor kept = y, head = y.slice(0, 0, 2);
  y.assign(slice_assign(y, 0, 1, 4, y.slice(0, 0, 3)));
  expect_values(y, {4}, {1, 1, 2, 3});
  expect_values(kept, {4}, {1, 1, 2, 3});  // a copy of the handle: the same tensor
  expect_values(head, {2}, {1, 2});        // a view: the value it was taken from
  Tensor part = y.slice(0, 2, 4);
  part += full({1}, 10);
  expect_values(part, {2}, {12, 13});
  expect_values(y, {4}, {1, 1, 2, 3});
  Tensor rows = make({1, 2, 3, 4}, {2, 2}, DType::f32);
  rows += rows.t();
  expect_values(rows, {2, 2}, {2, 5, 5, 8});
  rows += flip(rows, {0});
  expect_values(rows, {2, 2}, {7, 13, 7, 13});
  expect_error([&] { return slice_assign(y, 0, 1, 4, numbers({2})); },
               "[slice_assign] the value must fit entries 1 to 3");
  expect_error([&] { return select_assign(y, 0, 4, numbers({1})); },
               "[select_assign] axis 0 has 4 entries; got position 4");
}

TEST(Movement, CreatedFromNumbers) {
  expect_values(arange(1, 2, 0.25), {4}, {1, 1.25, 1.5, 1.75});
  expect_values(arange(3, 0, -1, {.dtype = DType::i32}), {3}, {3, 2, 1});
  expect_values(arange(2, 2), {0}, {});
  expect_values(linspace(-1, 1, 5, {.dtype = DType::f64}), {5}, {-1, -0.5, 0, 0.5, 1});
  expect_values(linspace(3, 7, 1), {1}, {3});
  expect_values(linspace(0, 1, 0), {0}, {});
  EXPECT_EQ(linspace(0.1, 0.7, 1001, {.dtype = DType::f64}).to_vector<double>().back(), 0.7);
  expect_values(eye(2, 3), {2, 3}, {1, 0, 0, 0, 1, 0});
  expect_values(eye(2), {2, 2}, {1, 0, 0, 1});
  expect_values(eye(3, 0), {3, 0}, {});
  const Tensor x = numbers({2, 2}, DType::bf16);
  for (const Tensor& like : {ones_like(x), full_like(x, 3), rand_like(x), randn_like(x)}) {
    EXPECT_EQ(like.dtype(), DType::bf16);
    EXPECT_EQ(like.shape(), (Shape{2, 2}));
  }
  const std::vector<Tensor> ij = meshgrid({arange(2), arange(3)});
  expect_values(ij[0], {2, 3}, {0, 0, 0, 1, 1, 1});
  expect_values(ij[1], {2, 3}, {0, 1, 2, 0, 1, 2});
  const std::vector<Tensor> xy = meshgrid({arange(2), arange(3)}, Indexing::xy);
  expect_values(xy[0], {3, 2}, {0, 1, 0, 1, 0, 1});
  expect_values(xy[1], {3, 2}, {0, 0, 1, 1, 2, 2});
  expect_error([] { return arange(0, 1, -1); }, "[arange] the step must lead from start to stop; got 0, 1 and step -1");
  expect_error([] { return arange(0, 1, 0); }, "step 0");
  expect_error([] { return linspace(0, 1, -1); }, "[linspace] the count must not be negative");
}

}  // namespace
}  // namespace outrace
