// The innermost loops of norm.cpp, chosen per instruction set. With d = x - mean (layer norm) or x (RMS norm):
// normalized = d / sqrt(mean(d^2) + eps).
#pragma once
#include <cstdint>

namespace outrace::cpu {

template <class T>
struct NormRows {
  int64_t rows = 0, columns = 1;
  double eps = 0;
  bool centered = true;  // layer norm; else RMS norm
  bool stream = false;   // results go past the caches; fence() before another thread may read them
};

template <class T>
struct NormKernels {
  // y[r] = normalized(x[r]) * weight + bias; either may be null. y may be x unless results are streamed.
  void (*forward)(const NormRows<T>& call, const T* x, const T* weight, const T* bias, T* y);
  // dx[r], the derivative for the upstream gradient g[r]; weight may be null. dx may be x or g likewise.
  void (*backward)(const NormRows<T>& call, const T* x, const T* weight, const T* g, T* dx);
  // dweight[c] = sum of g[r][c] * normalized(x)[r][c], dbias[c] = sum of g[r][c], over the rows in order.
  void (*weight_grad)(const NormRows<T>& call, const T* x, const T* g, T* dweight, T* dbias);
  void (*fence)();
};

template <class T>  // float, double
const NormKernels<T>& norm_kernels();

}  // namespace outrace::cpu
