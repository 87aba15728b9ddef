// Modules that only change the shape, or nothing.
#pragma once
#include "outrace/nn/module.h"
#include "outrace/ops/ops.h"

namespace outrace::nn {

class Identity : public Module {
 public:
  Tensor forward(const Tensor& x) override { return x; }
};

// Joins axes first to last; by default all but the batch.
class Flatten : public Module {
 public:
  explicit Flatten(int64_t first = 1, int64_t last = -1) : first_(first), last_(last) {}
  Tensor forward(const Tensor& x) override { return flatten(x, first_, last_); }

 private:
  int64_t first_, last_;
};

// Splits axis `axis` into two or more, of which one size may be -1.
class Unflatten : public Module {
 public:
  Unflatten(int64_t axis, std::vector<int64_t> sizes) : axis_(axis), sizes_(std::move(sizes)) {}
  Tensor forward(const Tensor& x) override { return unflatten(x, axis_, sizes_); }

 private:
  int64_t axis_;
  std::vector<int64_t> sizes_;
};

}  // namespace outrace::nn
