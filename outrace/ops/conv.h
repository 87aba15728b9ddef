// Convolution (cross-correlation, as every framework means it). Users see images as [N, C, H, W]; the op and its
// kernels as [N, H, W, C].
#pragma once
#include "outrace/ops/spatial.h"

namespace outrace {

struct Conv2dOptions {
  Pair stride = 1;
  Padding padding = 0;
  Pair dilation = 1;
  int64_t groups = 1;
};

// y[n, o, i, j] = bias[o] + sum over c, r, s of w[o, c, r, s] * x[n, c, i * stride + r * dilation - top, ...], zeros
// around x. x: [N, C, H, W]; weight: [O, C / groups, kh, kw]; bias: [O] or undefined; y: [N, O, OH, OW] with
// OH = floor((H + top + bottom - dilation * (kh - 1) - 1) / stride) + 1. Output channels of group g read the input
// channels of group g alone. Throws Error(shape) unless they fit, Error(value) when a kernel is larger than the padded
// image.
Tensor conv2d(At x, const Tensor& weight, const Tensor& bias = {}, const Conv2dOptions& options = {});

struct Conv1dOptions {
  int64_t stride = 1;
  Padding padding = 0;  // its left and right
  int64_t dilation = 1, groups = 1;
};

// The same along one axis. x: [N, C, L]; weight: [O, C / groups, k].
Tensor conv1d(At x, const Tensor& weight, const Tensor& bias = {}, const Conv1dOptions& options = {});

struct ConvTranspose2dOptions {
  Pair stride = 1;
  Padding padding = 0;      // taken off the output
  Pair output_padding = 0;  // entries added to the output's bottom and right
  Pair dilation = 1;
  int64_t groups = 1;
};

// The gradient of a conv2d with respect to its input, as a layer: every x[n, c, i, j] adds w[c] * x to a window of y.
// x: [N, C, H, W]; weight: [C, O / groups, kh, kw]; y: [N, O, OH, OW] with
// OH = (H - 1) * stride - top - bottom + dilation * (kh - 1) + output_padding + 1.
Tensor conv_transpose2d(At x, const Tensor& weight, const Tensor& bias = {},
                        const ConvTranspose2dOptions& options = {});

struct ConvTranspose1dOptions {
  int64_t stride = 1, padding = 0, output_padding = 0, dilation = 1, groups = 1;
};

// The same along one axis. x: [N, C, L]; weight: [C, O / groups, k].
Tensor conv_transpose1d(At x, const Tensor& weight, const Tensor& bias = {},
                        const ConvTranspose1dOptions& options = {});

}  // namespace outrace
