// Axes of a space in groups: what kernels that keep some axes and walk the others pass as numbers.
#pragma once
#include <vector>

#include "outrace/backend/gpu/kernel_rows.h"

namespace outrace::gpu {

struct Axis {
  int64_t size, stride;
};

// The axes of `shape` whose bit in `axes` is `reduced`, outermost first, with their strides in elements of the dense
// space; neighbours joined, axes of one entry gone. Never empty: {1, 0}.
std::vector<Axis> axes_of(const Shape& shape, int64_t axes, bool reduced);
int64_t count_of(const std::vector<Axis>& axes);

// As kernels take them (reduce.cl): the stride of the first, then {size, magic, stride} of each other.
void append_axes(const std::vector<Axis>& axes, std::vector<Arg>& args);

// {multiplier, shift << 32} with which the dialect's div_by() divides by `d`.
int64_t magic_of(int64_t d);

}  // namespace outrace::gpu
