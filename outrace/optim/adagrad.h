// Adagrad (Duchi, Hazan, Singer, JMLR 2011), in PyTorch's form: rate lr / (1 + (t - 1) * lr_decay), eps added to the
// root.
#pragma once
#include "outrace/optim/optimizer.h"

namespace outrace::optim {

struct AdagradOptions {
  double lr = 1e-2, lr_decay = 0, weight_decay = 0, initial_accumulator_value = 0, eps = 1e-10;
  bool maximize = false;
};

class Adagrad : public Optimizer {
 public:
  explicit Adagrad(const ParameterGroups& parameters, const AdagradOptions& options = {});

 protected:
  std::vector<std::string> state_names() const override { return {"sum"}; }
  double initial_state() const override { return options_.initial_accumulator_value; }
  std::vector<double> numbers(const Group& group, int64_t t) const override;
  Tensor update(const Tensor& p, const Tensor& g, std::vector<Tensor>& state, const Numbers& n) const override;

 private:
  AdagradOptions options_;
};

}  // namespace outrace::optim
