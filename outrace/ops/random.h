// Random tensors. Element i depends on (seed, serial, i) only: the same numbers on every device and for any number of
// threads.
#pragma once
#include "outrace/graph/tensor.h"

namespace outrace {

// Restarts the sequence: the serial number of the next random tensor is 0.
void manual_seed(uint64_t seed);

Tensor rand(const Shape& shape, CreateOptions options = {});   // uniform in [0, 1)
Tensor randn(const Shape& shape, CreateOptions options = {});  // standard normal
Tensor rand_like(const Tensor& x);                             // of x's shape, dtype and device
Tensor randn_like(const Tensor& x);
Tensor uniform(const Shape& shape, double low, double high, CreateOptions options = {});
Tensor normal(const Shape& shape, double mean, double deviation, CreateOptions options = {});
Tensor randint(int64_t low, int64_t high, const Shape& shape,
               CreateOptions options = {.dtype = DType::i64});  // low <= i < high

// In training each element is 0 with probability p and else x / (1 - p) (Srivastava et al., JMLR 2014); otherwise x.
// Draws anew at each call and at each replay of a captured step; the derivative uses the same choice. Throws
// Error(value) unless 0 <= p <= 1.
Tensor dropout(At x, double p = 0.5, bool training = true);

}  // namespace outrace
