// Lion (Chen et al., "Symbolic discovery of optimization algorithms", NeurIPS 2023), the paper's program 1: the sign of
// an interpolation of gradient and momentum, decoupled decay. PyTorch has none.
#pragma once
#include "outrace/optim/optimizer.h"

namespace outrace::optim {

struct LionOptions {
  double lr = 1e-4, beta1 = 0.9, beta2 = 0.99, weight_decay = 0;
  bool maximize = false;
};

class Lion : public Optimizer {
 public:
  explicit Lion(const ParameterGroups& parameters, const LionOptions& options = {});

 protected:
  std::vector<std::string> state_names() const override { return {"exp_avg"}; }
  std::vector<double> numbers(const Group& group, int64_t t) const override;
  Tensor update(const Tensor& p, const Tensor& g, std::vector<Tensor>& state, const Numbers& n) const override;

 private:
  LionOptions options_;
};

}  // namespace outrace::optim
