// Adam (Kingma and Ba, ICLR 2015) and AdamW (Loshchilov and Hutter, ICLR 2019), in PyTorch's form: eps outside the root
// of the bias-corrected second moment.
#pragma once
#include "outrace/optim/optimizer.h"

namespace outrace::optim {

struct AdamOptions {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;  // Adam's decay is added to the gradient
  bool amsgrad = false;  // divide by the largest second moment so far (Reddi et al., ICLR 2018)
  bool maximize = false;
};

class Adam : public Optimizer {
 public:
  explicit Adam(const ParameterGroups& parameters, const AdamOptions& options = {})
      : Adam("Adam", parameters, options, false) {}

 protected:
  Adam(std::string_view name, const ParameterGroups& parameters, const AdamOptions& options, bool decoupled);
  std::vector<std::string> state_names() const override;
  std::vector<double> numbers(const Group& group, int64_t t) const override;
  Tensor update(const Tensor& p, const Tensor& g, std::vector<Tensor>& state, const Numbers& n) const override;

 private:
  AdamOptions options_;
};

struct AdamWOptions {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0.01;  // decays the weight itself
  bool amsgrad = false, maximize = false;
};

class AdamW : public Adam {
 public:
  explicit AdamW(const ParameterGroups& parameters, const AdamWOptions& o = {})
      : Adam("AdamW", parameters, {o.lr, o.beta1, o.beta2, o.eps, o.weight_decay, o.amsgrad, o.maximize}, true) {}
};

}  // namespace outrace::optim
