#include "outrace/backend/cpu/relayout.h"

#include <algorithm>
#include <cstring>

#include "outrace/backend/cpu/gemm.h"
#include "outrace/core/error.h"
#include "outrace/core/thread.h"

namespace outrace::cpu {
namespace {

// Elements worth a task of their own, some 30 us.
constexpr int64_t kTaskElements = 64 << 10;

template <class T>
void relayout_as(T* to, Layout to_layout, const T* from, const Shape& shape) {
  const int64_t rows = shape[0], columns = shape[1], width = panel_width<T>();
  // Panels lie back to back and are as large as the rows they hold, so any run of whole panels is a packed matrix
  // itself.
  const int64_t step = std::max<int64_t>(1, kTaskElements / std::max<int64_t>(1, width * columns)) * width;
  parallel_for((rows + step - 1) / step, [&](int64_t task) {
    const int64_t first = task * step, count = std::min(step, rows - first);
    const T* source = from + first * columns;
    T* target = to + first * columns;
    if (to_layout == Layout::panel)
      pack_weight(source, target, count, columns);
    else
      unpack_weight(source, target, count, columns);
  });
}

}  // namespace

const char* relayout_refusal(DType dtype, const Shape& shape) {
  if (dtype != DType::f32 && dtype != DType::f64) return "packed weights are f32 or f64";
  return shape.rank() == 2 ? nullptr : "packed weights are matrices";
}

void relayout(void* to, Layout to_layout, const void* from, Layout from_layout, DType dtype, const Shape& shape) {
  if (to_layout == from_layout) {
    if (shape.numel() > 0) std::memcpy(to, from, static_cast<size_t>(shape.numel() * size_of(dtype)));
    return;
  }
  OUTRACE_ASSERT(relayout_refusal(dtype, shape) == nullptr, "relayout of ", name_of(dtype), " ", shape);
  if (dtype == DType::f64)
    relayout_as(static_cast<double*>(to), to_layout, static_cast<const double*>(from), shape);
  else
    relayout_as(static_cast<float*>(to), to_layout, static_cast<const float*>(from), shape);
}

}  // namespace outrace::cpu
