// Stochastic gradient descent with momentum, in PyTorch's form: buffer = momentum * buffer + gradient, p -= lr *
// buffer.
#pragma once
#include "outrace/optim/optimizer.h"

namespace outrace::optim {

struct SGDOptions {
  double lr = 1e-3, momentum = 0, weight_decay = 0;  // the decay is added to the gradient
};

class SGD : public Optimizer {
 public:
  explicit SGD(std::vector<Tensor> parameters, const SGDOptions& options = {});

 protected:
  void set_numbers() override;
  void update(Tensor& p, const Tensor& g, std::vector<Tensor>& state, int64_t missed) override;

 private:
  SGDOptions options_;
  StepNumber rate_, momentum_, decay_;
};

}  // namespace outrace::optim
