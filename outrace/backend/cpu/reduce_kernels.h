// The innermost loops of reduce.cpp, chosen per instruction set. Nothing here knows of axes, tiles or threads.
#pragma once
#include <cstdint>

namespace outrace::cpu {

template <class T>
struct FoldKernels {
  // out[r] = what the fold makes of x[r * depth .. + depth), for 0 < depth <= kFoldBlock.
  void (*rows)(const T* x, int64_t depth, int64_t count, T* out);
  // acc[j] = acc[j] + x[0][j] + x[1][j] + ... (or another fold), in this order, for j < width; `first`: it starts with
  // x[0][j] instead.
  void (*columns)(const T* x, int64_t stride, int64_t rows, int64_t width, T* acc, bool first);
};

// With four vectors of eight numbers as partial sums, each takes at most 32 additions a block: about as many as numpy's
// pairwise sum makes before it splits. The vectors' own join at the end costs a tenth of a block that is in L1.
constexpr int64_t kFoldBlock = 1024;

// An extreme is NaN as soon as one element is. Products of integers wrap around.
enum class Fold : uint8_t { sum, max, min, prod };

template <class T>  // float, double, int64_t
const FoldKernels<T>& fold_kernels(Fold fold);

}  // namespace outrace::cpu
