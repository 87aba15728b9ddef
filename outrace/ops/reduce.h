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
// NaN wins; the gradient is shared equally between equal extremes. Error(shape) over no elements.
Tensor max(At x, const ReduceOptions& options = {});
Tensor min(At x, const ReduceOptions& options = {});
// Integers and bool: i64, wrapping around; over no elements: 1. The gradient of an element is the product of the
// others, formed without division: right beside zeros, and differentiable again.
Tensor prod(At x, const ReduceOptions& options = {});
// bool: whether some element, or every one, is not 0. NaN is not 0; over no elements: false and true.
Tensor any(At x, const ReduceOptions& options = {});
Tensor all(At x, const ReduceOptions& options = {});

// The gradient of a broadcast: sums `g` back to `shape`.
Tensor sum_to(const Tensor& g, const Shape& shape);

}  // namespace outrace
