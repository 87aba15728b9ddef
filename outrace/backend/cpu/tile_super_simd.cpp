// The loops of the superinstructions of tile_super.def.
#include "outrace/backend/cpu/simd_target.h"
#include "outrace/backend/cpu/tile_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "outrace/backend/cpu/tile_super_simd.cpp"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "outrace/backend/cpu/simd_value.h"

HWY_BEFORE_NAMESPACE();
namespace outrace::HWY_NAMESPACE {
namespace {

using cpu::Super;

// The unary rows of ops.def by name, for those that vectors have no function of: relu(x) ...
#define UNARY(name, value, ...) \
  template <class V>            \
  HWY_INLINE V name(V x) {      \
    return value;               \
  }
#define BINARY(...)
#define COMPARE(...)
#define SELECT(...)
namespace rows {
#include "outrace/ops/ops.def"
}  // namespace rows
#undef UNARY
#undef BINARY
#undef COMPARE
#undef SELECT
using rows::relu;

template <Super kSuper>
struct SuperRow;
#define SUPER(name, inputs, uniforms, outputs, ...)                                                  \
  template <>                                                                                        \
  struct SuperRow<Super::name> {                                                                     \
    static constexpr int kInputs = inputs, kUniforms = uniforms, kOutputs = outputs;                 \
    template <class V>                                                                               \
    static HWY_INLINE void eval([[maybe_unused]] const V (&in)[inputs], [[maybe_unused]] const V* u, \
                                V (&out)[outputs]) {                                                 \
      __VA_ARGS__;                                                                                   \
    }                                                                                                \
  };
#include "outrace/backend/cpu/tile_super.def"
#undef SUPER

template <Super kSuper, class T>
void super(char* const* cells, const int16_t* operands, int64_t n) {
  using R = SuperRow<kSuper>;
  using V = Value<T>;
  T* to[R::kOutputs];
  const T* from[R::kInputs];
  V in[R::kInputs], u[R::kUniforms + 1], out[R::kOutputs];
  for (int k = 0; k < R::kOutputs; ++k) to[k] = reinterpret_cast<T*>(cells[operands[k]]);
  for (int k = 0; k < R::kInputs; ++k) from[k] = reinterpret_cast<const T*>(cells[operands[R::kOutputs + k]]);
  for (int k = 0; k < R::kUniforms; ++k)
    u[k] = V::splat(reinterpret_cast<const T*>(cells[operands[R::kOutputs + R::kInputs + k]]));
  int64_t i = 0;
  for (; i + V::kLanes <= n; i += V::kLanes) {
#pragma GCC unroll 8
    for (int k = 0; k < R::kInputs; ++k) in[k] = V::load(from[k] + i);
    R::eval(in, u, out);
#pragma GCC unroll 8
    for (int k = 0; k < R::kOutputs; ++k) out[k].store(to[k] + i);
    // Seven streams are more than the hardware's prefetchers follow across pages. Once a cache line, 1 KB ahead: Adam
    // over 100 M parameters 46 ms, 57 without (Zen 4); a whole tile ahead gained nothing.
    if constexpr (R::kOutputs > 1) {
      constexpr int64_t kLine = 64 / int64_t{sizeof(T)}, kAhead = 16 * kLine;
      if (i % kLine == 0) {
#pragma GCC unroll 8
        for (int k = 0; k < R::kInputs; ++k) hwy::Prefetch(from[k] + i + kAhead);
      }
    }
  }
  if (const int64_t left = n - i; left > 0) {
    for (int k = 0; k < R::kInputs; ++k) in[k] = V::load_first(from[k] + i, left);
    R::eval(in, u, out);
    for (int k = 0; k < R::kOutputs; ++k) out[k].store_first(to[k] + i, left);
  }
}

constexpr cpu::TileSuperKernels kTileSuperKernels = {{
#define SUPER(name, ...) {&super<Super::name, float>, &super<Super::name, double>},
#include "outrace/backend/cpu/tile_super.def"
#undef SUPER
}};

}  // namespace
}  // namespace outrace::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace outrace::cpu {
const TileSuperKernels& tile_super_kernels() { return OUTRACE_CHOOSE_TARGET(kTileSuperKernels); }
}  // namespace outrace::cpu
#endif
