#include "outrace/nn/bilinear.h"

#include "outrace/nn/init.h"
#include "outrace/ops/ops.h"

namespace outrace::nn {

Bilinear::Bilinear(int64_t in1, int64_t in2, int64_t out, const LinearOptions& options) {
  if (in1 < 1 || in2 < 1 || out < 1)
    fail(ErrorKind::value, "[Bilinear] sizes must be positive; got ", in1, ", ", in2, " and ", out);
  const CreateOptions create{options.dtype, options.device};
  weight = register_parameter("weight", fan_in_uniform({out, in1, in2}, in1, create));
  if (options.bias) bias = register_parameter("bias", fan_in_uniform({out}, in1, create));
}

Tensor Bilinear::operator()(const Tensor& x1, const Tensor& x2, std::source_location where) {
  return called(x1, where, [&](const Tensor& x) { return bilinear(x, x2, weight, bias); });
}

std::string Bilinear::arguments() const {
  const Shape& s = weight.shape();
  return cat(s[1], ", ", s[2], ", ", s[0]);
}

}  // namespace outrace::nn
