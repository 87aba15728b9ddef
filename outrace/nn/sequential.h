// Sequential: modules one after another, named "0", "1", ... as PyTorch's.
#pragma once
#include <memory>
#include <vector>

#include "outrace/nn/module.h"

namespace outrace::nn {

class Sequential : public Module {
 public:
  Sequential() = default;
  // Sequential net(std::make_shared<Linear>(64, 512), std::make_shared<ReLU>(), ...)
  template <class... Modules>
  explicit Sequential(std::shared_ptr<Modules>... modules) {
    (add(std::move(modules)), ...);
  }
  Sequential& add(std::shared_ptr<Module> module) {
    register_module(std::to_string(modules_.size()), *module);
    modules_.push_back(std::move(module));
    return *this;
  }
  Tensor forward(const Tensor& x) override {
    Tensor y = x;
    for (const auto& m : modules_) y = (*m)(y);
    return y;
  }
  size_t size() const { return modules_.size(); }

 private:
  std::vector<std::shared_ptr<Module>> modules_;
};

}  // namespace outrace::nn
