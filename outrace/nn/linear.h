// Linear: y = x W^T + b.
#pragma once
#include "outrace/nn/module.h"

namespace outrace::nn {

struct LinearOptions {
  bool bias = true;
  DType dtype = DType::f32;
  Device device = {};
};

// [..., in] -> [..., out]. weight [out, in] and bias [out] start uniform in +-1/sqrt(in), as torch.nn.Linear.
class Linear : public Module {
 public:
  Linear(int64_t in, int64_t out, const LinearOptions& options = {});
  Tensor forward(const Tensor& x) override;
  std::string arguments() const override;
  Tensor weight, bias;
};

}  // namespace outrace::nn
