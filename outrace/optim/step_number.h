// A number of an update that host code computes anew at each step: learning rate, bias correction.
#pragma once
#include <memory>

#include "outrace/graph/recorder.h"

namespace outrace::optim {

class StepNumber {
 public:
  void set(double v) {
    value_->real = v;
    last_ = Tensor();
  }
  // The number beside `t`: a 0-dim input of the program, read anew at each replay. Tensors of one dtype and device
  // share it.
  const Tensor& like(const Tensor& t) {
    if (!last_.defined() || last_.dtype() != t.dtype() || last_.device() != t.device())
      last_ = scalar(*value_, t.dtype(), t.device(), value_);
    return last_;
  }

 private:
  ScalarSource value_ = std::make_shared<ScalarValue>();
  Tensor last_;
};

}  // namespace outrace::optim
