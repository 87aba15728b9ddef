// Tensors from nothing: made at once, not recorded.
#pragma once
#include "outrace/graph/tensor.h"

namespace outrace {

Tensor full(const Shape& shape, double value, CreateOptions options = {});
Tensor zeros(const Shape& shape, CreateOptions options = {});
Tensor ones(const Shape& shape, CreateOptions options = {});
Tensor zeros_like(const Tensor& x);
// 0, 1, ..., count - 1.
Tensor arange(int64_t count, CreateOptions options = {});

}  // namespace outrace
