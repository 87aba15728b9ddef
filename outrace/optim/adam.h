// Adam (Kingma and Ba, ICLR 2015) and AdamW (Loshchilov and Hutter, ICLR 2019), in PyTorch's form: eps outside the root
// of the bias-corrected second moment.
#pragma once
#include <map>

#include "outrace/optim/optimizer.h"

namespace outrace::optim {

struct AdamOptions {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;  // Adam's decay is added to the gradient
};

class Adam : public Optimizer {
 public:
  explicit Adam(std::vector<Tensor> parameters, const AdamOptions& options = {})
      : Adam(std::move(parameters), options, false) {}

 protected:
  Adam(std::vector<Tensor> parameters, const AdamOptions& options, bool decoupled);
  void set_numbers() override;
  void update(Tensor& p, const Tensor& g, std::vector<Tensor>& state, int64_t missed) override;

 private:
  AdamOptions options_;
  bool decoupled_;
  // The bias correction counts a parameter's own updates, as PyTorch's does; parameters that missed the same number of
  // steps share it.
  struct Correction {
    StepNumber inverse_root_of_bias2, step_size;
  };
  void set(Correction& c, int64_t updates);

  StepNumber one_minus_beta1_, beta2_, one_minus_beta2_, eps_, decay_;
  std::map<int64_t, Correction> corrections_;  // by steps missed
};

struct AdamWOptions {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0.01;  // decays the weight itself
};

class AdamW : public Adam {
 public:
  explicit AdamW(std::vector<Tensor> parameters, const AdamWOptions& o = {})
      : Adam(std::move(parameters), {o.lr, o.beta1, o.beta2, o.eps, o.weight_decay}, true) {}
};

}  // namespace outrace::optim
