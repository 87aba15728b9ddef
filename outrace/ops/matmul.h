// Matrix products.
#pragma once
#include "outrace/graph/tensor.h"

namespace outrace {

struct MatmulOptions {
  bool transpose_a = false, transpose_b = false;  // exchange the last two axes first
};

// [..., M, K] x [..., K, N] -> [..., M, N]; leading axes broadcast. Floating point, both of one dtype.
Tensor matmul(At a, At b, const MatmulOptions& options = {});

// x [..., in] * weight [out, in] transposed + bias [out]; bias may be undefined.
Tensor linear(At x, const Tensor& weight, const Tensor& bias = {});

}  // namespace outrace
