// Matrix products.
#pragma once
#include "outrace/graph/tensor.h"

namespace outrace {

struct MatmulOptions {
  bool transpose_a = false, transpose_b = false;  // exchange the last two axes first
};

// [..., M, K] x [..., K, N] -> [..., M, N]; leading axes broadcast. Both of one dtype. A vector on the left is a row,
// on the right a column, and the result lacks that axis: [K] x [K, N] -> [N], [M, K] x [K] -> [M], [K] x [K] -> [].
Tensor matmul(At a, At b, const MatmulOptions& options = {});

Tensor mv(At matrix, At vector);  // [M, K] x [K] -> [M]
Tensor bmm(At a, At b);           // [B, M, K] x [B, K, N] -> [B, M, N]
// beta * x + alpha * (a b); x broadcasts to [M, N].
Tensor addmm(At x, At a, At b, double beta = 1, double alpha = 1);

// x [..., in] * weight [out, in] transposed + bias [out]; bias may be undefined.
Tensor linear(At x, const Tensor& weight, const Tensor& bias = {});

// y[..., k] = sum of x1[..., i] * weight[k, i, j] * x2[..., j] over i and j, + bias[k]. x1: [..., in1], x2: [..., in2]
// with the same leading axes; weight: [out, in1, in2]; bias: [out] or undefined.
Tensor bilinear(At x1, At x2, const Tensor& weight, const Tensor& bias = {});

}  // namespace outrace
