// Normalization layers as functions. Statistics are taken about the mean in two passes, so large means lose nothing.
#pragma once
#include "outrace/graph/tensor.h"

namespace outrace {

// (x - mean) / sqrt(variance + eps) * weight + bias, mean and (biased) variance over the last axes, whose sizes
// `normalized_shape` names (Ba, Kiros and Hinton, 2016). weight and bias have that shape, or are undefined; a bias
// needs a weight. x: [..., *normalized_shape], floating point.
Tensor layer_norm(At x, const Shape& normalized_shape, const Tensor& weight = {}, const Tensor& bias = {},
                  double eps = 1e-5);

// x / sqrt(mean(x^2) + eps) * weight over the same axes (Zhang and Sennrich, NeurIPS 2019). PyTorch's default eps is
// the dtype's epsilon; here it is given.
Tensor rms_norm(At x, const Shape& normalized_shape, const Tensor& weight = {}, double eps = 1e-6);

// Channels (axis 1) in `groups` of equal size, each normalized over its channels and all later axes; then weight and
// bias [C] per channel (Wu and He, ECCV 2018). x: [N, C, ...].
Tensor group_norm(At x, int64_t groups, const Tensor& weight = {}, const Tensor& bias = {}, double eps = 1e-5);

struct BatchNormOptions {
  bool training = false;  // normalize by the batch and update the running statistics; else by those
  double momentum = 0.1;  // the weight of the batch in the running statistics
  double eps = 1e-5;
};

// Per channel (axis 1), over all other axes (Ioffe and Szegedy, ICML 2015). x: [N, C] or [N, C, ...]; running_mean,
// running_var, weight, bias: [C] or undefined. In training the output is normalized by the biased variance, and the
// running statistics, where defined, are updated with the unbiased one, as PyTorch does. Throws Error(value) for one
// value per channel in training, with nothing changed; an empty batch passes and changes nothing.
Tensor batch_norm(At x, Tensor running_mean, Tensor running_var, const Tensor& weight = {}, const Tensor& bias = {},
                  const BatchNormOptions& options = {});

}  // namespace outrace
