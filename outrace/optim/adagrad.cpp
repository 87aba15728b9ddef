#include "outrace/optim/adagrad.h"

#include "outrace/ops/elementwise.h"

namespace outrace::optim {
namespace {
enum : size_t { kRate, kEps };
}

Adagrad::Adagrad(const ParameterGroups& parameters, const AdagradOptions& o)
    : Optimizer("Adagrad", parameters, {.lr = o.lr, .weight_decay = o.weight_decay}, {.maximize = o.maximize}),
      options_(o) {
  require(o.lr_decay >= 0, "lr_decay must not be negative", o.lr_decay);
  require(o.initial_accumulator_value >= 0, "initial_accumulator_value must not be negative",
          o.initial_accumulator_value);
  require(o.eps >= 0, "eps must not be negative", o.eps);
}

std::vector<double> Adagrad::numbers(const Group& g, int64_t t) const {
  return {g.lr / (1 + static_cast<double>(t - 1) * options_.lr_decay), options_.eps};
}

Tensor Adagrad::update(const Tensor& p, const Tensor& g, std::vector<Tensor>& state, const Numbers& n) const {
  Tensor& sum = state[0];
  sum = sum + g * g;
  return p - (g / (sqrt(sum) + n[kEps])) * n[kRate];
}

}  // namespace outrace::optim
