// NAdam: Adam with Nesterov's momentum (Dozat, ICLR 2016 workshop), in PyTorch's form: the momentum of update t is
// mu(t) = beta1 * (1 - 0.96^(t * momentum_decay) / 2).
#pragma once
#include "outrace/optim/optimizer.h"

namespace outrace::optim {

struct NAdamOptions {
  double lr = 2e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0, momentum_decay = 4e-3;
  bool decoupled_weight_decay = false;  // decays the weight itself, as AdamW
  bool maximize = false;
};

class NAdam : public Optimizer {
 public:
  explicit NAdam(const ParameterGroups& parameters, const NAdamOptions& options = {});

 protected:
  std::vector<std::string> state_names() const override { return {"exp_avg", "exp_avg_sq"}; }
  std::vector<double> numbers(const Group& group, int64_t t) const override;
  Tensor update(const Tensor& p, const Tensor& g, std::vector<Tensor>& state, const Numbers& n) const override;

 private:
  double product_of_momenta(int64_t t) const;  // mu(1) * ... * mu(t)
  NAdamOptions options_;
  // products_[i] = mu(1) * ... * mu(i + 1), as far as asked for; it ends with the first 0. A function of the options
  // alone, so it is no state.
  mutable std::vector<double> products_;
};

}  // namespace outrace::optim
