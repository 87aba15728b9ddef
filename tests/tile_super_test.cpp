// label: unit
// Superinstructions: found in what optimizers and layers record, and giving the same bits as plain instructions.
#include <gtest/gtest.h>

#include <cmath>

#include "outrace/backend/cpu/tile.h"
#include "tile_reference.h"
#include "tile_support.h"

namespace outrace::test {
namespace {

using cpu::TileKernel;

class TileSuper : public EachIsa {};
INSTANTIATE_TEST_SUITE_P(Isa, TileSuper, testing::ValuesIn(isas_here()), isa_name);

constexpr int64_t kCount = 2501;

struct Adam {
  bool moments_stored = true;
  bool decoupled = false;     // AdamW
  bool weight_decay = false;  // g + p * decay
  bool producer = false;      // the gradient is a product's tile
};
// Values: 0 parameter, 1 m, 2 v, 3 gradient. Scalars: 1 - beta1, beta2, 1 - beta2, 1 / sqrt(bias2), eps, lr,
// bias1, decay.
TileProgram adam_program(DType compute, Adam kind) {
  ProgramBuilder b(compute, Shape{kCount});
  int p = b.dense(0);
  const int m = b.dense(1), v = b.dense(2);
  int g = kind.producer ? b.producer() : b.dense(3);
  const int rate1 = b.scalar(0), beta2 = b.scalar(1), rate2 = b.scalar(2), root = b.scalar(3), eps = b.scalar(4),
            lr = b.scalar(5), bias1 = b.scalar(6), decay = b.scalar(7);
  const int step = b.op(Ew::div, lr, bias1);  // uniform
  if (kind.weight_decay) g = b.op(Ew::add, g, b.op(Ew::mul, p, decay));
  if (kind.decoupled) p = b.op(Ew::mul, p, decay);
  const int m1 = b.op(Ew::add, m, b.op(Ew::mul, b.op(Ew::sub, g, m), rate1));
  const int v1 = b.op(Ew::add, b.op(Ew::mul, v, beta2), b.op(Ew::mul, b.op(Ew::mul, g, g), rate2));
  const int denominator = b.op(Ew::add, b.op(Ew::mul, b.op(Ew::sqrt, v1), root), eps);
  const int p1 = b.op(Ew::sub, p, b.op(Ew::mul, b.op(Ew::div, m1, denominator), step));
  if (kind.moments_stored) b.store(m1, 1);
  if (kind.moments_stored) b.store(v1, 2);
  b.store(kind.moments_stored ? p1 : b.op(Ew::exp, p1), 0);
  return b.p;
}

std::vector<ScalarValue> adam_scalars() {
  std::vector<ScalarValue> out(8);
  const double values[] = {0.1, 0.999, 0.001, std::sqrt(1 - 0.999 * 0.999), 1e-8, 1e-3, 0.19, 0.01};
  for (size_t i = 0; i < 8; ++i) out[i].real = values[i];
  return out;
}

// Runs `p` with superinstructions, without, and by the scalar interpreter, over four arrays; all must agree.
template <class T>
void check_same(const TileProgram& p, const char* description) {
  hook_elementary<T>();
  const auto fused = TileKernel::compile(p),
             plain = TileKernel::compile(p, {.superinstructions = false, .tile_size = 0, .stream_bytes = 0});
  EXPECT_EQ(fused->description(), description);
  EXPECT_NE(plain->description(), description);
  const std::vector<ScalarValue> scalars = adam_scalars();
  Dice dice{4};
  constexpr int kArrays = 4;
  std::vector<T> start[kArrays];
  for (auto& array : start)
    for (int64_t i = 0; i < kCount; ++i) array.push_back(static_cast<T>(i % 100 == 7 ? 0 : dice.uniform(-2, 2)));
  for (T& x : start[2]) x = std::abs(x);
  start[3][5] = std::numeric_limits<T>::infinity();
  start[3][1777] = std::numeric_limits<T>::quiet_NaN();

  std::vector<T> expected[kArrays], got[kArrays];
  std::vector<const char*> from;
  std::vector<char*> to;
  for (int i = 0; i < kArrays; ++i) {
    expected[i] = start[i];
    from.push_back(reinterpret_cast<const char*>(start[i].data()));
    to.push_back(reinterpret_cast<char*>(expected[i].data()));
  }
  reference_run<T>(p, from, to, scalars.data(), start[3].data(), 0, kCount);
  for (const TileKernel* kernel : {fused.get(), plain.get()}) {
    for (const int64_t piece : {kCount, int64_t{1}, int64_t{37}, int64_t{1024}}) {
      void* values[kArrays];
      for (int i = 0; i < kArrays; ++i) {
        got[i] = start[i];
        values[i] = got[i].data();
      }
      for (int64_t i = 0; i < kCount; i += piece)
        kernel->run(values, scalars.data(), start[3].data() + i, i, std::min(piece, kCount - i));
      for (int k = 0; k < kArrays; ++k)
        for (int64_t i = 0; i < kCount; ++i)
          ASSERT_TRUE(same_bits(dtype_of<T>(), reinterpret_cast<const char*>(&got[k][static_cast<size_t>(i)]),
                                reinterpret_cast<const char*>(&expected[k][static_cast<size_t>(i)])))
              << kernel->description() << " array " << k << " element " << i << ": " << got[k][static_cast<size_t>(i)]
              << ", not " << expected[k][static_cast<size_t>(i)];
    }
  }
}

TEST_P(TileSuper, adam) {
  check_same<float>(adam_program(DType::f32, {}), "adam");
  check_same<double>(adam_program(DType::f64, {}), "adam");
}
TEST_P(TileSuper, adam_on_a_product) { check_same<float>(adam_program(DType::f32, {.producer = true}), "adam"); }
TEST_P(TileSuper, results_that_nobody_wants_do_no_harm) {
  check_same<float>(adam_program(DType::f32, {.moments_stored = false}), "adam+exp");
}
TEST_P(TileSuper, adamw) { check_same<float>(adam_program(DType::f32, {.decoupled = true}), "mul+adam"); }
TEST_P(TileSuper, adam_with_weight_decay) {
  check_same<float>(adam_program(DType::f32, {.weight_decay = true}), "mul+add+adam");
}

TEST_P(TileSuper, sgd_with_momentum) {
  ProgramBuilder b(DType::f32, Shape{kCount});
  const int p = b.dense(0), buffer = b.dense(1), g = b.dense(3), mu = b.scalar(0), lr = b.scalar(5);
  const int b1 = b.op(Ew::add, b.op(Ew::mul, buffer, mu), g);
  b.store(b1, 1);
  b.store(b.op(Ew::sub, p, b.op(Ew::mul, b1, lr)), 0);
  check_same<float>(b.p, "sgd_momentum");
}

TEST_P(TileSuper, sgd) {
  ProgramBuilder b(DType::f64, Shape{kCount});
  const int p = b.dense(0), g = b.dense(3), lr = b.scalar(5);
  b.store(b.op(Ew::sub, p, b.op(Ew::mul, lr, g)), 0);  // the factors the other way round
  check_same<double>(b.p, "sgd");
}

TEST_P(TileSuper, bias_and_relu) {
  ProgramBuilder b(DType::f32, Shape{kCount});
  const int x = b.dense(0), z = b.dense(3);
  b.store(b.op(Ew::relu, b.op(Ew::add, x, z)), 1);
  check_same<float>(b.p, "add_relu");
}

TEST_P(TileSuper, derivatives) {
  {
    ProgramBuilder b(DType::f32, Shape{kCount});
    const int y = b.dense(0), g = b.dense(3), zero = b.constant(0);
    b.store(b.op(Ew::select, b.op(Ew::greater, y, zero), g, zero), 1);
    check_same<float>(b.p, "relu_grad");
  }
  {
    ProgramBuilder b(DType::f32, Shape{kCount});
    const int y = b.dense(0), g = b.dense(3), one = b.constant(1);
    b.store(b.op(Ew::mul, b.op(Ew::mul, g, y), b.op(Ew::sub, one, y)), 1);
    check_same<float>(b.p, "sigmoid_grad");
  }
  {
    ProgramBuilder b(DType::f32, Shape{kCount});
    const int y = b.dense(0), g = b.dense(3), one = b.constant(1);
    b.store(b.op(Ew::mul, g, b.op(Ew::sub, one, b.op(Ew::square, y))), 1);  // square(y) counts as y * y
    check_same<float>(b.p, "tanh_grad");
  }
}

// A part of a pattern that somebody else reads must still be computed.
TEST_P(TileSuper, inner_values_with_other_readers_stay) {
  ProgramBuilder b(DType::f32, Shape{kCount});
  const int x = b.dense(0), z = b.dense(3);
  const int sum = b.op(Ew::add, x, z);
  b.store(b.op(Ew::relu, sum), 1);
  b.store(sum, 2);
  EXPECT_EQ(TileKernel::compile(b.p)->description(), "add+relu");
}

TEST_P(TileSuper, inner_values_with_other_readers_stay_for_instructions_too) {
  ProgramBuilder b(DType::f32, Shape{kCount});
  const int x = b.dense(0), z = b.dense(3);
  const int sum = b.op(Ew::add, x, z);
  b.store(b.op(Ew::relu, sum), 1);
  b.store(b.op(Ew::neg, sum), 2);
  EXPECT_EQ(TileKernel::compile(b.p)->description(), "add+relu+neg");
}

// The new momentum feeds what the parameter is computed from: taken out as one step, it would wait for itself.
TEST_P(TileSuper, cycles_are_refused) {
  ProgramBuilder b(DType::f32, Shape{kCount});
  const int p = b.dense(0), buffer = b.dense(1), g = b.dense(3), mu = b.scalar(0), lr = b.scalar(5);
  const int b1 = b.op(Ew::add, b.op(Ew::mul, buffer, mu), g);
  const int p0 = b.op(Ew::exp, b.op(Ew::add, p, b1));
  b.store(b1, 1);
  b.store(b.op(Ew::sub, p0, b.op(Ew::mul, b1, lr)), 0);
  EXPECT_EQ(TileKernel::compile(b.p)->description(), "mul+add+add+exp+sgd");
}

// Readers of an early result that stand before the pattern's last instruction wait for the whole.
TEST_P(TileSuper, later_readers_are_moved_behind) {
  ProgramBuilder b(DType::f32, Shape{kCount});
  const int p = b.dense(0), buffer = b.dense(1), g = b.dense(3), mu = b.scalar(0), lr = b.scalar(5);
  const int b1 = b.op(Ew::add, b.op(Ew::mul, buffer, mu), g);
  const int twice = b.op(Ew::add, b1, b1);
  b.store(b.op(Ew::sub, p, b.op(Ew::mul, b1, lr)), 0);
  b.store(b1, 1);
  b.store(twice, 2);
  check_same<float>(b.p, "sgd_momentum+add");
}

}  // namespace
}  // namespace outrace::test
