// Stochastic gradient descent with momentum (Sutskever et al., ICML 2013), in PyTorch's form: buffer = momentum *
// buffer
// + (1 - dampening) * gradient, p -= lr * buffer. The paper has the rate inside the buffer.
#pragma once
#include "outrace/optim/optimizer.h"

namespace outrace::optim {

struct SGDOptions {
  double lr = 1e-3, momentum = 0, weight_decay = 0;  // the decay is added to the gradient
  double dampening = 0;                              // from the second step on, as in PyTorch
  bool nesterov = false;  // p -= lr * (gradient + momentum * buffer); needs a momentum and no dampening
  bool maximize = false;
};

class SGD : public Optimizer {
 public:
  explicit SGD(const ParameterGroups& parameters, const SGDOptions& options = {});

 protected:
  std::vector<std::string> state_names() const override;
  std::vector<double> numbers(const Group& group, int64_t t) const override;
  Tensor update(const Tensor& p, const Tensor& g, std::vector<Tensor>& state, const Numbers& n) const override;

 private:
  SGDOptions options_;
};

}  // namespace outrace::optim
