// Dropout as a module.
#pragma once
#include "outrace/nn/module.h"
#include "outrace/ops/ops.h"

namespace outrace::nn {

// dropout(x, p) in training, x in evaluation.
class Dropout : public Module {
 public:
  explicit Dropout(double p = 0.5) : p_(p) {
    if (!(p >= 0 && p <= 1)) fail(ErrorKind::value, "[Dropout] p must be from 0 to 1; got ", p);
  }
  Tensor forward(const Tensor& x) override { return dropout(x, p_, training()); }
  std::string arguments() const override { return cat("p = ", p_); }

 private:
  double p_;
};

}  // namespace outrace::nn
