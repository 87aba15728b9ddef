// Cuts rows into tasks, widens and narrows 16-bit floats.
#include "outrace/backend/cpu/norm.h"

#include <algorithm>
#include <vector>

#include "outrace/backend/cpu/cache.h"
#include "outrace/backend/cpu/convert.h"
#include "outrace/backend/cpu/norm_kernels.h"
#include "outrace/backend/cpu/thread_memory.h"
#include "outrace/core/aligned.h"
#include "outrace/core/error.h"
#include "outrace/core/thread.h"

namespace outrace::cpu {
namespace {

// Numbers worth a task of their own: some 10 us, where waking the threads takes 1 to 5.
constexpr int64_t kTaskElements = 32 * 1024;
// Rows of 16-bit floats are widened this many numbers at once, which stay in L1.
constexpr int64_t kGroupElements = 2 * 1024;
// Gradients of the weights are sums over rows: at least so many a task, and at most so many tasks.
constexpr int64_t kFewestRows = 32, kMostTasks = 64;

// An array in the compute type: itself, or widened into memory that this object owns.
template <class T>
class Widened {
 public:
  Widened(DType dtype, const void* x, int64_t count) : data_(static_cast<const T*>(x)) {
    if constexpr (std::is_same_v<T, float>) {
      if (x == nullptr || is_wide(dtype)) return;
      memory_ = aligned_array<float>(std::max<int64_t>(count, 1));
      widen_to_f32(dtype, x, memory_.get(), count);
      data_ = memory_.get();
    }
  }
  const T* get() const { return data_; }

 private:
  const T* data_;
  AlignedArray<float> memory_;
};

// Rows of one call, widened: the input, the upstream gradient, the results.
struct InputRows;
struct GradientRows;
struct ResultRows;

// Rows [first, first + rows) of a stored array in the compute type.
template <class Use, class T>
const T* rows_of(const NormCall& call, const void* x, int64_t first, int64_t rows) {
  const char* at = static_cast<const char*>(x) + first * call.columns * size_of(call.dtype);
  if constexpr (std::is_same_v<T, float>) {
    if (!is_wide(call.dtype)) {
      float* memory = thread_memory<Use, float>(rows * call.columns);
      widen_to_f32(call.dtype, at, memory, rows * call.columns);
      return memory;
    }
  }
  return reinterpret_cast<const T*>(at);
}

// Calls fn(first row, description of some rows, where their results go) for groups of rows.
template <class T, class Fn>
void for_groups(const NormCall& call, void* y, const Fn& fn) {
  if (call.rows == 0 || call.columns == 0) return;
  const int64_t each = std::max<int64_t>(1, kTaskElements / call.columns);
  const int64_t group = is_wide(call.dtype) ? each : std::clamp<int64_t>(kGroupElements / call.columns, 1, each);
  NormRows<T> description{.columns = call.columns, .eps = call.eps, .centered = call.centered};
  description.stream = is_wide(call.dtype) && call.rows * call.columns * size_of(call.dtype) > most_in_caches();
  parallel_for(ceil_div(call.rows, each), [&](int64_t task) {
    NormRows<T> some = description;
    const int64_t last = std::min((task + 1) * each, call.rows);
    for (int64_t r = task * each; r < last; r += group) {
      some.rows = std::min(group, last - r);
      char* out = static_cast<char*>(y) + r * call.columns * size_of(call.dtype);
      if constexpr (std::is_same_v<T, float>) {
        if (!is_wide(call.dtype)) {
          float* memory = thread_memory<ResultRows, float>(some.rows * call.columns);
          fn(r, some, memory);
          narrow_from_f32(call.dtype, memory, out, some.rows * call.columns);
          continue;
        }
      }
      fn(r, some, reinterpret_cast<T*>(out));
    }
    if (some.stream) norm_kernels<T>().fence();
  });
}

template <class T>
void norm_of(const NormCall& call, const void* x, const void* weight, const void* bias, void* y) {
  const Widened<T> w(call.dtype, weight, call.columns), b(call.dtype, bias, call.columns);
  for_groups<T>(call, y, [&](int64_t first, const NormRows<T>& some, T* out) {
    norm_kernels<T>().forward(some, rows_of<InputRows, T>(call, x, first, some.rows), w.get(), b.get(), out);
  });
}

template <class T>
void norm_backward_of(const NormCall& call, const void* x, const void* weight, const void* g, void* dx) {
  const Widened<T> w(call.dtype, weight, call.columns);
  for_groups<T>(call, dx, [&](int64_t first, const NormRows<T>& some, T* out) {
    const T* gs = rows_of<GradientRows, T>(call, g, first, some.rows);
    norm_kernels<T>().backward(some, rows_of<InputRows, T>(call, x, first, some.rows), w.get(), gs, out);
  });
}

// Each task sums its rows; the tasks' sums are joined in order of rows.
template <class T>
void norm_weight_grad_of(const NormCall& call, const void* x, const void* g, void* out) {
  const int64_t each = std::max(kFewestRows, ceil_div(call.rows, kMostTasks));
  const int64_t tasks = std::max<int64_t>(1, ceil_div(call.rows, each));
  const int64_t width = 2 * call.columns;
  const AlignedArray<T> sums = aligned_array<T>(std::max<int64_t>(1, tasks * width));
  const int64_t group = is_wide(call.dtype) ? each : kFewestRows;
  parallel_for(tasks, [&](int64_t task) {
    NormRows<T> some{.columns = call.columns, .eps = call.eps, .centered = call.centered};
    T* mine = sums.get() + task * width;
    std::fill_n(mine, width, T(0));
    const int64_t last = std::min((task + 1) * each, call.rows);
    std::vector<T> part(group < each ? static_cast<size_t>(width) : 0);
    for (int64_t r = task * each; r < last; r += group) {
      some.rows = std::min(group, last - r);
      T* into = part.empty() ? mine : part.data();
      const T* gs = rows_of<GradientRows, T>(call, g, r, some.rows);
      norm_kernels<T>().weight_grad(some, rows_of<InputRows, T>(call, x, r, some.rows), gs, into, into + call.columns);
      for (size_t i = 0; i < part.size(); ++i) mine[i] += part[i];
    }
  });
  T* total = sums.get();
  for (int64_t task = 1; task < tasks; ++task)
    for (int64_t i = 0; i < width; ++i) total[i] += sums[task * width + i];
  if constexpr (std::is_same_v<T, float>) {
    if (!is_wide(call.dtype)) return narrow_from_f32(call.dtype, total, out, width);
  }
  std::copy_n(total, width, static_cast<T*>(out));
}

}  // namespace

void norm(const NormCall& call, const void* x, const void* weight, const void* bias, void* y) {
  OUTRACE_ASSERT(is_float(call.dtype), name_of(call.dtype));
  if (call.dtype == DType::f64) return norm_of<double>(call, x, weight, bias, y);
  norm_of<float>(call, x, weight, bias, y);
}

void norm_backward(const NormCall& call, const void* x, const void* weight, const void* g, void* dx) {
  OUTRACE_ASSERT(is_float(call.dtype), name_of(call.dtype));
  if (call.dtype == DType::f64) return norm_backward_of<double>(call, x, weight, g, dx);
  norm_backward_of<float>(call, x, weight, g, dx);
}

void norm_weight_grad(const NormCall& call, const void* x, const void* g, void* out) {
  OUTRACE_ASSERT(is_float(call.dtype), name_of(call.dtype));
  if (call.dtype == DType::f64) return norm_weight_grad_of<double>(call, x, g, out);
  norm_weight_grad_of<float>(call, x, g, out);
}

}  // namespace outrace::cpu
