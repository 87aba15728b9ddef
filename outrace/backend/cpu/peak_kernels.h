// The loops that measured_peak() times, one table an instruction set.
#pragma once
#include <cstdint>

namespace outrace {

struct PeakKernels {
  // Run `rounds` rounds of independent multiply-adds and return how many floating-point operations that was.
  double (*multiply_add_f32)(int64_t rounds);
  double (*multiply_add_f64)(int64_t rounds);
  // Copies with stores past the caches; `from` and `to` are 64-byte aligned, `count` a multiple of 64.
  void (*stream_copy)(const float* from, float* to, int64_t count);
};

const PeakKernels& peak_kernels();

}  // namespace outrace
