// Arrays seen along one axis.
#pragma once
#include "outrace/core/shape.h"

namespace outrace {

// A row-major [outer, size, inner]; the axis is the middle one.
struct AxisView {
  int64_t outer = 1, size = 1, inner = 1;

  static AxisView of(const Shape& shape, int64_t axis) {
    AxisView v;
    for (int i = 0; i < shape.rank(); ++i) (i < axis ? v.outer : i == axis ? v.size : v.inner) *= shape[i];
    return v;
  }
  int64_t numel() const { return outer * size * inner; }
  int64_t lines() const { return outer * inner; }
};

}  // namespace outrace
