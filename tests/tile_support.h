// What the tests of tile programs share: a builder of programs, buffers with guards, every instruction set here.
#pragma once
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "outrace/backend/cpu/tile.h"
#include "outrace/core/cpu_info.h"
#include "outrace/graph/plan.h"
#include "tile_reference.h"

namespace outrace::test {

// Writes a TileProgram; functions return registers. Loads before instructions.
class ProgramBuilder {
 public:
  ProgramBuilder(DType compute, const Shape& space) {
    p.compute = compute;
    p.space = space;
  }
  int view(int value, DType dtype, const Strides& strides, int64_t offset = 0) {
    return load(
        {.kind = TileLoad::Kind::view, .dtype = dtype, .view = {.value = value, .offset = offset, .strides = strides}});
  }
  int dense(int value, DType dtype) { return view(value, dtype, contiguous_strides(p.space)); }
  int dense(int value) { return dense(value, p.compute); }
  int constant(double c) {
    return load({.kind = TileLoad::Kind::constant, .dtype = p.compute, .view = {}, .constant = c});
  }
  int scalar(int index) {
    return load({.kind = TileLoad::Kind::scalar, .dtype = p.compute, .view = {}, .constant = 0, .scalar = index});
  }
  int producer() { return load({.kind = TileLoad::Kind::producer, .dtype = p.compute, .view = {}}); }
  int op(Ew e, int x, int z = -1, int w = -1) {
    p.instrs.push_back({e, static_cast<int16_t>(x), static_cast<int16_t>(z), static_cast<int16_t>(w)});
    return static_cast<int>(p.loads.size() + p.instrs.size()) - 1;
  }
  void store(int reg, int value, DType dtype) { store(reg, value, dtype, contiguous_strides(p.space)); }
  void store(int reg, int value) { store(reg, value, p.compute); }
  void store(int reg, int value, DType dtype, const Strides& strides, int64_t offset = 0) {
    p.stores.push_back({.reg = reg, .view = {.value = value, .offset = offset, .strides = strides}, .dtype = dtype});
  }

  TileProgram p;

 private:
  int load(const TileLoad& l) {
    p.loads.push_back(l);
    return static_cast<int>(p.loads.size()) - 1;
  }
};

// The kernels' own elementary functions for the scalar interpreter: their accuracy has a test of its own.
template <class T>
T elementary(Ew op, T x, T z) {
  static std::map<std::pair<Isa, Ew>, std::unique_ptr<cpu::TileKernel>> kernels;
  std::unique_ptr<cpu::TileKernel>& kernel = kernels[{active_isa(), op}];
  if (!kernel) {
    ProgramBuilder b(dtype_of<T>(), Shape{1});
    const int x_reg = b.dense(0), z_reg = b.dense(1);
    b.store(b.op(op, x_reg, info_of(op).arity > 1 ? z_reg : -1), 2);
    kernel = cpu::TileKernel::compile(b.p);
  }
  T out;
  void* values[] = {&x, &z, &out};
  kernel->run(values, nullptr, nullptr, 0, 1);
  return out;
}
template <class T>
void hook_elementary() {
  Plain<T>::elementary = &elementary<T>;
}

// A row of ops.def over arrays of one length.
template <class T>
std::vector<T> run_row(Ew op, const std::vector<T>& x, const std::vector<T>& z, const std::vector<T>& w) {
  const int64_t n = static_cast<int64_t>(x.size());
  ProgramBuilder b(dtype_of<T>(), Shape{n});
  const int regs[] = {b.dense(0), b.dense(1), b.dense(2)};
  const int arity = info_of(op).arity;
  b.store(b.op(op, regs[0], arity > 1 ? regs[1] : -1, arity > 2 ? regs[2] : -1), 3);
  std::vector<T> out(x.size());
  void* values[] = {const_cast<T*>(x.data()), const_cast<T*>(z.data()), const_cast<T*>(w.data()), out.data()};
  cpu::TileKernel::compile(b.p)->run(values, nullptr, nullptr, 0, n);
  return out;
}

// Numbers at which functions change their ways.
template <class T>
std::vector<T> edges() {
  if constexpr (std::is_integral_v<T>) {
    return {0,
            1,
            -1,
            2,
            -2,
            7,
            std::numeric_limits<T>::max(),
            std::numeric_limits<T>::min(),
            std::numeric_limits<T>::min() + 1};
  } else {
    using L = std::numeric_limits<T>;
    return {0,
            -T(0),
            1,
            -1,
            T(0.5),
            2,
            -2,
            T(1.5),
            3,
            L::infinity(),
            -L::infinity(),
            L::quiet_NaN(),
            L::min(),
            -L::min(),
            L::denorm_min(),
            -L::denorm_min(),
            L::min() / 3,
            L::max(),
            L::lowest(),
            L::epsilon(),
            T(1) + L::epsilon(),
            T(88.72283),
            T(88.72284),
            T(88.8),
            T(-87.3),
            T(-87.5),
            T(-103.9),
            T(-103.98),
            T(-104.5),
            T(709.78),
            T(709.79),
            T(-708.4),
            T(-745.1),
            T(-745.2),
            20,
            -20,
            100,
            1000,
            -1000};
  }
}

// Bytes between two guards; `shift` elements off the alignment that the allocator gives.
class Guarded {
 public:
  explicit Guarded(int64_t bytes, int64_t shift_bytes = 0)
      : shift_(shift_bytes), bytes_(bytes), memory_(all(), kGuard) {}
  char* data() { return memory_.data() + kGuardBytes + shift_; }
  const char* data() const { return memory_.data() + kGuardBytes + shift_; }
  int64_t bytes() const { return bytes_; }
  template <class T>
  T* as() {
    return reinterpret_cast<T*>(data());
  }
  bool guards_hold() const {
    for (size_t i = 0; i < memory_.size(); ++i) {
      const bool inside =
          i >= static_cast<size_t>(kGuardBytes + shift_) && i < static_cast<size_t>(kGuardBytes + shift_ + bytes_);
      if (!inside && memory_[i] != kGuard) return false;
    }
    return true;
  }

 private:
  static constexpr int64_t kGuardBytes = 256;
  static constexpr char kGuard = 0x5a;
  size_t all() const { return static_cast<size_t>(2 * kGuardBytes + shift_ + bytes_); }
  int64_t shift_, bytes_;
  std::vector<char> memory_;
};

// A deterministic stream of random numbers (SplitMix64), the same on every standard library.
struct Dice {
  uint64_t state;
  uint64_t next() {
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }
  int64_t below(int64_t n) { return static_cast<int64_t>(next() % static_cast<uint64_t>(n)); }
  double uniform(double low, double high) { return low + (high - low) * (static_cast<double>(next() >> 11) * 0x1p-53); }
};

// Tests that run once for each instruction set the machine has.
class EachIsa : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    before_ = active_isa();
    set_active_isa(GetParam());
  }
  void TearDown() override { set_active_isa(before_); }

 private:
  Isa before_ = Isa::generic;
};

inline std::vector<Isa> isas_here() {
  std::vector<Isa> out;
  for (const Isa isa : {Isa::avx2, Isa::avx512, Isa::neon})
    if (cpu_info().supports(isa)) out.push_back(isa);
  return out;
}
inline std::string isa_name(const testing::TestParamInfo<Isa>& info) { return std::string(name_of(info.param)); }

}  // namespace outrace::test
