// How kernels that work along one axis are cut: by the problem's size alone.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "outrace/backend/axis_view.h"
#include "outrace/backend/cpu/thread_memory.h"
#include "outrace/backend/cpu/tile_kernels.h"
#include "outrace/core/aligned.h"
#include "outrace/core/half.h"
#include "outrace/core/thread.h"

namespace outrace::cpu {

// Elements worth a task of their own, some 10 us and more, where waking the threads takes 1 to 5.
constexpr int64_t kAxisTask = 64 * 1024;
// An axis is split only while there are fewer tasks than this.
constexpr int64_t kAxisTasks = 128;
constexpr int64_t kAxisStrip = 512;  // columns a task works on together

// How an axis with columns behind it is cut: strips of columns, and parts of the axis while that gives few tasks.
struct AxisCut {
  int64_t strip, strips, part = 1, parts = 1;

  // `unit`: parts are multiples of it, by a power of two.
  AxisCut(const AxisView& v, int64_t unit, int64_t widest = kAxisStrip, int64_t tasks = kAxisTasks)
      : strip(std::min(v.inner, widest)), strips(ceil_div(v.inner, widest)) {
    part = unit;
    while (part < v.size && (part * strip < kAxisTask || v.outer * strips * ceil_div(v.size, part) > tasks)) part *= 2;
    parts = std::max<int64_t>(1, ceil_div(v.size, part));
  }
};

// fn(i) for 0 <= i < count, in parallel; `elements`: how many each has. Small ones go together, so that a small call
// stays on one thread.
template <class Fn>
void axis_tasks(int64_t count, int64_t elements, const Fn& fn) {
  const int64_t each = std::max<int64_t>(1, kAxisTask / std::max<int64_t>(elements, 1));
  parallel_for(ceil_div(count, each), [&](int64_t task) {
    for (int64_t i = task * each, end = std::min(i + each, count); i < end; ++i) fn(i);
  });
}

// In what kernels compute with an element: f32, f64 or i64.
template <class S>
using ComputeOf = std::conditional_t<
    std::is_same_v<S, double>, double,
    std::conditional_t<std::is_same_v<S, float> || std::is_same_v<S, bf16> || std::is_same_v<S, f16>, float, int64_t>>;

// x itself where it is stored so; else its elements, widened into `memory`.
template <class S>
const ComputeOf<S>* widened(const S* x, int64_t count, ComputeOf<S>* memory) {
  using T = ComputeOf<S>;
  if constexpr (std::is_same_v<S, T>) {
    return x;
  } else {
    char* cells[] = {reinterpret_cast<char*>(memory), reinterpret_cast<char*>(const_cast<S*>(x))};
    constexpr int16_t operands[] = {0, 1};
    tile_move_kernels().to_compute[static_cast<int>(dtype_of<S>())][compute_index(dtype_of<T>())](cells, operands,
                                                                                                  count);
    return memory;
  }
}

template <class T>
bool is_nan(T v) {
  if constexpr (std::is_floating_point_v<T>) return std::isnan(v);
  return false;
}

}  // namespace outrace::cpu
