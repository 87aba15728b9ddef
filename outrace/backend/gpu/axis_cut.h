// Arrays seen along one axis, and how kernels that work along it are cut: by the problem's size alone.
#pragma once
#include <algorithm>

#include "outrace/backend/gpu/kernel_rows.h"

namespace outrace::gpu {

// A row-major [outer, size, inner]; the axis is the middle one.
struct AxisView {
  int64_t outer = 1, size = 1, inner = 1;

  static AxisView of(const Shape& shape, int64_t axis) {
    AxisView v;
    for (int i = 0; i < shape.rank(); ++i) (i < axis ? v.outer : i == axis ? v.size : v.inner) *= shape[i];
    return v;
  }
  int64_t lines() const { return outer * inner; }
  // Groups walk neighbouring elements together, from this length on; else an item walks a line.
  bool teams() const { return inner == 1 && size >= 128; }
};

// Parts of every line, so that few lines still fill a large card.
struct AxisCut {
  int64_t parts = 1, length = 1;

  // `unit`: lengths are multiples of it. `enough`: parts of all lines together.
  AxisCut(int64_t lines, int64_t size, int64_t unit, int64_t enough) {
    const int64_t most = std::clamp<int64_t>(enough / std::max<int64_t>(lines, 1), 1, 1024);
    length = std::max<int64_t>(1, groups_for(groups_for(size, most), unit)) * unit;
    parts = std::max<int64_t>(1, groups_for(size, length));
  }
};
constexpr int64_t kEnoughGroups = 1024, kEnoughItems = 64 * 1024;

// Items that share a line of this length, a divisor of a group: fewer for short lines, several of which a group takes.
constexpr int64_t lanes_for(int64_t size) { return size <= 64 ? 8 : size <= 1024 ? 32 : kGroup; }

inline Grid line_grid(int64_t lines, int64_t lanes) {
  return {.groups = {groups_for(lines, kGroup / lanes), 1, 1}, .lanes = lanes == kGroup};
}

// From so many lines on, an item each joins the parts of a line; below, a group.
constexpr int64_t kManyLines = 256;

}  // namespace outrace::gpu
