// Reductions over axes. No axes named: over all. Sums follow a fixed tree: the same bits for any number of threads.
#pragma once
#include <vector>

#include "outrace/graph/tensor.h"

namespace outrace {

struct ReduceOptions {
  std::vector<int64_t> axes = {};
  bool keepdim = false;
};

Tensor sum(At x, const ReduceOptions& options = {});   // integers and bool: i64
Tensor mean(At x, const ReduceOptions& options = {});  // floating point only; over no elements: NaN
Tensor max(At x, const ReduceOptions& options = {});   // NaN wins; the gradient is shared equally between equal maxima

// The gradient of a broadcast: sums `g` back to `shape`.
Tensor sum_to(const Tensor& g, const Shape& shape);

}  // namespace outrace
