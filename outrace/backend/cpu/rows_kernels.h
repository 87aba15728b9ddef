// The innermost loops of rows.cpp, chosen per instruction set. A class of -1 marks an ignored row.
#pragma once
#include <cstdint>

namespace outrace::cpu {

constexpr int64_t kRowGroup = 64;  // most rows a call takes, so that what it keeps of each row lies on the stack

template <class T>
struct RowKernels {
  // x, y: [rows, columns]; y may be x. Columns may be 0 only where rows are ignored. `scratch`: null, or [columns], and
  // results go past the caches where that is possible; then fence() before another thread may read them.
  void (*softmax)(const T* x, T* y, int64_t rows, int64_t columns, T* scratch);
  void (*log_softmax)(const T* x, T* y, int64_t rows, int64_t columns, T* scratch);
  // y[r] = log(sum(exp(x[r]))); columns > 0
  void (*logsumexp)(const T* x, T* y, int64_t rows, int64_t columns);
  // losses[r] = -log softmax(x[r])[classes[r]]
  void (*cross_entropy)(const T* x, const int64_t* classes, T* losses, int64_t rows, int64_t columns);
  // y[r] = scales[r] * (softmax(x[r]) - onehot(classes[r]))
  void (*cross_entropy_grad)(const T* x, const int64_t* classes, const T* scales, T* y, int64_t rows, int64_t columns);
  void (*fence)();
};

template <class T>  // float, double
const RowKernels<T>& row_kernels();

}  // namespace outrace::cpu
