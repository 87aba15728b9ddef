// Where the extremes along an axis are.
#pragma once
#include <optional>

#include "outrace/graph/tensor.h"

namespace outrace {

// The position (i64) of the largest or smallest element: of equal ones the first, of a NaN the first. Without an axis
// the position in the flattened array. Not differentiable. Error(shape) along an axis of size 0.
Tensor argmax(At x, std::optional<int64_t> axis = std::nullopt, bool keepdim = false);
Tensor argmin(At x, std::optional<int64_t> axis = std::nullopt, bool keepdim = false);

struct ValuesAndIndices {
  Tensor values, indices;  // indices: i64, along the axis
};

// The extremes along `axis` and their positions. The gradient goes to the element at the position alone (where max()
// and min() share it among equals).
ValuesAndIndices max_with_indices(At x, int64_t axis, bool keepdim = false);
ValuesAndIndices min_with_indices(At x, int64_t axis, bool keepdim = false);

}  // namespace outrace
