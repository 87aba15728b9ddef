// The CPU backend: plans made by hand against scalar loops in double.
#include "outrace/backend/backend.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>

#include "outrace/backend/cpu/cpu_backend.h"
#include "outrace/backend/cpu/gemm.h"
#include "outrace/backend/cpu/kernels.h"
#include "outrace/backend/cpu/tile.h"
#include "outrace/core/aligned.h"
#include "outrace/core/env.h"
#include "outrace/core/error.h"
#include "outrace/core/half.h"
#include "outrace/core/profile.h"
#include "outrace/core/random.h"
#include "tests/plan_builder.h"

namespace outrace {
namespace {

template <class T>
std::vector<T> numbers(int64_t count, uint32_t seed, double low = -1, double high = 1) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<double> draw(low, high);
  std::vector<T> out(static_cast<size_t>(count));
  for (T& x : out) x = static_cast<T>(draw(generator));
  return out;
}

// A program with its arena.
struct Compiled {
  explicit Compiled(const Plan& plan) : program(CpuBackend::get().compile(plan)) {
    for (const Plan::Arena& a : plan.arenas) arena = aligned_array<char>(a.bytes);
  }
  void run(std::vector<void*> inputs, std::vector<void*> outputs, std::vector<ScalarValue> scalars = {}) {
    program->run({std::move(inputs), std::move(outputs), std::move(scalars), arena.get()});
  }
  std::unique_ptr<Program> program;
  AlignedArray<char> arena;
};

ScalarValue real(double x) {
  ScalarValue s;
  s.real = x;
  return s;
}
ScalarValue integer(int64_t x) {
  ScalarValue s;
  s.integer = x;
  return s;
}

// A sum of k products of numbers below 1, each rounded, in any order.
double product_tolerance(int64_t k, DType dtype) {
  return static_cast<double>(k) * static_cast<double>(k) * epsilon_of(dtype);
}

TEST(CpuProgram, ElementwiseWithABroadcastRowAScalarAndAConstant) {
  for (const Shape& shape : {Shape{2, 3}, Shape{700, 1000}}) {  // one task and many
    PlanBuilder b;
    const int x = b.input(DType::f32, shape), row = b.input(DType::f32, Shape{shape[1]}),
              one = b.constant(DType::f32, {}, 1);
    const int y = b.output(DType::f32, shape), s = b.scalar();
    TileProgram p = tile_program(DType::f32, shape);
    const int rx = load_view(p, DType::f32, b.dense(x)), rrow = load_view(p, DType::f32, {row, 0, {0, 1}});
    const int rs = load_scalar(p, DType::f32, s), rone = load_view(p, DType::f32, {one, 0, {}});
    store(p, apply(p, Ew::add, apply(p, Ew::mul, apply(p, Ew::sub, rx, rrow), rs), rone), DType::f32, y);
    b.elementwise(p, "sub+mul+add");
    auto in = numbers<float>(shape.numel(), 1), bias = numbers<float>(shape[1], 2);
    std::vector<float> out(in.size());
    Compiled c(b.plan);
    c.run({in.data(), bias.data()}, {out.data()}, {real(0.25)});
    for (size_t i = 0; i < out.size(); ++i)
      ASSERT_EQ(out[i], (in[i] - bias[i % static_cast<size_t>(shape[1])]) * 0.25f + 1.0f) << i;
  }
}

// relu(x * w + bias), w plain or packed; the result's memory is optional.
template <class T>
void check_linear(int64_t m, int64_t n, int64_t k, bool packed, bool stored, bool transpose_weight) {
  const DType dtype = dtype_of<T>();
  PlanBuilder b;
  const Shape weight_shape = transpose_weight ? Shape{n, k} : Shape{k, n};
  const int x = b.input(dtype, {m, k}), w = b.input(dtype, weight_shape, packed ? Layout::panel : Layout::plain);
  const int bias = b.input(dtype, {n}), y = b.output(dtype, {m, n});
  const int product = stored ? b.output(dtype, {m, n}) : -1;
  Call& call = b.matmul(b.matrix(x), b.matrix(w, transpose_weight), m, n, k, dtype, product);
  call.attrs = MatmulAttrs{false, transpose_weight};
  TileProgram p = tile_program(dtype, {m, n});
  const int tile = load_producer(p, dtype), rbias = load_view(p, dtype, {bias, 0, {0, 1}});
  store(p, apply(p, Ew::relu, apply(p, Ew::add, tile, rbias)), dtype, y);
  call.epilogue = p;
  auto xs = numbers<T>(m * k, 3), ws = numbers<T>(n * k, 4), biases = numbers<T>(n, 5);
  std::vector<T> stored_w(ws.size()), ys(static_cast<size_t>(m * n)), products(static_cast<size_t>(m * n));
  CpuBackend::get().relayout(b.device, stored_w.data(), packed ? Layout::panel : Layout::plain, ws.data(),
                             Layout::plain, dtype, weight_shape);
  Compiled c(b.plan);
  c.run({xs.data(), stored_w.data(), biases.data()}, {ys.data(), products.data()});
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t l = 0; l < k; ++l)
        sum += static_cast<double>(xs[i * k + l]) * static_cast<double>(ws[transpose_weight ? j * k + l : l * n + j]);
      const T bias_j = biases[j];
      ASSERT_NEAR(ys[i * n + j], std::max(sum + static_cast<double>(bias_j), 0.0), product_tolerance(k, dtype))
          << i << "," << j;
      if (stored) {
        ASSERT_EQ(ys[i * n + j], std::max<T>(products[i * n + j] + bias_j, 0)) << i << "," << j;
      }
    }
  }
}

TEST(CpuProgram, MatmulWithBiasAndRelu) {
  for (const char* kernel : {"matmul:own", "matmul:onednn", "matmul:reference"}) {
    cpu::prefer_kernels(kernel);
    for (const bool packed : {false, true})
      for (const bool stored : {false, true})
        for (const bool transposed : {false, true}) {
          check_linear<float>(64, 130, 77, packed, stored, transposed);
          check_linear<float>(3, 5, 2, packed, stored, transposed);
          check_linear<double>(33, 50, 20, packed, stored, transposed);
        }
  }
  cpu::prefer_kernels("");
  check_linear<float>(200, 512, 300, true, false, true);  // on all threads
}

TEST(CpuProgram, FusionChangesNoBitOfAProduct) {
  for (const char* kernel : {"matmul:own", "matmul:onednn"}) {
    cpu::prefer_kernels(kernel);
    const int64_t m = 70, n = 300, k = 150;
    PlanBuilder b;
    const int x = b.input(DType::f32, {m, k}), w = b.input(DType::f32, {k, n});
    const int alone = b.output(DType::f32, {m, n}), doubled = b.output(DType::f32, {m, n});
    b.matmul(b.matrix(x), b.matrix(w), m, n, k, DType::f32, alone);
    Call& fused = b.matmul(b.matrix(x), b.matrix(w), m, n, k, DType::f32, -1);
    TileProgram p = tile_program(DType::f32, {m, n});
    const int tile = load_producer(p, DType::f32);
    store(p, apply(p, Ew::add, tile, tile), DType::f32, doubled);
    fused.epilogue = p;
    auto xs = numbers<float>(m * k, 6), ws = numbers<float>(n * k, 7);
    std::vector<float> one(static_cast<size_t>(m * n)), two(one.size());
    Compiled c(b.plan);
    c.run({xs.data(), ws.data()}, {one.data(), two.data()});
    for (size_t i = 0; i < one.size(); ++i) ASSERT_EQ(two[i], 2 * one[i]) << kernel << " " << i;
  }
  cpu::prefer_kernels("");
}

TEST(CpuProgram, BatchedMatmulWithAResidual) {
  const int64_t batch = 5, m = 7, n = 9, k = 11;
  PlanBuilder b;
  const int x = b.input(DType::f32, {batch, m, k}), w = b.input(DType::f32, {k, n}),
            r = b.input(DType::f32, {batch, m, n});
  const int y = b.output(DType::f32, {batch, m, n});
  Call& call = b.matmul({x, 0, {m * k, k, 1}}, {w, 0, {0, n, 1}}, m, n, k, DType::f32, -1);
  call.shape = Shape{batch, m, n};
  call.operand_shapes = {Shape{batch, m, k}, Shape{batch, k, n}};
  TileProgram p = tile_program(DType::f32, {batch, m, n});
  const int tile = load_producer(p, DType::f32), rest = load_view(p, DType::f32, b.dense(r));
  store(p, apply(p, Ew::add, tile, rest), DType::f32, y);
  call.epilogue = p;
  auto xs = numbers<float>(batch * m * k, 8), ws = numbers<float>(k * n, 9), rs = numbers<float>(batch * m * n, 10);
  std::vector<float> ys(rs.size());
  Compiled c(b.plan);
  c.run({xs.data(), ws.data(), rs.data()}, {ys.data()});
  for (int64_t i = 0; i < batch * m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      double sum = static_cast<double>(rs[i * n + j]);
      for (int64_t l = 0; l < k; ++l) sum += static_cast<double>(xs[i * k + l]) * static_cast<double>(ws[l * n + j]);
      ASSERT_NEAR(ys[i * n + j], sum, product_tolerance(k, DType::f32)) << i << "," << j;
    }
}

// Sums of integers are exact, so any converted product must be.
template <class T>
void check_exact_matmul() {
  const int64_t batch = 2, m = 5, n = 19, k = 8;
  const DType dtype = dtype_of<T>();
  PlanBuilder b;
  const int x = b.input(dtype, {batch, k, m}), w = b.input(dtype, {k, n}), y = b.output(dtype, {batch, m, n});
  Call& call = b.matmul({x, 0, {k * m, 1, m}}, {w, 0, {0, n, 1}}, m, n, k, dtype, y);
  call.shape = Shape{batch, m, n};
  call.operand_shapes = {Shape{batch, m, k}, Shape{batch, k, n}};
  std::vector<T> xs, ws, ys(static_cast<size_t>(batch * m * n));
  const auto value = [](int64_t i) { return static_cast<float>(i % 5); };
  for (int64_t i = 0; i < batch * k * m; ++i) xs.push_back(static_cast<T>(value(i)));
  for (int64_t i = 0; i < k * n; ++i) ws.push_back(static_cast<T>(value(i * 3)));
  Compiled c(b.plan);
  c.run({xs.data(), ws.data()}, {ys.data()});
  for (int64_t i = 0; i < batch * m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      float sum = 0;  // below 2^8 = what bf16 holds exactly
      for (int64_t l = 0; l < k; ++l) sum += value(i / m * k * m + l * m + i % m) * value((l * n + j) * 3);
      ASSERT_EQ(static_cast<float>(ys[i * n + j]), sum) << name_of(dtype) << " " << i << "," << j;
    }
}

TEST(CpuProgram, MatmulOfOtherTypes) {
  check_exact_matmul<bf16>();
  check_exact_matmul<f16>();
  check_exact_matmul<int32_t>();
  check_exact_matmul<int64_t>();
  check_exact_matmul<uint8_t>();
}

TEST(CpuProgram, AProductWithAPackedWeightMayBePackedItself) {
  const int64_t size = 45;
  PlanBuilder b;
  const int x = b.input(DType::f32, {size, size}), w = b.input(DType::f32, {size, size}, Layout::panel);
  const int y = b.output(DType::f32, {size, size}, Layout::panel);
  for (const bool transposed : {false, true}) {
    b.plan.calls.clear();
    Call& call = b.matmul(b.matrix(x), b.matrix(w, transposed), size, size, size, DType::f32, y);
    call.attrs = MatmulAttrs{false, transposed};
    call.layout = Layout::panel;
    auto xs = numbers<float>(size * size, 11), ws = numbers<float>(size * size, 12);
    std::vector<float> packed(ws.size()), packed_y(ws.size()), ys(ws.size());
    cpu::pack_weight(ws.data(), packed.data(), size, size);
    Compiled c(b.plan);
    c.run({xs.data(), packed.data()}, {packed_y.data()});
    cpu::unpack_weight(packed_y.data(), ys.data(), size, size);
    for (int64_t i = 0; i < size; ++i)
      for (int64_t j = 0; j < size; ++j) {
        double sum = 0;
        for (int64_t l = 0; l < size; ++l)
          sum +=
              static_cast<double>(xs[i * size + l]) * static_cast<double>(ws[transposed ? j * size + l : l * size + j]);
        ASSERT_NEAR(ys[i * size + j], sum, product_tolerance(size, DType::f32)) << i << "," << j;
      }
  }
}

// The gradient of a packed weight is a tile of the product only; Adam writes weight and moments over themselves.
TEST(CpuProgram, AdamInPlaceBehindThePackedGradient) {
  const int64_t out = 50, in = 70, batch = 16;
  const Shape shape{out, in}, flat{out * in};
  PlanBuilder b;
  const int dy = b.input(DType::f32, {batch, out}), x = b.input(DType::f32, {batch, in});
  int state[3], next[3];  // weight, first and second moment
  for (int& i : state) i = b.input(DType::f32, shape, Layout::panel);
  for (int i = 0; i < 3; ++i) next[i] = b.output(DType::f32, shape, Layout::panel, state[i]);
  Call& call = b.matmul(b.matrix(dy, true), b.matrix(x), out, in, batch, DType::f32, -1);
  call.layout = Layout::panel;
  TileProgram p = tile_program(DType::f32, flat);
  const int g = load_producer(p, DType::f32);
  int s[3], u[6];
  for (int i = 0; i < 3; ++i) s[i] = load_view(p, DType::f32, {state[i], 0, {1}});
  for (int& i : u) i = load_scalar(p, DType::f32, b.scalar());
  // u: 1 - beta1, beta2, 1 - beta2, 1 / sqrt(bias2), eps, lr / bias1, as in tile_super.def
  const int m = apply(p, Ew::add, s[1], apply(p, Ew::mul, apply(p, Ew::sub, g, s[1]), u[0]));
  const int v = apply(p, Ew::add, apply(p, Ew::mul, s[2], u[1]), apply(p, Ew::mul, apply(p, Ew::square, g), u[2]));
  const int root = apply(p, Ew::add, apply(p, Ew::mul, apply(p, Ew::sqrt, v), u[3]), u[4]);
  const int w = apply(p, Ew::sub, s[0], apply(p, Ew::mul, apply(p, Ew::div, m, root), u[5]));
  store(p, w, DType::f32, next[0]);
  store(p, m, DType::f32, next[1]);
  store(p, v, DType::f32, next[2]);
  call.epilogue = p;

  auto dys = numbers<float>(batch * out, 13), xs = numbers<float>(batch * in, 14);
  std::vector<float> plain[3], packed[3];
  for (int i = 0; i < 3; ++i) {
    plain[i] = numbers<float>(out * in, 15 + i, i == 2 ? 0.1 : -1, 1);
    packed[i].resize(plain[i].size());
    cpu::pack_weight(plain[i].data(), packed[i].data(), out, in);
  }
  const double uniform[6] = {0.1, 0.999, 0.001, 0.5, 1e-8, 0.01};
  std::vector<ScalarValue> scalars;
  for (double x_i : uniform) scalars.push_back(real(x_i));
  Compiled c(b.plan);
  c.run({dys.data(), xs.data(), packed[0].data(), packed[1].data(), packed[2].data()},
        {packed[0].data(), packed[1].data(), packed[2].data()}, scalars);
  std::vector<float> result[3];
  for (int i = 0; i < 3; ++i) {
    result[i].resize(plain[i].size());
    cpu::unpack_weight(packed[i].data(), result[i].data(), out, in);
  }
  for (int64_t i = 0; i < out * in; ++i) {
    double grad = 0;
    for (int64_t l = 0; l < batch; ++l)
      grad += static_cast<double>(dys[l * out + i / in]) * static_cast<double>(xs[l * in + i % in]);
    const double mean = plain[1][i] + (grad - plain[1][i]) * uniform[0];
    const double square = plain[2][i] * uniform[1] + grad * grad * uniform[2];
    const double weight = plain[0][i] - mean / (std::sqrt(square) * uniform[3] + uniform[4]) * uniform[5];
    const double tolerance = product_tolerance(batch, DType::f32);
    ASSERT_NEAR(result[1][i], mean, tolerance) << i;
    ASSERT_NEAR(result[2][i], square, tolerance) << i;
    ASSERT_NEAR(result[0][i], weight, tolerance) << i;
  }
}

TEST(CpuProgram, ReductionsWithAPrologueAndAnEpilogue) {
  const Shape shape{40, 300};
  PlanBuilder b;
  const int x = b.input(DType::f32, shape), z = b.input(DType::f32, shape);
  const int rows = b.output(DType::f32, {40}), columns = b.output(DType::f32, {300}),
            largest = b.output(DType::f32, {});
  const int root = b.output(DType::f32, {40});
  const auto squares = [&] {
    TileProgram p = tile_program(DType::f32, shape);
    const int rx = load_view(p, DType::f32, b.dense(x)), rz = load_view(p, DType::f32, b.dense(z));
    p.result = apply(p, Ew::square, apply(p, Ew::sub, rx, rz));
    return p;
  };
  const auto reduce = [&](const OpDef& op, int64_t axes, const Shape& result_shape, int result) -> Call& {
    Call& call = b.producer(op, ReduceAttrs{axes, false}, {}, DType::f32, result_shape, result);
    call.operands.push_back({});
    call.operand_shapes.push_back(shape);
    call.prologue = squares();
    return call;
  };
  Call& sum = reduce(kSum, 2, {40}, rows);
  TileProgram p = tile_program(DType::f32, {40});
  const int tile = load_producer(p, DType::f32);
  store(p, apply(p, Ew::sqrt, tile), DType::f32, root);
  sum.epilogue = p;
  reduce(kMean, 1, {300}, columns);
  b.producer(kMax, ReduceAttrs{3, false}, {x}, DType::f32, {}, largest);

  auto xs = numbers<float>(shape.numel(), 20), zs = numbers<float>(shape.numel(), 21);
  std::vector<float> sums(40), means(300), roots(40), top(1);
  Compiled c(b.plan);
  c.run({xs.data(), zs.data()}, {sums.data(), means.data(), top.data(), roots.data()});
  const auto square_at = [&](int64_t i, int64_t j) {
    return std::pow(static_cast<double>(xs[i * 300 + j]) - static_cast<double>(zs[i * 300 + j]), 2);
  };
  for (int64_t i = 0; i < 40; ++i) {
    double want = 0;
    for (int64_t j = 0; j < 300; ++j) want += square_at(i, j);
    EXPECT_NEAR(sums[i], want, want * 20 * epsilon_of(DType::f32));
    EXPECT_EQ(roots[i], std::sqrt(sums[i]));
  }
  for (int64_t j = 0; j < 300; ++j) {
    double want = 0;
    for (int64_t i = 0; i < 40; ++i) want += square_at(i, j) / 40;
    EXPECT_NEAR(means[j], want, want * 20 * epsilon_of(DType::f32));
  }
  EXPECT_EQ(top[0], *std::max_element(xs.begin(), xs.end()));
}

TEST(CpuProgram, SumsOfNarrowAndIntegerTypes) {
  PlanBuilder b;
  const int x = b.input(DType::bf16, {100}), i = b.input(DType::i64, {2, 50});
  const int sum_x = b.output(DType::bf16, {}), sum_i = b.output(DType::i64, {50});
  b.producer(kSum, ReduceAttrs{1, false}, {x}, DType::bf16, {}, sum_x);
  b.producer(kSum, ReduceAttrs{1, false}, {i}, DType::i64, {50}, sum_i);
  std::vector<bf16> xs(100, bf16(0.5f)), out(1);
  std::vector<int64_t> is(100), sums(50);
  for (int64_t k = 0; k < 100; ++k) is[k] = k;
  Compiled c(b.plan);
  c.run({xs.data(), is.data()}, {out.data(), sums.data()});
  EXPECT_EQ(static_cast<float>(out[0]), 50.0f);
  for (int64_t k = 0; k < 50; ++k) EXPECT_EQ(sums[k], 2 * k + 50);
}

TEST(CpuProgram, SoftmaxAndCrossEntropy) {
  const int64_t rows = 20, classes = 10;
  PlanBuilder b;
  const int x = b.input(DType::f32, {rows, classes}), target = b.input(DType::i64, {rows}),
            one = b.constant(DType::f32, {}, 1);
  const int y = b.output(DType::f32, {rows, classes}), logs = b.output(DType::f32, {rows, classes});
  const int loss = b.output(DType::f32, {}), grad = b.output(DType::f32, {rows, classes});
  b.producer(kSoftmax, NoAttrs{}, {x}, DType::f32, {rows, classes}, y);
  b.producer(kLogSoftmax, NoAttrs{}, {x}, DType::f32, {rows, classes}, logs);
  b.producer(kCrossEntropy, CrossEntropyAttrs{}, {x, target}, DType::f32, {}, loss);
  b.producer(kCrossEntropyGrad, CrossEntropyAttrs{}, {x, target, one}, DType::f32, {rows, classes}, grad);
  auto xs = numbers<float>(rows * classes, 22, -3, 3);
  std::vector<int64_t> targets(rows);
  for (int64_t i = 0; i < rows; ++i) targets[i] = i % classes;
  std::vector<float> ys(xs.size()), log_ys(xs.size()), grads(xs.size()), losses(1);
  Compiled c(b.plan);
  c.run({xs.data(), targets.data()}, {ys.data(), log_ys.data(), losses.data(), grads.data()});
  const double tolerance = 32 * epsilon_of(DType::f32);
  double mean = 0;
  for (int64_t i = 0; i < rows; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < classes; ++j) sum += std::exp(static_cast<double>(xs[i * classes + j]));
    mean += (std::log(sum) - static_cast<double>(xs[i * classes + targets[i]])) / static_cast<double>(rows);
    for (int64_t j = 0; j < classes; ++j) {
      const int64_t at = i * classes + j;
      const double want = std::exp(static_cast<double>(xs[at])) / sum;
      EXPECT_NEAR(ys[at], want, tolerance);
      EXPECT_NEAR(log_ys[at], std::log(want), tolerance * 8);
      EXPECT_NEAR(grads[at], (want - (j == targets[i] ? 1 : 0)) / static_cast<double>(rows), tolerance);
    }
  }
  EXPECT_NEAR(losses[0], mean, tolerance * 8);
}

TEST(CpuProgram, AWrongLabelLeavesLaterCallsUnrun) {
  PlanBuilder b;
  const int x = b.input(DType::f32, {2, 3}), target = b.input(DType::i64, {2});
  const int loss = b.output(DType::f32, {}), copy = b.output(DType::f32, {2, 3});
  b.producer(kCrossEntropy, CrossEntropyAttrs{}, {x, target}, DType::f32, {}, loss);
  TileProgram p = tile_program(DType::f32, {6});
  const int rx = load_view(p, DType::f32, {x, 0, {1}});
  store(p, rx, DType::f32, copy);
  b.elementwise(p, "copy");
  std::vector<float> xs(6, 1.0f), losses(1), copies(6, -1.0f);
  std::vector<int64_t> targets{0, 3};
  Compiled c(b.plan);
  EXPECT_THROW(c.run({xs.data(), targets.data()}, {losses.data(), copies.data()}), Error);
  EXPECT_EQ(copies, std::vector<float>(6, -1.0f));
  targets[1] = 2;
  c.run({xs.data(), targets.data()}, {losses.data(), copies.data()});
  EXPECT_EQ(copies, xs);
}

TEST(CpuProgram, RandomPadAndRelayout) {
  PlanBuilder b;
  const int seed = b.scalar(), serial = b.scalar();
  const int weight = b.input(DType::f32, {40, 7});
  const int drawn = b.output(DType::f32, {1000}), padded = b.output(DType::f32, {4, 5});
  const int packed = b.output(DType::f32, {40, 7}, Layout::panel), small = b.input(DType::f32, {2, 2});
  Call& random = b.producer(kRandom, RandomAttrs{Distribution::normal, 0, 1}, {}, DType::f32, {1000}, drawn);
  random.scalars = {seed, serial};
  SliceAttrs where;
  where.start = {1, 0};
  where.step = {1, 2};
  b.producer(kPad, where, {small}, DType::f32, {4, 5}, padded);
  b.producer(kRelayout, NoAttrs{}, {weight}, DType::f32, {40, 7}, packed).layout = Layout::panel;
  auto weights = numbers<float>(280, 23);
  std::vector<float> four{1, 2, 3, 4}, draws(1000), pads(20, -1), packs(280), want(280);
  Compiled c(b.plan);
  c.run({weights.data(), four.data()}, {draws.data(), pads.data(), packs.data()}, {integer(42), integer(7)});
  for (uint64_t i = 0; i < 1000; ++i) ASSERT_EQ(draws[i], normal_f32({42, 7}, i));
  EXPECT_EQ(pads, (std::vector<float>{0, 0, 0, 0, 0, 1, 0, 2, 0, 0, 3, 0, 4, 0, 0, 0, 0, 0, 0, 0}));
  cpu::pack_weight(weights.data(), want.data(), 40, 7);
  EXPECT_EQ(packs, want);
}

TEST(CpuProgram, TemporariesFollowTheArena) {
  PlanBuilder b;
  const int x = b.input(DType::f32, {8}), middle = b.temp(DType::f32, {8}), y = b.output(DType::f32, {8});
  for (const auto& [from, to] : {std::pair{x, middle}, std::pair{middle, y}}) {
    TileProgram p = tile_program(DType::f32, {8});
    const int r = load_view(p, DType::f32, b.dense(from));
    store(p, apply(p, Ew::add, r, r), DType::f32, to);
    b.elementwise(p, "add");
  }
  auto xs = numbers<float>(8, 24);
  std::vector<float> ys(8);
  Compiled c(b.plan);
  for (int round = 0; round < 2; ++round) {
    c.arena = aligned_array<char>(1024);  // another place each time
    c.run({xs.data()}, {ys.data()});
    for (size_t i = 0; i < 8; ++i) EXPECT_EQ(ys[i], 4 * xs[i]);
  }
}

TEST(CpuProgram, APoisonedArenaShowsWhatWasNeverWritten) {
  auto xs = numbers<float>(8, 24);
  std::vector<float> ys(8);
  cpu::set_poisoning(true);
  PlanBuilder late;
  const int input = late.input(DType::f32, {8}), temp = late.temp(DType::f32, {8}), out = late.output(DType::f32, {8});
  TileProgram half = tile_program(DType::f32, {4});  // writes the first half only
  store(half, load_view(half, DType::f32, late.dense(input)), DType::f32, temp);
  late.elementwise(half, "half");
  TileProgram all = tile_program(DType::f32, {8});
  store(all, load_view(all, DType::f32, late.dense(temp)), DType::f32, out);
  late.elementwise(all, "all");
  Compiled poisoned(late.plan);
  poisoned.run({xs.data()}, {ys.data()});
  cpu::set_poisoning(false);
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(std::isnan(ys[i]), i >= 4) << i;
}

TEST(CpuProgram, ProfileAndChoice) {
  PlanBuilder b;
  const int x = b.input(DType::f32, {16, 16}), y = b.output(DType::f32, {16, 16});
  Call& call = b.matmul(b.matrix(x), b.matrix(x), 16, 16, 16, DType::f32, y);
  std::string passed_over;
  EXPECT_STREQ(cpu::choose_kernel(call, b.plan, &passed_over).name, "own");
  EXPECT_NE(passed_over.find("onednn: "), std::string::npos) << passed_over;
  EXPECT_THROW(cpu::prefer_kernels("matmul:fastest"), Error);
  call.dtype = DType::i32;
  EXPECT_STREQ(cpu::choose_kernel(call, b.plan).name, "integer");
  call.result = -1;
  EXPECT_THROW(cpu::choose_kernel(call, b.plan), Error);
  call.result = y;
  call.dtype = DType::f32;
  auto xs = numbers<float>(256, 25);
  std::vector<float> ys(256);
  Compiled c(b.plan);
  set_profiling(true);
  c.run({xs.data()}, {ys.data()});
  set_profiling(false);
  const std::vector<CallProfile> profile = take_profile();
  ASSERT_EQ(profile.size(), 1u);
  EXPECT_EQ(profile[0].label, "matmul");
  EXPECT_EQ(profile[0].kernel, "own");
  EXPECT_EQ(profile[0].flops, 8192.0);
  EXPECT_GT(profile[0].us, 0);
  c.run({xs.data()}, {ys.data()});
  EXPECT_TRUE(take_profile().empty());
}

// The cost of a program beside its kernels: nine updates of four numbers against the same nine tile programs by
// themselves.
TEST(CpuProgram, OverheadOfATinyProgram) {
  constexpr int kCalls = 9, kRuns = 2000, kSamples = 20;
  PlanBuilder b;
  const int x = b.input(DType::f32, {4});
  std::vector<std::vector<float>> results(kCalls, std::vector<float>(4));
  std::vector<std::unique_ptr<cpu::TileKernel>> kernels;
  Bindings bindings;
  auto xs = numbers<float>(4, 26);
  bindings.inputs = {xs.data()};
  std::vector<void*> values{xs.data()};
  for (int i = 0; i < kCalls; ++i) {
    const int y = b.output(DType::f32, {4});
    TileProgram p = tile_program(DType::f32, {4});
    const int r = load_view(p, DType::f32, b.dense(x));
    store(p, apply(p, Ew::add, r, r), DType::f32, y);
    kernels.push_back(cpu::TileKernel::compile(p));
    b.elementwise(p, "add");
    bindings.outputs.push_back(results[i].data());
    values.push_back(results[i].data());
  }
  const std::unique_ptr<Program> program = CpuBackend::get().compile(b.plan);
  const auto best_ns = [&](const std::function<void()>& body) {
    double best = 1e30;
    for (int sample = 0; sample < kSamples; ++sample) {
      const auto start = std::chrono::steady_clock::now();
      body();
      best = std::min(best, std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count());
    }
    return best / kRuns;
  };
  const double whole = best_ns([&] {
    for (int i = 0; i < kRuns; ++i) program->run(bindings);
  });
  const double alone = best_ns([&] {
    for (int i = 0; i < kRuns; ++i)
      for (const auto& kernel : kernels) kernel->run_all(values.data(), nullptr);
  });
  std::printf("nine calls: %.0f ns, their kernels %.0f ns\n", whole, alone);
  EXPECT_LT(whole - alone, 2000);  // 1000 on an idle machine; builds with sanitizers take longer
}

TEST(CpuBackend, InfoAndRegistry) {
  Backend& cpu = backend_for(DeviceType::cpu);
  EXPECT_EQ(&cpu, &CpuBackend::get());
  const DeviceInfo info = cpu.info(DeviceType::cpu);
  EXPECT_GT(info.units, 0);
  EXPECT_GT(info.memory_bytes, 0);
  EXPECT_GT(info.peak_gflops, 0);
  EXPECT_GT(info.peak_gb_per_s, 0);
  const std::vector<Device> found = found_devices();
  EXPECT_EQ(found.front(), Device(DeviceType::cpu));
  // A kind of device is found or said to be missing.
  for (const DeviceType type : {DeviceType::cuda, DeviceType::opencl}) {
    const int count =
        static_cast<int>(std::count_if(found.begin(), found.end(), [&](Device d) { return d.type == type; }));
    const std::string name = Device(type).str();
    const auto missing = [&](const std::string& line) { return line.starts_with(name.substr(0, name.find(':'))); };
    const std::vector<std::string> lines = missing_backends();
    EXPECT_EQ(std::count_if(lines.begin(), lines.end(), missing), count == 0 ? 1 : 0) << name;
    EXPECT_THROW(backend_for({type, count}), Error);
  }
  EXPECT_THROW(backend_for({DeviceType::null, 8}), Error);
}

}  // namespace
}  // namespace outrace
