// Normalization layers; the formulas are those of ops/normalization.h. Names, defaults and initial values (weight 1,
// bias 0) are PyTorch's.
#pragma once
#include "outrace/nn/module.h"

namespace outrace::nn {

struct LayerNormOptions {
  double eps = 1e-5;
  bool affine = true;  // has a weight
  bool bias = true;    // and, if so, a bias
  DType dtype = DType::f32;
  Device device = {};
};

// Over the last axes, whose sizes `normalized_shape` names.
class LayerNorm : public Module {
 public:
  explicit LayerNorm(const Shape& normalized_shape, const LayerNormOptions& options = {});
  Tensor forward(const Tensor& x) override;
  std::string arguments() const override;
  Tensor weight, bias;

 private:
  Shape shape_;
  double eps_;
};

struct RMSNormOptions {
  double eps = 1e-6;
  bool affine = true;
  DType dtype = DType::f32;
  Device device = {};
};

class RMSNorm : public Module {
 public:
  explicit RMSNorm(const Shape& normalized_shape, const RMSNormOptions& options = {});
  Tensor forward(const Tensor& x) override;
  std::string arguments() const override;
  Tensor weight;

 private:
  Shape shape_;
  double eps_;
};

struct GroupNormOptions {
  double eps = 1e-5;
  bool affine = true;
  DType dtype = DType::f32;
  Device device = {};
};

// Throws Error(value) unless the groups divide the channels.
class GroupNorm : public Module {
 public:
  GroupNorm(int64_t groups, int64_t channels, const GroupNormOptions& options = {});
  Tensor forward(const Tensor& x) override;
  std::string arguments() const override;
  Tensor weight, bias;

 private:
  int64_t groups_, channels_;
  double eps_;
};

struct BatchNormOptions {
  double eps = 1e-5, momentum = 0.1;
  bool affine = true;
  bool track_running_stats = true;  // else evaluation uses the batch as training does
  DType dtype = DType::f32;
  Device device = {};
};

// x: [N, C] or [N, C, L]. In training (the mode a new module is in) each call updates running_mean, running_var and
// num_batches_tracked.
class BatchNorm1d : public Module {
 public:
  explicit BatchNorm1d(int64_t features, const BatchNormOptions& options = {});
  Tensor forward(const Tensor& x) override;
  std::string arguments() const override;
  Tensor weight, bias, running_mean, running_var, num_batches_tracked;

 private:
  int64_t features_;
  BatchNormOptions options_;
};

}  // namespace outrace::nn
