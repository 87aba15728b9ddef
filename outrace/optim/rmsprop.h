// RMSprop (Hinton, lecture 6e of "Neural networks for machine learning", 2012; centered: Graves, arXiv:1308.0850), in
// PyTorch's form: eps is added to the root, not under it. A variance that rounding made negative counts as 0 (PyTorch:
// NaN).
#pragma once
#include "outrace/optim/optimizer.h"

namespace outrace::optim {

struct RMSpropOptions {
  double lr = 1e-2, alpha = 0.99, eps = 1e-8, weight_decay = 0, momentum = 0;
  bool centered = false;  // divide by the deviation from the running mean instead of the root mean square
  bool maximize = false;
};

class RMSprop : public Optimizer {
 public:
  explicit RMSprop(const ParameterGroups& parameters, const RMSpropOptions& options = {});

 protected:
  std::vector<std::string> state_names() const override;
  std::vector<double> numbers(const Group& group, int64_t t) const override;
  Tensor update(const Tensor& p, const Tensor& g, std::vector<Tensor>& state, const Numbers& n) const override;

 private:
  RMSpropOptions options_;
};

}  // namespace outrace::optim
