// Spread, norms and counts.
#pragma once
#include <vector>

#include "outrace/graph/tensor.h"
#include "outrace/ops/reduce.h"

namespace outrace {

struct VarianceOptions {
  std::vector<int64_t> axes = {};  // none: all
  bool keepdim = false;
  int64_t correction = 1;  // 1: the unbiased estimate (divided by n - 1), 0: the variance of the elements themselves
};

// Mean squared distance from the mean: in two passes over blocks in cache, which are joined by the formula of Chan,
// Golub and LeVeque (1979), so a large mean costs no digits. NaN where n - correction <= 0. Floating point; bf16 and
// f16 are computed in f32.
Tensor var(At x, const VarianceOptions& options = {});
// Its root. Where the variance is 0 the gradient is 0.
Tensor std(At x, const VarianceOptions& options = {});
struct VarianceAndMean {
  Tensor var, mean;
};
VarianceAndMean var_mean(At x, const VarianceOptions& options = {});

// (sum |x|^p)^(1/p); p = 0 counts what is not 0, p = inf and -inf give the largest and smallest |x|. Where the norm is
// 0 the gradient is 0. p = 2 does not rescale: squares may overflow. Other p than 0, 1, 2 and infinities are scaled by
// the largest |x| and cannot. Floating point; bf16 and f16 are computed in f32.
Tensor norm(At x, double p = 2, const ReduceOptions& options = {});

// How many elements lie in each of `bins` equal parts of [low, high] (i64): a bin has its lower edge and lacks its
// upper one, but the last has both (as NumPy). Elements outside and NaN are left out (as PyTorch's histc). Not
// differentiable. Error(value) unless bins >= 1 and low < high are finite.
Tensor histogram(At x, int64_t bins, double low, double high);

// How often each of 0, 1, ... occurs among integers (i64), at least minlength numbers. The result's size depends on the
// largest element, which is computed now. Error(value) for a negative element or minlength.
Tensor bincount(At x, int64_t minlength = 0);

}  // namespace outrace
