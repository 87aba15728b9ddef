#include "outrace/nn/linear.h"

#include "outrace/nn/init.h"
#include "outrace/ops/ops.h"

namespace outrace::nn {

Linear::Linear(int64_t in, int64_t out, const LinearOptions& options) {
  if (in < 1 || out < 1) fail(ErrorKind::value, "[Linear] sizes must be positive; got in ", in, ", out ", out);
  const CreateOptions create{options.dtype, options.device};
  weight = register_parameter("weight", kaiming_uniform({out, in}, in, create));
  if (options.bias) bias = register_parameter("bias", fan_in_uniform({out}, in, create));
}

Tensor Linear::forward(const Tensor& x) { return linear(x, weight, bias); }

std::string Linear::arguments() const { return cat(weight.shape()[1], ", ", weight.shape()[0]); }

}  // namespace outrace::nn
