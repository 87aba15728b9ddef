// Logarithms of sums of exponentials, and softmax over chosen elements. What is left out is replaced before exp, never
// multiplied by 0 afterwards: no excluded value, however large, reaches a result or a gradient.
#pragma once
#include "outrace/graph/tensor.h"
#include "outrace/ops/reduce.h"

namespace outrace {

// log(sum(exp(x))), shifted by the largest element. -inf over nothing and over -inf alone, with gradient 0; +inf with
// an infinity (its gradient is NaN). Floating point; bf16 and f16 are computed in f32.
Tensor logsumexp(At x, const ReduceOptions& options = {});

// `keep` is bool and broadcasts with x.
Tensor masked_logsumexp(At x, const Tensor& keep, const ReduceOptions& options = {});
// The sum of the elements kept. For a sum of f(x) with a pole or an overflow among what is left out, replace it first:
// masked_sum(f(select(keep, x, 0.0)), keep).
Tensor masked_sum(At x, const Tensor& keep, const ReduceOptions& options = {});
// 0 for what is left out; a row of which nothing is kept, or -inf alone, is 0 everywhere.
Tensor masked_softmax(At x, const Tensor& keep, int64_t axis = -1);
// -inf for what is left out.
Tensor masked_log_softmax(At x, const Tensor& keep, int64_t axis = -1);

}  // namespace outrace
