// Arrays of 16-bit floats to and from float, with the same SIMD loops as tile programs use.
#pragma once
#include "outrace/backend/cpu/tile_kernels.h"

namespace outrace::cpu {

// Whether an array of this dtype is computed with as it is stored.
constexpr bool is_wide(DType dtype) { return dtype == DType::f32 || dtype == DType::f64; }

inline void widen_to_f32(DType from, const void* x, float* out, int64_t count) {
  char* cells[] = {reinterpret_cast<char*>(out), static_cast<char*>(const_cast<void*>(x))};
  constexpr int16_t operands[] = {0, 1};
  tile_move_kernels().to_compute[static_cast<int>(from)][compute_index(DType::f32)](cells, operands, count);
}

inline void narrow_from_f32(DType to, const float* x, void* out, int64_t count) {
  char* cells[] = {static_cast<char*>(out), reinterpret_cast<char*>(const_cast<float*>(x))};
  constexpr int16_t operands[] = {0, 1};
  tile_move_kernels().from_compute[static_cast<int>(to)][compute_index(DType::f32)](cells, operands, count);
}

}  // namespace outrace::cpu
