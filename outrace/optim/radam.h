// RAdam: Adam whose adaptive rate waits until its variance is tractable (Liu et al., ICLR 2020), in PyTorch's form:
// rectified from rho(t) > 5 on (the paper: > 4), eps added to the root before its bias correction.
#pragma once
#include "outrace/optim/optimizer.h"

namespace outrace::optim {

struct RAdamOptions {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool decoupled_weight_decay = false;  // decays the weight itself, as AdamW
  bool maximize = false;
};

class RAdam : public Optimizer {
 public:
  explicit RAdam(const ParameterGroups& parameters, const RAdamOptions& options = {});

 protected:
  std::vector<std::string> state_names() const override { return {"exp_avg", "exp_avg_sq"}; }
  std::vector<double> numbers(const Group& group, int64_t t) const override;
  Tensor update(const Tensor& p, const Tensor& g, std::vector<Tensor>& state, const Numbers& n) const override;

 private:
  RAdamOptions options_;
};

}  // namespace outrace::optim
