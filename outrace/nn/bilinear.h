// Bilinear: y_k = x1 W_k x2 + b_k.
#pragma once
#include "outrace/nn/linear.h"

namespace outrace::nn {

// [..., in1], [..., in2] -> [..., out]. weight [out, in1, in2] and bias [out] start uniform in +-1/sqrt(in1), as
// torch.nn.Bilinear.
class Bilinear : public Module {
 public:
  Bilinear(int64_t in1, int64_t in2, int64_t out, const LinearOptions& options = {});
  Tensor operator()(const Tensor& x1, const Tensor& x2, std::source_location where = std::source_location::current());
  std::string arguments() const override;
  Tensor weight, bias;
};

}  // namespace outrace::nn
