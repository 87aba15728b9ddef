// The innermost loops of variance.cpp, chosen per instruction set.
#pragma once
#include <cstdint>

namespace outrace::cpu {

// Of some numbers: their mean, rounded, and the sums of the differences from it and of those squared. The first sum
// would be 0 but for the mean's rounding, and corrects the second.
template <class T>
struct MomentKernels {
  // count > 0 neighbours
  void (*row)(const T* x, int64_t count, T* mean, T* rest, T* squares);
  // each of `width` columns of `rows` > 0 numbers, `stride` apart
  void (*columns)(const T* x, int64_t stride, int64_t rows, int64_t width, T* mean, T* rest, T* squares);
};

template <class T>  // float, double
const MomentKernels<T>& moment_kernels();

}  // namespace outrace::cpu
