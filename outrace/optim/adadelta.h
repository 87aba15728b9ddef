// Adadelta (Zeiler, arXiv:1212.5701), with PyTorch's factor lr (the paper's is 1).
#pragma once
#include "outrace/optim/optimizer.h"

namespace outrace::optim {

struct AdadeltaOptions {
  double lr = 1, rho = 0.9, eps = 1e-6, weight_decay = 0;
  bool maximize = false;
};

class Adadelta : public Optimizer {
 public:
  explicit Adadelta(const ParameterGroups& parameters, const AdadeltaOptions& options = {});

 protected:
  std::vector<std::string> state_names() const override { return {"square_avg", "acc_delta"}; }
  std::vector<double> numbers(const Group& group, int64_t t) const override;
  Tensor update(const Tensor& p, const Tensor& g, std::vector<Tensor>& state, const Numbers& n) const override;

 private:
  AdadeltaOptions options_;
};

}  // namespace outrace::optim
