// Initial values, PyTorch's defaults.
#pragma once
#include "outrace/graph/tensor.h"

namespace outrace::nn {

// Uniform in +-bound with bound = gain * sqrt(3 / fan_in), gain = sqrt(2 / (1 + a^2)) (He et al., ICCV 2015).
// a = sqrt(5) is what torch.nn.Linear uses: bound = 1 / sqrt(fan_in).
Tensor kaiming_uniform(const Shape& shape, int64_t fan_in, CreateOptions options = {}, double a = std::sqrt(5.0));

// Uniform in +-1/sqrt(fan_in): biases.
Tensor fan_in_uniform(const Shape& shape, int64_t fan_in, CreateOptions options = {});

}  // namespace outrace::nn
