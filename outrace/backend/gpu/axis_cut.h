// How kernels that work along one axis are cut: by the problem's size alone.
#pragma once
#include <algorithm>

#include "outrace/backend/axis_view.h"
#include "outrace/backend/gpu/kernel_rows.h"

namespace outrace::gpu {

// Whether groups walk neighbouring elements of a line together, or an item walks each line.
inline bool walked_by_groups(const AxisView& v) { return v.inner == 1 && v.size >= 128; }

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
