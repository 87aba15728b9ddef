// Adamax (Kingma and Ba, ICLR 2015, section 7.1), in PyTorch's form: eps is added to |g| before the maximum is taken.
#pragma once
#include "outrace/optim/optimizer.h"

namespace outrace::optim {

struct AdamaxOptions {
  double lr = 2e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool maximize = false;
};

class Adamax : public Optimizer {
 public:
  explicit Adamax(const ParameterGroups& parameters, const AdamaxOptions& options = {});

 protected:
  std::vector<std::string> state_names() const override { return {"exp_avg", "exp_inf"}; }
  std::vector<double> numbers(const Group& group, int64_t t) const override;
  Tensor update(const Tensor& p, const Tensor& g, std::vector<Tensor>& state, const Numbers& n) const override;

 private:
  AdamaxOptions options_;
};

}  // namespace outrace::optim
