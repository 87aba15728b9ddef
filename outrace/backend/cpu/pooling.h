// Pooling over windows of images [N, H, W, C], and its derivatives.
#pragma once
#include "outrace/core/dtype.h"
#include "outrace/ops/attrs.h"

namespace outrace::cpu {

struct PoolCall {
  PoolAttrs windows;
  int64_t images = 0, channels = 0;
  DType x = DType::f32;       // what is compared
  DType values = DType::f32;  // what is picked or added
};

// y[n, i, j, c] = the entry of `values` where x is largest in the window: the first of equals, the first NaN.
void max_pool_pick(const PoolCall& call, const void* x, const void* values, void* y);
// The adjoint: g[n, i, j, c] added there, 0 elsewhere.
void max_pool_grad(const PoolCall& call, const void* x, const void* g, void* dx);
// Means of windows, and the adjoint.
void avg_pool(const PoolCall& call, const void* x, void* y);
void avg_pool_grad(const PoolCall& call, const void* g, void* dx);

}  // namespace outrace::cpu
