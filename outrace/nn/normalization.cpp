#include "outrace/nn/normalization.h"

#include "outrace/ops/ops.h"

namespace outrace::nn {

LayerNorm::LayerNorm(const Shape& normalized_shape, const LayerNormOptions& o) : shape_(normalized_shape), eps_(o.eps) {
  const CreateOptions create{o.dtype, o.device};
  if (o.affine) weight = register_parameter("weight", ones(shape_, create));
  if (o.affine && o.bias) bias = register_parameter("bias", zeros(shape_, create));
}
Tensor LayerNorm::forward(const Tensor& x) { return layer_norm(x, shape_, weight, bias, eps_); }
std::string LayerNorm::arguments() const { return cat(shape_); }

RMSNorm::RMSNorm(const Shape& normalized_shape, const RMSNormOptions& o) : shape_(normalized_shape), eps_(o.eps) {
  if (o.affine) weight = register_parameter("weight", ones(shape_, {o.dtype, o.device}));
}
Tensor RMSNorm::forward(const Tensor& x) { return rms_norm(x, shape_, weight, eps_); }
std::string RMSNorm::arguments() const { return cat(shape_); }

GroupNorm::GroupNorm(int64_t groups, int64_t channels, const GroupNormOptions& o)
    : groups_(groups), channels_(channels), eps_(o.eps) {
  if (groups < 1 || channels < 1 || channels % groups != 0)
    fail(ErrorKind::value, "[GroupNorm] ", channels, " channels are not divisible into ", groups, " groups");
  const CreateOptions create{o.dtype, o.device};
  if (!o.affine) return;
  weight = register_parameter("weight", ones({channels}, create));
  bias = register_parameter("bias", zeros({channels}, create));
}
Tensor GroupNorm::forward(const Tensor& x) {
  if (x.rank() < 2 || x.shape()[1] != channels_)
    fail(ErrorKind::shape, "[GroupNorm] needs [N, ", channels_, ", ...]; got ", x.shape());
  return group_norm(x, groups_, weight, bias, eps_);
}
std::string GroupNorm::arguments() const { return cat(groups_, ", ", channels_); }

BatchNorm1d::BatchNorm1d(int64_t features, const BatchNormOptions& o) : features_(features), options_(o) {
  if (features < 1) fail(ErrorKind::value, "[BatchNorm1d] needs at least one feature; got ", features);
  const CreateOptions create{o.dtype, o.device};
  if (o.affine) {
    weight = register_parameter("weight", ones({features}, create));
    bias = register_parameter("bias", zeros({features}, create));
  }
  if (o.track_running_stats) {
    running_mean = register_buffer("running_mean", zeros({features}, create));
    running_var = register_buffer("running_var", ones({features}, create));
    num_batches_tracked = register_buffer("num_batches_tracked", zeros({}, {DType::i64, o.device}));
  }
}

Tensor BatchNorm1d::forward(const Tensor& x) {
  if ((x.rank() != 2 && x.rank() != 3) || x.shape()[1] != features_)
    fail(ErrorKind::shape, "[BatchNorm1d] needs [N, ", features_, "] or [N, ", features_, ", L]; got ", x.shape());
  const bool batch = training() || !options_.track_running_stats;
  const Tensor y = batch_norm(x, running_mean, running_var, weight, bias,
                              {.training = batch, .momentum = options_.momentum, .eps = options_.eps});
  if (training() && options_.track_running_stats && x.numel() > 0) num_batches_tracked.assign(num_batches_tracked + 1);
  return y;
}
std::string BatchNorm1d::arguments() const { return cat(features_); }

}  // namespace outrace::nn
