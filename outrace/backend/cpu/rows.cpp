// Cuts rows into tasks and groups, widens and narrows 16-bit floats, checks targets, adds losses up in a fixed order.
#include "outrace/backend/cpu/rows.h"

#include <algorithm>
#include <array>
#include <limits>

#include "outrace/backend/cpu/cache.h"
#include "outrace/backend/cpu/convert.h"
#include "outrace/backend/cpu/rows_kernels.h"
#include "outrace/backend/cpu/thread_memory.h"
#include "outrace/core/aligned.h"
#include "outrace/core/error.h"
#include "outrace/core/thread.h"

namespace outrace::cpu {
namespace {

// Numbers worth a task of their own: about 10 us of exponentials, where waking the threads takes 1 to 5.
constexpr int64_t kTaskElements = 16 * 1024;
// A loss's partial sums, one a task, lie on the stack.
constexpr int64_t kMostTasks = 256;
// What a kernel takes at once stays in L1 between its passes; a longer row goes alone.
constexpr int64_t kGroupElements = 4 * 1024;

int64_t rows_per_task(int64_t rows, int64_t columns) {
  const int64_t enough = std::max<int64_t>(1, kTaskElements / std::max<int64_t>(columns, 1));
  return std::max(enough, ceil_div(rows, kMostTasks));
}

int64_t rows_per_group(int64_t columns) {
  return std::clamp<int64_t>(kGroupElements / std::max<int64_t>(columns, 1), 1, kRowGroup);
}

struct WidenedRows;  // rows of 16-bit floats
// A row of exponentials that wait for their sum; it stays in L2.
struct Exponentials;
constexpr int64_t kScratchElements = 32 * 1024;

const char* at(DType dtype, const void* p, int64_t i) { return static_cast<const char*>(p) + i * size_of(dtype); }
char* at(DType dtype, void* p, int64_t i) { return static_cast<char*>(p) + i * size_of(dtype); }

// Groups of rows [rows, columns] in the compute type T: in place where they are stored so, else widened first.
// fn(x, y, count) with y as large as x; y is narrowed after it. `y` may be null: nothing is written.
template <class T, class Fn>
void for_rows(DType dtype, const void* x, void* y, int64_t rows, int64_t columns, const Fn& fn) {
  const T* in = reinterpret_cast<const T*>(x);
  T* out = reinterpret_cast<T*>(y);
  if constexpr (std::is_same_v<T, float>) {
    if (!is_wide(dtype)) {
      float* memory = thread_memory<WidenedRows, float>(rows * columns);
      widen_to_f32(dtype, x, memory, rows * columns);
      fn(memory, memory, rows);
      if (y != nullptr) narrow_from_f32(dtype, memory, y, rows * columns);
      return;
    }
  }
  fn(in, out, rows);
}

template <class T>
void map_rows(void (*kernel)(const T*, T*, int64_t, int64_t, T*), DType dtype, const void* x, void* y, int64_t rows,
              int64_t columns) {
  if (rows == 0 || columns == 0) return;
  const int64_t each = rows_per_task(rows, columns), group = rows_per_group(columns);
  const bool stream =
      is_wide(dtype) && x != y && columns <= kScratchElements && rows * columns * size_of(dtype) > most_in_caches();
  parallel_for(ceil_div(rows, each), [&](int64_t task) {
    T* scratch = nullptr;
    if (stream) scratch = thread_memory<Exponentials, T>(kScratchElements);
    const int64_t last = std::min((task + 1) * each, rows);
    for (int64_t r = task * each; r < last; r += group)
      for_rows<T>(dtype, at(dtype, x, r * columns), at(dtype, y, r * columns), std::min(group, last - r), columns,
                  [&](const T* in, T* out, int64_t count) { kernel(in, out, count, columns, scratch); });
    if (stream) row_kernels<T>().fence();
  });
}

template <class T>
void store_number(DType dtype, T value, void* out) {
  if constexpr (std::is_same_v<T, float>) {
    if (!is_wide(dtype)) return narrow_from_f32(dtype, &value, out, 1);
  }
  *static_cast<T*>(out) = value;
}

template <class T>
void logsumexp_of(DType dtype, const void* x, void* y, int64_t rows, int64_t columns) {
  const int64_t each = rows_per_task(rows, columns), group = rows_per_group(columns);
  parallel_for(ceil_div(rows, each), [&](int64_t task) {
    const int64_t last = std::min((task + 1) * each, rows);
    for (int64_t r = task * each; r < last; r += group) {
      T results[kRowGroup];
      const int64_t count = std::min(group, last - r);
      for_rows<T>(dtype, at(dtype, x, r * columns), nullptr, count, columns,
                  [&](const T* in, T*, int64_t) { row_kernels<T>().logsumexp(in, results, count, columns); });
      for (int64_t i = 0; i < count; ++i) store_number(dtype, results[i], at(dtype, y, r + i));
    }
  });
}

int64_t target_at(const CrossEntropyCall& call, const void* targets, int64_t row) {
  return call.target_dtype == DType::i32 ? static_cast<const int32_t*>(targets)[row]
                                         : static_cast<const int64_t*>(targets)[row];
}

template <class I>
int64_t first_wrong(const I* targets, const CrossEntropyCall& call, int64_t& kept) {
  kept = 0;
  int64_t wrong = 0;
  for (int64_t i = 0; i < call.rows; ++i) {
    const int64_t t = targets[i];
    const bool ignored = t == call.attrs.ignore_index;
    kept += !ignored;
    wrong += !ignored && static_cast<uint64_t>(t) >= static_cast<uint64_t>(call.classes);
  }
  if (wrong == 0) return -1;
  for (int64_t i = 0;; ++i) {
    const int64_t t = targets[i];
    if (t != call.attrs.ignore_index && (t < 0 || t >= call.classes)) return i;
  }
}

// How many rows are not ignored. Throws if a target is no class.
int64_t check_targets(const char* op, const CrossEntropyCall& call, const void* targets) {
  OUTRACE_ASSERT(call.target_dtype == DType::i64 || call.target_dtype == DType::i32, name_of(call.target_dtype));
  int64_t kept = 0;
  const int64_t wrong = call.target_dtype == DType::i32 ? first_wrong(static_cast<const int32_t*>(targets), call, kept)
                                                        : first_wrong(static_cast<const int64_t*>(targets), call, kept);
  if (wrong >= 0)
    fail(ErrorKind::value, "[", op, "] a target must be a class from 0 to ", call.classes - 1, " (", call.classes,
         " classes) or ignore_index (", call.attrs.ignore_index, "); target ", wrong, " is ",
         target_at(call, targets, wrong));
  return kept;
}

// Classes of some rows, -1 where ignored.
template <class I>
void read_classes(const I* targets, int64_t ignore_index, int64_t count, int64_t* classes) {
  for (int64_t i = 0; i < count; ++i) classes[i] = targets[i] == ignore_index ? -1 : targets[i];
}

// Calls fn(task, first row, rows, classes) for groups of rows; the groups of a task come in order.
template <class Fn>
void for_groups(const CrossEntropyCall& call, const void* targets, const Fn& fn) {
  const int64_t each = rows_per_task(call.rows, call.classes), group = rows_per_group(call.classes);
  parallel_for(ceil_div(call.rows, each), [&](int64_t task) {
    const int64_t last = std::min((task + 1) * each, call.rows);
    const int64_t ignored = call.attrs.ignore_index;
    int64_t classes[kRowGroup];
    for (int64_t r = task * each; r < last; r += group) {
      const int64_t count = std::min(group, last - r);
      if (call.target_dtype == DType::i32)
        read_classes(static_cast<const int32_t*>(targets) + r, ignored, count, classes);
      else
        read_classes(static_cast<const int64_t*>(targets) + r, ignored, count, classes);
      fn(task, r, count, classes);
    }
  });
}

template <class T>
T load_number(DType dtype, const void* x) {
  if constexpr (std::is_same_v<T, float>) {
    if (!is_wide(dtype)) {
      float value;
      widen_to_f32(dtype, x, &value, 1);
      return value;
    }
  }
  return *static_cast<const T*>(x);
}

template <class T>
double sum_in_double(const T* x, int64_t count) {
  double sum[4] = {};
  int64_t i = 0;
  for (; i + 4 <= count; i += 4)
    for (int k = 0; k < 4; ++k) sum[k] += static_cast<double>(x[i + k]);
  for (; i < count; ++i) sum[0] += static_cast<double>(x[i]);
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

template <class T>
void cross_entropy_of(const CrossEntropyCall& call, const void* logits, const void* targets, void* loss) {
  const int64_t kept = check_targets("cross_entropy", call, targets);
  const bool each = call.attrs.reduction == Reduction::none;
  std::array<double, kMostTasks> sums{};
  for_groups(call, targets, [&](int64_t task, int64_t first, int64_t count, const int64_t* classes) {
    T losses[kRowGroup];
    for_rows<T>(
        call.dtype, at(call.dtype, logits, first * call.classes), nullptr, count, call.classes,
        [&](const T* x, T*, int64_t) { row_kernels<T>().cross_entropy(x, classes, losses, count, call.classes); });
    if (each) {
      for (int64_t i = 0; i < count; ++i) store_number(call.dtype, losses[i], at(call.dtype, loss, first + i));
      return;
    }
    sums[task] += sum_in_double(losses, count);
  });
  if (each) return;
  double total = 0;
  for (int64_t task = 0; task * rows_per_task(call.rows, call.classes) < call.rows; ++task) total += sums[task];
  if (call.attrs.reduction == Reduction::mean) total /= static_cast<double>(kept);
  store_number(call.dtype, static_cast<T>(total), loss);
}

template <class T>
void cross_entropy_grad_of(const CrossEntropyCall& call, const void* logits, const void* targets, const void* g,
                           void* gradient) {
  const int64_t kept = check_targets("cross_entropy_grad", call, targets);
  const bool each = call.attrs.reduction == Reduction::none;
  T scale = 0;
  if (!each) scale = load_number<T>(call.dtype, g);
  if (call.attrs.reduction == Reduction::mean) scale /= static_cast<T>(kept);  // kept = 0: no row reads it
  for_groups(call, targets, [&](int64_t, int64_t first, int64_t count, const int64_t* classes) {
    T scales[kRowGroup];
    for (int64_t i = 0; i < count; ++i)
      scales[i] = each ? load_number<T>(call.dtype, at(call.dtype, g, first + i)) : scale;
    for_rows<T>(call.dtype, at(call.dtype, logits, first * call.classes),
                at(call.dtype, gradient, first * call.classes), count, call.classes, [&](const T* x, T* y, int64_t) {
                  row_kernels<T>().cross_entropy_grad(x, classes, scales, y, count, call.classes);
                });
  });
}

}  // namespace

void softmax(DType dtype, const void* x, void* y, int64_t rows, int64_t columns) {
  OUTRACE_ASSERT(is_float(dtype), "softmax of ", name_of(dtype));
  if (dtype == DType::f64)
    map_rows(row_kernels<double>().softmax, dtype, x, y, rows, columns);
  else
    map_rows(row_kernels<float>().softmax, dtype, x, y, rows, columns);
}

void log_softmax(DType dtype, const void* x, void* y, int64_t rows, int64_t columns) {
  OUTRACE_ASSERT(is_float(dtype), "log_softmax of ", name_of(dtype));
  if (dtype == DType::f64)
    map_rows(row_kernels<double>().log_softmax, dtype, x, y, rows, columns);
  else
    map_rows(row_kernels<float>().log_softmax, dtype, x, y, rows, columns);
}

void logsumexp(DType dtype, const void* x, void* y, int64_t rows, int64_t columns) {
  OUTRACE_ASSERT(is_float(dtype) && columns > 0, "logsumexp of ", columns, " ", name_of(dtype));
  if (dtype == DType::f64)
    logsumexp_of<double>(dtype, x, y, rows, columns);
  else
    logsumexp_of<float>(dtype, x, y, rows, columns);
}

void cross_entropy(const CrossEntropyCall& call, const void* logits, const void* targets, void* loss) {
  OUTRACE_ASSERT(is_float(call.dtype), "cross_entropy of ", name_of(call.dtype));
  if (call.dtype == DType::f64)
    cross_entropy_of<double>(call, logits, targets, loss);
  else
    cross_entropy_of<float>(call, logits, targets, loss);
}

void cross_entropy_grad(const CrossEntropyCall& call, const void* logits, const void* targets, const void* g,
                        void* gradient) {
  OUTRACE_ASSERT(is_float(call.dtype), "cross_entropy_grad of ", name_of(call.dtype));
  if (call.dtype == DType::f64)
    cross_entropy_grad_of<double>(call, logits, targets, g, gradient);
  else
    cross_entropy_grad_of<float>(call, logits, targets, g, gradient);
}

}  // namespace outrace::cpu
