// Running sums, products and extremes along an axis, and the linear recurrence their derivatives need.
#pragma once
#include "outrace/graph/tensor.h"
#include "outrace/ops/arg_reduce.h"

namespace outrace {

struct ScanOptions {
  bool reverse = false;    // from the axis's end
  bool exclusive = false;  // element i gets the sum or product of those before it, the first 0 or 1
};

// y[i] = x[0] + ... + x[i] along the axis. Floats are added up in f64 and rounded once an element; integers and bool in
// i64, wrapping around. Blocks are fixed: the same bits for any number of threads.
Tensor cumsum(At x, int64_t axis, const ScanOptions& options = {});
// The same with products. The derivative divides nowhere: right beside zeros, and differentiable again.
Tensor cumprod(At x, int64_t axis, const ScanOptions& options = {});

// Running extremes and their positions: the latest of equal ones (as PyTorch); a NaN stays. Gradients go to the
// positions.
ValuesAndIndices cummax(At x, int64_t axis);
ValuesAndIndices cummin(At x, int64_t axis);

// h[i] = a[i] * h[i - 1] + b[i] along the axis, h[-1] = 0; `reverse`: h[i] = a[i] * h[i + 1] + b[i]. Floating point, a
// and b of one shape and dtype; 16-bit floats are computed in f32.
Tensor linear_recurrence(At a, const Tensor& b, int64_t axis, bool reverse = false);

}  // namespace outrace
