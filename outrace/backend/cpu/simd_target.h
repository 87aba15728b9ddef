// How a kernel file (`*_simd.cpp`) is compiled once for AVX2 and once for AVX-512 and how a caller gets the right one.
// Include it before any Highway header. Such files are built with -march=haswell (AVX2, FMA, F16C) on x86-64;
// elsewhere with the compiler's default, and there is one target only.
// clang-format off
// Example, file outrace/backend/cpu/scale_simd.cpp:
//
//   #include "outrace/backend/cpu/scale.h"  // struct ScaleKernels { void (*f32)(float* x, float a, int64_t n); };
//   #include "outrace/backend/cpu/simd_target.h"
//   #undef HWY_TARGET_INCLUDE
//   #define HWY_TARGET_INCLUDE "outrace/backend/cpu/scale_simd.cpp"  // this very file, included once a target
//   #include "hwy/foreach_target.h"
//   #include "hwy/highway.h"
//   HWY_BEFORE_NAMESPACE();
//   namespace outrace::HWY_NAMESPACE {  // N_AVX2, N_AVX3
//   namespace {
//   namespace hn = hwy::HWY_NAMESPACE;
//   void scale_f32(float* x, float a, int64_t n) { /* hn::Mul ...; a lambda needs HWY_ATTR */ }
//   constexpr ScaleKernels kScaleKernels = {&scale_f32};
//   }  // namespace
//   }  // namespace outrace::HWY_NAMESPACE
//   HWY_AFTER_NAMESPACE();
//   #if HWY_ONCE
//   namespace outrace {
//   const ScaleKernels& scale_kernels() { return OUTRACE_CHOOSE_TARGET(kScaleKernels); }
//   }  // namespace outrace
//   #endif
// clang-format on
//
// Keep everything of a target inside the unnamed namespace: two files that define one name in outrace::N_AVX2 would
// clash. Code for one target alone stands between `#if HWY_TARGET == HWY_AVX3` and `#endif`.
#pragma once
#include "outrace/core/cpu_info.h"

#ifdef HWY_HIGHWAY_INCLUDED
#error "include simd_target.h before Highway"
#endif

#if defined(__x86_64__)
// Two targets: AVX3_DL (Ice Lake's extras) brings nothing for f32 and f64, older ones lack FMA. AES, which nothing here
// uses, is not part of -march=haswell, and Highway would take AVX2 for absent without it.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#define HWY_DISABLE_PCLMUL_AES
#include "hwy/detect_targets.h"
#if HWY_STATIC_TARGET != HWY_AVX2
#error "compile *_simd.cpp files with -march=haswell and nothing wider"
#endif
// The table `name` of the target that active_isa() asks for. Throws Error(device) on a CPU without AVX2.
#define OUTRACE_CHOOSE_TARGET(name) (::outrace::wants_avx512() ? N_AVX3::name : N_AVX2::name)
#else
#define HWY_COMPILE_ONLY_STATIC
#include "hwy/detect_targets.h"
#define OUTRACE_CHOOSE_TARGET(name) (HWY_NAMESPACE::name)
#endif
