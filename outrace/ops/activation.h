// Activations with parameters and functions of the same kind, composed from the rows of ops.def, so that they fuse and
// can be differentiated any number of times. Values, gradients at kinks and NaN follow PyTorch's functions of the same
// names.
#pragma once
#include <limits>
#include <optional>

#include "outrace/graph/tensor.h"

namespace outrace {

// x > 0: x, else slope * x.
Tensor leaky_relu(At x, double slope = 0.01);
// x > 0: x, else alpha (e^x - 1). (Clevert, Unterthiner, Hochreiter, 2015.)
Tensor elu(At x, double alpha = 1);
// x > 0: x, else alpha (e^(x / alpha) - 1). Throws Error(value) for alpha 0. (Barron, 2017.)
Tensor celu(At x, double alpha = 1);
// x where it is positive, else weight * x. weight: one element, or one for each entry of axis 1 of x. (He et al.,
// 2015.)
Tensor prelu(At x, At weight);
// The first half of `axis` times the sigmoid of the second: [.., 2n, ..] -> [.., n, ..]. Throws Error(shape) for an odd
// size. (Dauphin et al., 2016.)
Tensor glu(At x, int64_t axis = -1);
// log(1 + e^(beta x)) / beta, and x itself where beta x > threshold.
Tensor softplus(At x, double beta, double threshold = 20);

// x within [low, high]: the gradient is 0 at the bounds and beyond. Throws Error(value) when low > high.
Tensor hardtanh(At x, double low = -1, double high = 1);
// x within [low, high], high where low > high; a bound that is NaN gives NaN. Numbers: at least one bound, else
// Error(value); the gradient is 0 where one binds, equality included. Tensors broadcast and get the gradient where they
// bind, half of it at equality.
Tensor clamp(At x, std::optional<double> low, std::optional<double> high = {});
Tensor clamp(At x, At low, At high);
// x > threshold: x, else value.
Tensor threshold(At x, double threshold, double value);
// x moved by lambda towards 0, and 0 where |x| <= lambda. Throws Error(value) for negative lambda.
Tensor softshrink(At x, double lambda = 0.5);
// x, and 0 where |x| <= lambda.
Tensor hardshrink(At x, double lambda = 0.5);
// x - tanh(x)
Tensor tanhshrink(At x);

// x + weight (z - x); exactly x for weight 0 and z for weight 1.
Tensor lerp(At x, At z, double weight);
Tensor lerp(At x, At z, At weight);

// bool; integers are always finite.
Tensor isnan(At x);
Tensor isinf(At x);
Tensor isfinite(At x);

// PyTorch's name of select: x where the condition (bool) holds, else z.
Tensor where(At condition, At x, At z);
Tensor where(At condition, At x, double z);
Tensor where(At condition, double x, At z);

}  // namespace outrace
