// Order along an axis. NaN counts as the largest number (last in ascending order, first in descending), -0 equals 0,
// and equal elements keep their order: sorts are stable in both directions.
#pragma once
#include <vector>

#include "outrace/graph/tensor.h"
#include "outrace/ops/arg_reduce.h"

namespace outrace {

// Positions (i64) along the axis in sorted order. Not differentiable.
Tensor argsort(At x, int64_t axis = -1, bool descending = false);
ValuesAndIndices sort(At x, int64_t axis = -1, bool descending = false);

struct TopKOptions {
  int64_t axis = -1;
  bool largest = true;
  bool sorted = true;  // else in the order of their positions
};
// The k largest (or smallest) along the axis; of equal ones those that come first. Error(value) unless 0 <= k <= size.
ValuesAndIndices topk(At x, int64_t k, const TopKOptions& options = {});

// The k-th smallest along the axis, counted from 1. Error(value) unless 1 <= k <= size.
ValuesAndIndices kthvalue(At x, int64_t k, int64_t axis = -1, bool keepdim = false);
// The lower of the two middle elements when their number is even (as PyTorch). A NaN wins. Error(shape) of nothing.
ValuesAndIndices median(At x, int64_t axis = -1, bool keepdim = false);

// The value below which the part q of the elements lies, linear between the two nearest (Hyndman and Fan's definition
// 7, the default of NumPy and PyTorch). A NaN wins. Floating point; Error(value) unless 0 <= q <= 1.
Tensor quantile(At x, double q, int64_t axis = -1, bool keepdim = false);
// Several at once, sorting once: the result has an axis of them in front.
Tensor quantile(At x, const std::vector<double>& q, int64_t axis = -1, bool keepdim = false);

}  // namespace outrace
