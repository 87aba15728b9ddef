// The instructions of tile programs: each row of ops.def as a loop, for each compute type and form of its operands.
#include <type_traits>

#include "outrace/backend/cpu/simd_target.h"
#include "outrace/backend/cpu/tile_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "outrace/backend/cpu/tile_simd.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "outrace/backend/cpu/simd_value.h"

HWY_BEFORE_NAMESPACE();
namespace outrace::HWY_NAMESPACE {
namespace {

using cpu::kComputeTypes;
using cpu::kOperandForms;
using cpu::TileFn;

// A row of ops.def: its text over values of type V. Comparisons give 1 or 0.
template <Ew kOp>
struct Row;
#define UNARY(name, value, gx, types, autocast, low, high) \
  template <>                                              \
  struct Row<Ew::name> {                                   \
    static constexpr bool kRealOnly = detail::types;       \
    template <class V>                                     \
    static HWY_INLINE V eval(V x, V, V) {                  \
      return value;                                        \
    }                                                      \
  };
#define BINARY(name, value, gx, gz, types, autocast, low, high) \
  template <>                                                   \
  struct Row<Ew::name> {                                        \
    static constexpr bool kRealOnly = detail::types;            \
    template <class V>                                          \
    static HWY_INLINE V eval(V x, V z, V) {                     \
      return value;                                             \
    }                                                           \
  };
#define COMPARE(name, value)                 \
  template <>                                \
  struct Row<Ew::name> {                     \
    static constexpr bool kRealOnly = false; \
    template <class V>                       \
    static HWY_INLINE V eval(V x, V z, V) {  \
      return select(value, V(1), V(0));      \
    }                                        \
  };
#define SELECT(name, value, gz, gw, low, high) \
  template <>                                  \
  struct Row<Ew::name> {                       \
    static constexpr bool kRealOnly = false;   \
    template <class V>                         \
    static HWY_INLINE V eval(V x, V z, V w) {  \
      return value;                            \
    }                                          \
  };
#include "outrace/ops/ops.def"
#undef UNARY
#undef BINARY
#undef COMPARE
#undef SELECT

// One operand: an array, one value, or not there.
template <class T, bool kPresent, bool kUniform>
struct Operand {
  using V = Value<T>;
  const T* p;
  V value;

  HWY_INLINE explicit Operand(const char* cell) : p(reinterpret_cast<const T*>(cell)) {
    if constexpr (kPresent && kUniform) value = V::splat(p);
  }
  HWY_INLINE V at(int64_t i) const {
    if constexpr (kPresent && !kUniform) return V::load(p + i);
    return value;
  }
  HWY_INLINE V first(int64_t i, int64_t n) const {
    if constexpr (kPresent && !kUniform) return V::load_first(p + i, n);
    return value;
  }
};

// kForm: bit i says that operand i is one value for all elements.
template <Ew kOp, int kForm, class T>
void instruction(char* const* cells, const int16_t* operands, int64_t n) {
  using V = Value<T>;
  constexpr int kArity = info_of(kOp).arity;
  T* out = reinterpret_cast<T*>(cells[operands[0]]);
  const Operand<T, true, (kForm & 1) != 0> x(cells[operands[1]]);
  const Operand<T, kArity >= 2, (kForm & 2) != 0> z(kArity >= 2 ? cells[operands[2]] : nullptr);
  const Operand<T, kArity >= 3, (kForm & 4) != 0> w(kArity >= 3 ? cells[operands[3]] : nullptr);
  int64_t i = 0;
  if constexpr (Row<kOp>::kRealOnly) {
    // The text once only: elementary functions are long, and their time hides the branches.
    for (; i < n; i += V::kLanes) {
      const int64_t left = n - i;
      const bool whole = left >= V::kLanes;
      const V a = whole ? x.at(i) : x.first(i, left);
      const V b = whole ? z.at(i) : z.first(i, left);
      const V c = whole ? w.at(i) : w.first(i, left);
      const V y = Row<kOp>::eval(a, b, c);
      if (whole)
        y.store(out + i);
      else
        y.store_first(out + i, left);
    }
    return;
  }
#pragma GCC unroll 2
  for (; i + V::kLanes <= n; i += V::kLanes) Row<kOp>::eval(x.at(i), z.at(i), w.at(i)).store(out + i);
  if (const int64_t left = n - i; left > 0)
    Row<kOp>::eval(x.first(i, left), z.first(i, left), w.first(i, left)).store_first(out + i, left);
}

// The forms worth having: never all operands uniform (such registers are computed once); select's condition varies.
template <Ew kOp, int kForm, class T>
constexpr TileFn choose() {
  constexpr int kArity = info_of(kOp).arity;
  constexpr bool kHasForm = kForm < (1 << kArity) && kForm != (1 << kArity) - 1 && !(kArity == 3 && (kForm & 1));
  if constexpr (kHasForm && !(Row<kOp>::kRealOnly && std::is_same_v<T, int64_t>)) return &instruction<kOp, kForm, T>;
  return nullptr;
}

template <Ew kOp, int kForm>
constexpr void fill_form(TileFn (&fn)[kOperandForms][kComputeTypes]) {
  fn[kForm][0] = choose<kOp, kForm, float>();
  fn[kForm][1] = choose<kOp, kForm, double>();
  fn[kForm][2] = choose<kOp, kForm, int64_t>();
  if constexpr (kForm + 1 < kOperandForms) fill_form<kOp, kForm + 1>(fn);
}

template <int kIndex = 0>
constexpr void fill_ops(cpu::TileInstrKernels& table) {
  fill_form<static_cast<Ew>(kIndex), 0>(table.fn[kIndex]);
  if constexpr (kIndex + 1 < kEwCount) fill_ops<kIndex + 1>(table);
}

constexpr cpu::TileInstrKernels make_table() {
  cpu::TileInstrKernels table{};
  fill_ops(table);
  return table;
}

constexpr cpu::TileInstrKernels kTileInstrKernels = make_table();

}  // namespace
}  // namespace outrace::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace outrace::cpu {
const TileInstrKernels& tile_instr_kernels() { return OUTRACE_CHOOSE_TARGET(kTileInstrKernels); }
}  // namespace outrace::cpu
#endif
