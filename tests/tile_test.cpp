// label: unit
// Tile programs against a scalar interpreter, bit for bit: random programs, views, conversions, every way to run.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <numeric>

#include "outrace/backend/cpu/tile.h"
#include "outrace/core/error.h"
#include "outrace/core/thread.h"
#include "tile_reference.h"
#include "tile_support.h"

namespace outrace::test {
namespace {

using cpu::kTileSize;
using cpu::TileKernel;
using cpu::TileOptions;

class Tile : public EachIsa {};
INSTANTIATE_TEST_SUITE_P(Isa, Tile, testing::ValuesIn(isas_here()), isa_name);

template <class Fn>
void visit_compute(DType t, Fn&& fn) {
  if (t == DType::f32)
    fn(float{});
  else if (t == DType::f64)
    fn(double{});
  else
    fn(int64_t{});
}

void put_random(DType dtype, char* at, Dice& dice) {
  visit_dtype(dtype, [&]<class T>(T) {
    T x;
    const int64_t kind = dice.below(12);
    if constexpr (std::is_same_v<T, bool>) {
      x = dice.below(2) != 0;
    } else if constexpr (std::is_integral_v<T>) {
      x = kind == 0   ? std::numeric_limits<T>::max()
          : kind == 1 ? std::numeric_limits<T>::min()
                      : static_cast<T>(dice.below(9) - (std::is_signed_v<T> ? 4 : 0));
    } else {
      const float special[] = {0.f, -0.f, INFINITY, -INFINITY, NAN, 1e-40f, 3e38f, -70000.f, 2.5f, 1e-6f};
      const double v = kind == 0  ? double(special[dice.below(10)])
                       : kind < 4 ? double(dice.below(5) - 2)
                                  : dice.uniform(-4, 4);
      if constexpr (std::is_same_v<T, double>)
        x = v;
      else
        x = T(static_cast<float>(v));
    }
    std::memcpy(at, &x, sizeof x);
  });
}

// The arrays that a program reads and writes.
struct World {
  struct Array {
    DType dtype;
    int64_t count;
    std::unique_ptr<Guarded> memory;
  };
  std::vector<Array> arrays;
  std::vector<ScalarValue> scalars;

  int add(DType dtype, int64_t count, Dice& dice) {
    const int64_t size = size_of(dtype);
    arrays.push_back({dtype, count, std::make_unique<Guarded>(count * size, dice.below(8) * size)});
    for (int64_t i = 0; i < count; ++i) put_random(dtype, arrays.back().memory->data() + i * size, dice);
    return static_cast<int>(arrays.size()) - 1;
  }
  std::vector<void*> pointers() const {
    std::vector<void*> out;
    for (const Array& a : arrays) out.push_back(a.memory->data());
    return out;
  }
  std::vector<std::vector<char>> snapshot() const {
    std::vector<std::vector<char>> out;
    for (const Array& a : arrays) out.emplace_back(a.memory->data(), a.memory->data() + a.memory->bytes());
    return out;
  }
  void restore(const std::vector<std::vector<char>>& s) {
    for (size_t i = 0; i < arrays.size(); ++i) std::copy(s[i].begin(), s[i].end(), arrays[i].memory->data());
  }
  testing::AssertionResult equals(const std::vector<std::vector<char>>& expected) const {
    for (size_t i = 0; i < arrays.size(); ++i) {
      const Array& a = arrays[i];
      if (!a.memory->guards_hold()) return testing::AssertionFailure() << "array " << i << ": written outside";
      const int64_t size = size_of(a.dtype);
      for (int64_t k = 0; k < a.count; ++k) {
        const char *got = a.memory->data() + k * size, *want = expected[i].data() + k * size;
        if (!same_bits(a.dtype, got, want))
          return visit_dtype(a.dtype, [&]<class T>(T) {
            return testing::AssertionFailure()
                   << "array " << i << " (" << name_of(a.dtype) << ") element " << k << ": "
                   << reference_load<double, T>(got) << ", not " << reference_load<double, T>(want);
          });
      }
    }
    return testing::AssertionSuccess();
  }
};

// What the program should leave in the arrays.
std::vector<std::vector<char>> expected_after(const TileProgram& p, const World& world, const void* producer) {
  const auto before = world.snapshot();
  auto after = before;
  std::vector<const char*> from;
  std::vector<char*> to;
  for (size_t i = 0; i < before.size(); ++i) {
    from.push_back(before[i].data());
    to.push_back(after[i].data());
  }
  visit_compute(p.compute, [&]<class T>(T) {
    reference_run<T>(p, from, to, world.scalars.data(), static_cast<const T*>(producer), 0, p.space.numel());
  });
  return after;
}

// A view of the space over a new array: axes in any order in memory, some repeated, some with gaps.
View random_view(const Shape& space, DType dtype, bool may_repeat, World& world, Dice& dice) {
  std::vector<int> order(static_cast<size_t>(space.rank()));
  std::iota(order.begin(), order.end(), 0);
  if (dice.below(3) == 0) std::swap(order[0], order[static_cast<size_t>(dice.below(space.rank()))]);
  const bool repeats = may_repeat && dice.below(2) == 0;
  View view;
  int64_t extent = 1;
  for (auto axis = order.rbegin(); axis != order.rend(); ++axis) {
    if (repeats && dice.below(2) == 0) continue;
    const int64_t gap = dice.below(6) == 0 ? 2 : 1;
    view.strides[static_cast<size_t>(*axis)] = extent * gap;
    extent *= gap * space[*axis];
  }
  view.offset = dice.below(3);
  view.value = world.add(dtype, extent + view.offset, dice);
  return view;
}

Shape random_space(Dice& dice) {
  constexpr int64_t kSizes[] = {1, 2, 3, 5, 8, 9, 16, 33, 70, 130, 520, 1100};
  for (;;) {
    std::vector<int64_t> dims(static_cast<size_t>(1 + dice.below(4)));
    for (int64_t& d : dims) d = kSizes[dice.below(12)];
    const Shape space(dims);
    if (space.numel() <= 6000) return space;
  }
}

TileProgram random_program(World& world, Dice& dice, bool with_producer) {
  constexpr DType kCompute[] = {DType::f32, DType::f32, DType::f64, DType::i64};
  const Shape space = random_space(dice);
  ProgramBuilder b(kCompute[dice.below(4)], space);
  for (int64_t i = 0, loads = 1 + dice.below(5); i < loads; ++i) {
    const int64_t kind = dice.below(10);
    const DType dtype = dice.below(2) ? b.p.compute : static_cast<DType>(dice.below(kDTypeCount));
    if (kind < 3 || i == 0)
      b.dense(world.add(dtype, space.numel(), dice), dtype);
    else if (kind < 7) {
      const View v = random_view(space, dtype, true, world, dice);
      b.view(v.value, dtype, v.strides, v.offset);
    } else if (kind == 7) {
      constexpr double kConstants[] = {0, 1, -1, 2, 0.5};
      b.constant(kConstants[dice.below(5)]);
    } else {
      b.scalar(static_cast<int>(world.scalars.size()));
      const bool integer = dice.below(2) != 0;
      b.p.loads.back().dtype = integer ? DType::i64 : DType::f32;
      ScalarValue value;
      if (integer)
        value.integer = dice.below(7) - 3;
      else
        value.real = dice.uniform(-2, 2);
      world.scalars.push_back(value);
    }
  }
  if (with_producer) b.producer();
  const int loads = static_cast<int>(b.p.loads.size());
  const int instrs = static_cast<int>(dice.below(14));
  for (int i = 0; i < instrs; ++i) {
    const Ew op = static_cast<Ew>(dice.below(kEwCount));
    if (info_of(op).real_only && b.p.compute == DType::i64) continue;
    const int known = static_cast<int>(b.p.loads.size() + b.p.instrs.size());
    const auto pick = [&] { return static_cast<int>(dice.below(3) ? dice.below(known) : known - 1); };
    b.op(op, pick(), pick(), pick());
  }
  const int known = static_cast<int>(b.p.loads.size() + b.p.instrs.size());
  for (int64_t i = 0, stores = 1 + dice.below(3); i < stores; ++i) {
    const int reg = i == 0 ? known - 1 : static_cast<int>(dice.below(known));
    const DType dtype = dice.below(2) ? b.p.compute : static_cast<DType>(dice.below(kDTypeCount));
    const int64_t kind = dice.below(5);
    if (kind < 2 && i < loads && b.p.loads[static_cast<size_t>(i)].kind == TileLoad::Kind::view &&
        b.p.loads[static_cast<size_t>(i)].view.strides == contiguous_strides(space)) {
      const TileLoad& load = b.p.loads[static_cast<size_t>(i)];  // in place
      b.store(reg, load.view.value, load.dtype, load.view.strides, load.view.offset);
    } else if (kind == 2) {
      const View v = random_view(space, dtype, false, world, dice);
      b.store(reg, v.value, dtype, v.strides, v.offset);
    } else {
      b.store(reg, world.add(dtype, space.numel(), dice), dtype);
    }
  }
  return b.p;
}

std::string text_of(const TileProgram& p) {
  std::string out = cat(name_of(p.compute), " over ", p.space, "\n");
  for (const TileLoad& l : p.loads) {
    out += cat("load ", static_cast<int>(l.kind), " ", name_of(l.dtype), " value ", l.view.value);
    for (int i = 0; i < p.space.rank(); ++i) out += cat(" ", l.view.strides[static_cast<size_t>(i)]);
    out += "\n";
  }
  for (const TileInstr& i : p.instrs) out += cat(info_of(i.op).name, " ", i.x, " ", i.z, " ", i.w, "\n");
  for (const TileStore& s : p.stores) out += cat("store ", s.reg, " to ", s.view.value, " ", name_of(s.dtype), "\n");
  return out;
}

TEST_P(Tile, random_programs_do_as_the_scalar_interpreter) {
  hook_elementary<float>();
  hook_elementary<double>();
  for (uint64_t seed = 0; seed < 1500; ++seed) {
    Dice dice{seed};
    World world;
    const bool with_producer = dice.below(4) == 0;
    const TileProgram p = random_program(world, dice, with_producer);
    const int64_t n = p.space.numel();
    std::vector<char> producer(static_cast<size_t>(n * size_of(p.compute)));
    for (int64_t i = 0; i < n; ++i) put_random(p.compute, producer.data() + i * size_of(p.compute), dice);
    const auto expected = expected_after(p, world, producer.data());
    const auto before = world.snapshot();
    constexpr int64_t kTiles[] = {0, 0, 1, 7, 64, 1000};
    const TileOptions options{.superinstructions = dice.below(2) != 0,
                              .tile_size = kTiles[dice.below(6)],
                              .stream_bytes = dice.below(3) == 0 ? 1 : 0};
    const auto kernel = TileKernel::compile(p, options);
    const auto values = world.pointers();
    if (!with_producer) {
      kernel->run_all(values.data(), world.scalars.data());
      ASSERT_TRUE(world.equals(expected)) << "run_all, seed " << seed << ", " << text_of(p);
      world.restore(before);
    }
    for (int64_t i = 0; i < n;) {
      const int64_t length = std::min(n - i, 1 + dice.below(dice.below(2) ? 50 : 3000));
      kernel->run(values.data(), world.scalars.data(), producer.data() + i * size_of(p.compute), i, length);
      i += length;
    }
    ASSERT_TRUE(world.equals(expected)) << "run, seed " << seed << ", " << text_of(p);
  }
}

// P-045 of the collected cases: tails are not done twice, whatever the length and the alignment.
TEST_P(Tile, in_place_tails_are_done_once) {
  for (const Ew op : {Ew::square, Ew::exp}) {
    for (int64_t n = 1; n <= 70; ++n) {
      for (int64_t offset = 0; offset < 8; ++offset) {
        Guarded in_place(n * 4, offset * 4), source(n * 4, offset * 4), target(n * 4);
        std::fill_n(in_place.as<float>(), n, 2.f);
        std::fill_n(source.as<float>(), n, 2.f);
        ProgramBuilder b(DType::f32, Shape{n});
        b.store(b.op(op, b.dense(0)), 1);
        const auto kernel = TileKernel::compile(b.p);
        void* same[] = {in_place.data(), in_place.data()};
        void* other[] = {source.data(), target.data()};
        kernel->run(same, nullptr, nullptr, 0, n);
        kernel->run(other, nullptr, nullptr, 0, n);
        ASSERT_EQ(std::memcmp(in_place.data(), target.data(), static_cast<size_t>(n * 4)), 0) << n << " at " << offset;
        for (int64_t i = 0; i < n && op == Ew::square; ++i) ASSERT_EQ(in_place.as<float>()[i], 4.f) << i << " of " << n;
        ASSERT_TRUE(in_place.guards_hold() && source.guards_hold() && target.guards_hold());
      }
    }
  }
}

TEST_P(Tile, converts_between_all_types) {
  for (const DType compute : {DType::f32, DType::f64, DType::i64}) {
    for (int from = 0; from < kDTypeCount; ++from) {
      for (int to = 0; to < kDTypeCount; ++to) {
        Dice dice{static_cast<uint64_t>(from * 10 + to)};
        World world;
        constexpr int64_t kCount = 1003;
        ProgramBuilder b(compute, Shape{kCount});
        const int reg = b.dense(world.add(static_cast<DType>(from), kCount, dice), static_cast<DType>(from));
        b.store(reg, world.add(static_cast<DType>(to), kCount, dice), static_cast<DType>(to));
        const auto expected = expected_after(b.p, world, nullptr);
        TileKernel::compile(b.p)->run(world.pointers().data(), nullptr, nullptr, 0, kCount);
        ASSERT_TRUE(world.equals(expected)) << name_of(static_cast<DType>(from)) << " by " << name_of(compute) << " to "
                                            << name_of(static_cast<DType>(to));
      }
    }
  }
}

// All 2^16 halves in, and out again; and floats around every half.
TEST_P(Tile, converts_every_half) {
  const auto check = [&]<class Half>(Half) {
    std::vector<uint16_t> all(1 << 16), back(1 << 16);
    std::iota(all.begin(), all.end(), uint16_t{0});
    std::vector<float> wide(1 << 16);
    const DType half = dtype_of<Half>();
    const auto convert = [&](DType from, const void* in, DType to, void* out) {
      ProgramBuilder b(DType::f32, Shape{1 << 16});
      b.store(b.dense(0, from), 1, to);
      void* values[] = {const_cast<void*>(in), out};
      TileKernel::compile(b.p)->run_all(values, nullptr);
    };
    convert(half, all.data(), DType::f32, wide.data());
    for (size_t i = 0; i < all.size(); ++i) {
      const float expected = static_cast<float>(Half::from_bits(all[i]));
      ASSERT_TRUE(
          same_bits(DType::f32, reinterpret_cast<const char*>(&wide[i]), reinterpret_cast<const char*>(&expected)))
          << i;
    }
    for (const uint32_t nudge : {0u, 1u, 0xfffu, 0x1000u, 0x1001u, 0x7fffu, 0x8000u, 0x8001u}) {
      std::vector<float> near = wide;
      for (float& x : near) x = std::bit_cast<float>(std::bit_cast<uint32_t>(x) + nudge);
      convert(DType::f32, near.data(), half, back.data());
      for (size_t i = 0; i < near.size(); ++i) {
        const Half expected(near[i]);
        ASSERT_TRUE(same_bits(half, reinterpret_cast<const char*>(&back[i]), reinterpret_cast<const char*>(&expected)))
            << near[i];
      }
    }
  };
  check(bf16{});
  check(f16{});
}

TEST_P(Tile, transposes_by_blocks) {
  for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{8, 8}, {33, 65}, {100, 257}, {1000, 70}, {9, 1031}}) {
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::u8}) {
      Dice dice{3};
      World world;
      ProgramBuilder b(dtype == DType::f64 ? DType::f64 : DType::f32, Shape{2, rows, columns});
      const int x = b.view(world.add(dtype, 2 * rows * columns, dice), dtype, {rows * columns, 1, rows});
      const int z = b.view(world.add(dtype, columns, dice), dtype, {0, 0, 1});
      b.store(b.op(Ew::add, x, z), world.add(dtype, 2 * rows * columns, dice), dtype);
      const auto expected = expected_after(b.p, world, nullptr);
      TileKernel::compile(b.p)->run_all(world.pointers().data(), nullptr);
      ASSERT_TRUE(world.equals(expected)) << rows << " x " << columns << " " << name_of(dtype);
    }
  }
}

// Both arrays are read before either is written.
TEST_P(Tile, swaps_two_arrays) {
  Dice dice{1};
  World world;
  constexpr int64_t kCount = 3001;
  ProgramBuilder b(DType::f32, Shape{kCount});
  const int x = world.add(DType::f32, kCount, dice), z = world.add(DType::f32, kCount, dice);
  const int a = b.dense(x), c = b.dense(z);
  b.store(c, x);
  b.store(a, z);
  const auto before = world.snapshot();
  TileKernel::compile(b.p)->run_all(world.pointers().data(), nullptr);
  EXPECT_TRUE(world.equals({before[1], before[0]}));
}

// A plan may give an output the buffer of an input of another type of the same size.
TEST_P(Tile, output_over_an_input_of_another_type) {
  constexpr int64_t kCount = 2000;
  ProgramBuilder b(DType::f32, Shape{kCount});
  const int x = b.dense(0, DType::i32), z = b.dense(1);
  b.store(b.op(Ew::mul, z, z), 2);
  b.store(x, 3, DType::i32);
  std::vector<int32_t> in(kCount), out(kCount);
  std::iota(in.begin(), in.end(), 0);
  std::vector<float> half(kCount, 1.5f);
  void* values[] = {in.data(), half.data(), in.data(), out.data()};
  TileKernel::compile(b.p)->run_all(values, nullptr);
  for (int i = 0; i < kCount; ++i) {
    ASSERT_EQ(out[static_cast<size_t>(i)], i);
    ASSERT_EQ(in[static_cast<size_t>(i)], std::bit_cast<int32_t>(2.25f));
  }
}

TEST_P(Tile, evaluate_leaves_the_result) {
  constexpr int64_t kCount = 4900;
  Dice dice{5};
  World world;
  ProgramBuilder b(DType::f64, Shape{7, 700});
  const int in = world.add(DType::f64, kCount, dice), half = world.add(DType::bf16, kCount, dice);
  const int row = world.add(DType::f64, 700, dice);
  const int regs[] = {b.dense(in),  b.dense(half, DType::bf16),     b.scalar(0), b.constant(2),
                      b.producer(), b.view(row, DType::f64, {0, 1})};
  const int product = b.op(Ew::mul, regs[0], regs[1]);
  const int doubled = b.op(Ew::mul, regs[2], regs[3]);
  const int sum = b.op(Ew::add, product, regs[4]);
  world.scalars.resize(1);
  world.scalars[0].real = 21;
  std::vector<double> producer(kCount, 0.25);
  const auto before = world.snapshot();
  const std::vector<const char*> from = {before[0].data(), before[1].data(), before[2].data()};
  for (const int result : {regs[0], regs[1], regs[2], regs[3], regs[4], regs[5], product, doubled, sum}) {
    for (const bool also_stored : {false, true}) {
      b.p.result = result;
      b.p.stores.clear();
      if (also_stored) b.store(b.op(Ew::neg, regs[0]), in);  // overwrites what the result may have been read from
      for (const int64_t tile : {0, 100}) {
        const auto kernel = TileKernel::compile(b.p, {.superinstructions = true, .tile_size = tile, .stream_bytes = 0});
        for (const auto& [index, length] :
             {std::pair<int64_t, int64_t>{0, kTileSize}, {1500, 1}, {3000, 777}, {kCount - 5, 5}}) {
          world.restore(before);
          const auto values = world.pointers();
          const double* got = static_cast<const double*>(
              kernel->evaluate(values.data(), world.scalars.data(), producer.data() + index, index, length));
          for (int64_t i = 0; i < length; ++i) {
            const double want = reference_registers<double>(b.p, from, world.scalars.data(), &producer[0],
                                                            index + i)[static_cast<size_t>(result)];
            ASSERT_TRUE(
                same_bits(DType::f64, reinterpret_cast<const char*>(got + i), reinterpret_cast<const char*>(&want)))
                << "register " << result << " element " << index + i;
          }
          ASSERT_TRUE(world.arrays[0].memory->guards_hold());
        }
      }
    }
  }
}

// As a matrix product hands out its blocks; rows may run into the next matrix of a batch, or over their own end.
TEST_P(Tile, run_rows_is_row_by_row_run) {
  constexpr int64_t kBatch = 3, kRows = 6, kColumns = 50, kStride = 64;  // producer rows lie 64 apart
  for (const int64_t length : {1, 16, 32, 45, 60}) {
    for (const int64_t index_stride : {kColumns, length, int64_t{71}}) {
      for (const int kind : {0, 1, 2, 3}) {
        for (const int64_t tile : {0, 24}) {
          Dice dice{9};
          World world;
          ProgramBuilder b(DType::f32, Shape{kBatch, kRows, kColumns});
          int y = b.producer();
          const int bias = kind == 0 ? b.dense(world.add(DType::f32, kBatch * kRows * kColumns, dice))
                                     : b.view(world.add(DType::f32, kBatch * kColumns, dice), DType::f32,
                                              {kind == 1 ? 0 : kColumns, 0, 1});
          const int scale = kind == 3 ? b.view(world.add(DType::f32, kRows, dice), DType::f32, {0, 1, 0}) : -1;
          y = b.op(Ew::relu, b.op(Ew::add, y, bias));
          if (scale >= 0) y = b.op(Ew::mul, y, scale);
          b.store(y, world.add(DType::f32, kBatch * kRows * kColumns, dice));
          const int64_t rows = std::min<int64_t>(12, (kBatch * kRows * kColumns - 3 - length) / index_stride + 1);
          std::vector<float> producer(static_cast<size_t>(rows * kStride));
          for (float& x : producer) put_random(DType::f32, reinterpret_cast<char*>(&x), dice);
          const auto kernel =
              TileKernel::compile(b.p, {.superinstructions = true, .tile_size = tile, .stream_bytes = 0});
          const auto before = world.snapshot();
          const auto values = world.pointers();
          for (int64_t r = 0; r < rows; ++r)
            kernel->run(values.data(), nullptr, producer.data() + r * kStride, 3 + r * index_stride, length);
          const auto expected = world.snapshot();
          world.restore(before);
          kernel->run_rows(values.data(), nullptr,
                           {.index = 3,
                            .index_stride = index_stride,
                            .rows = rows,
                            .length = length,
                            .producer = producer.data(),
                            .producer_stride = kStride});
          ASSERT_TRUE(world.equals(expected)) << length << " " << index_stride << " " << kind << " " << tile;
          ASSERT_FALSE(world.equals(before));
        }
      }
    }
  }
}

// Large enough for several tasks, with and without streaming, for any number of threads.
TEST_P(Tile, run_all_is_the_same_for_any_thread_count) {
  constexpr int64_t kCount = 300007;
  Dice dice{2};
  World world;
  ProgramBuilder b(DType::f32, Shape{kCount});
  const int x = b.dense(world.add(DType::f32, kCount, dice)),
            z = b.dense(world.add(DType::bf16, kCount, dice), DType::bf16);
  const int y = b.op(Ew::tanh, b.op(Ew::add, x, z));
  b.store(y, world.add(DType::f32, kCount, dice));
  b.store(b.op(Ew::mul, y, y), world.add(DType::bf16, kCount, dice), DType::bf16);
  const auto kernel = TileKernel::compile(b.p),
             streaming = TileKernel::compile(b.p, {.superinstructions = true, .tile_size = 0, .stream_bytes = 1});
  const auto before = world.snapshot();
  kernel->run(world.pointers().data(), nullptr, nullptr, 0, kCount);
  const auto expected = world.snapshot();
  const int threads = num_threads();
  for (const int count : {1, 2, 3}) {
    set_num_threads(count);
    for (const TileKernel* k : {kernel.get(), streaming.get()}) {
      world.restore(before);
      k->run_all(world.pointers().data(), nullptr);
      EXPECT_TRUE(world.equals(expected)) << count << " threads";
    }
  }
  set_num_threads(threads);
}

// The scratch of a thread belongs to whichever program ran last.
TEST_P(Tile, programs_may_take_turns) {
  ProgramBuilder a(DType::f32, Shape{3}), c(DType::f64, Shape{3});
  a.store(a.op(Ew::add, a.dense(0), a.scalar(0)), 1);
  const int x = c.dense(0), two = c.constant(2);
  c.store(c.op(Ew::sub, c.op(Ew::exp, c.op(Ew::mul, x, two)), two), 1);
  const auto first = TileKernel::compile(a.p), second = TileKernel::compile(c.p);
  for (int i = 0; i < 3; ++i) {
    float in32[] = {1, 2, 3}, out32[3];
    double in64[] = {0, 1, 2}, out64[3];
    ScalarValue s;
    s.real = i;
    void* values32[] = {in32, out32};
    void* values64[] = {in64, out64};
    first->run(values32, &s, nullptr, 0, 3);
    second->run(values64, nullptr, nullptr, 0, 3);
    EXPECT_EQ(out32[2], 3.f + static_cast<float>(i));
    EXPECT_NEAR(out64[1], std::exp(2.0) - 2, 1e-14);
  }
}

TEST_P(Tile, an_empty_space_runs_nothing) {
  ProgramBuilder b(DType::f32, Shape{0, 5});
  b.store(b.op(Ew::neg, b.dense(0)), 1);
  void* values[] = {nullptr, nullptr};
  TileKernel::compile(b.p)->run_all(values, nullptr);
}

}  // namespace
}  // namespace outrace::test
