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

// y[..., k] = sum of x1[..., i] * weight[k, i, j] * x2[..., j] over i and j, + bias[k]. x1: [..., in1], x2: [..., in2]
// with the same leading axes; weight: [out, in1, in2]; bias: [out] or undefined.
Tensor bilinear(At x1, At x2, const Tensor& weight, const Tensor& bias = {});

}  // namespace outrace
