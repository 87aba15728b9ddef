// Batch normalization: one pass over x for the moments, one elementwise; backward one for two sums, one elementwise.
#include "outrace/graph/recorder.h"
#include "outrace/graph/scope.h"
#include "outrace/ops/concat.h"
#include "outrace/ops/elementwise.h"
#include "outrace/ops/movement.h"
#include "outrace/ops/normalization.h"
#include "outrace/ops/per_channel.h"
#include "outrace/ops/reduce.h"

namespace outrace {
namespace {

// x [N, C, ...] as [values, C], channels last: what the kernels of this file read.
Tensor rows_of(const Tensor& x) {
  std::vector<int64_t> axes{0};
  for (int i = 2; i < x.rank(); ++i) axes.push_back(i);
  axes.push_back(1);
  const int64_t channels = x.shape()[1];
  return reshape(permute(x, axes), Shape{channels == 0 ? 0 : x.numel() / channels, channels});
}

Tensor row(const Tensor& rows, int64_t i) { return reshape(slice(rows, 0, i, i + 1), Shape{rows.shape()[1]}); }

// Mean and biased variance of each column: [2, C].
Tensor moments(const Tensor& rows, std::source_location where) {
  return record(kBatchMoments, {&rows}, rows.dtype(), Shape{2, rows.shape()[1]}, NoAttrs{}, where);
}
Tensor moments_derivative(const DerivativeArgs& d, int) {
  const Tensor& x = d.inputs[0];
  const double n = static_cast<double>(x.shape()[0]);
  return row(d.g, 0) * (1 / n) + (x - row(d.output, 0)) * (row(d.g, 1) * (2 / n));
}
Tensor moments_in_ops(std::span<const Tensor> in, const Attrs&) {
  const Tensor m = mean(in[0], {{0}});
  return stack({m, mean(square(in[0] - m), {{0}})});
}

// sum(g) and sum(g * (x - mean)) of each column: [2, C].
Tensor sums(const Tensor& g, const Tensor& x, const Tensor& mean, std::source_location where) {
  return record(kBatchNormSums, {&g, &x, &mean}, x.dtype(), Shape{2, x.shape()[1]}, NoAttrs{}, where);
}
Tensor sums_derivative(const DerivativeArgs& d, int which) {
  const Tensor &g = d.inputs[0], &x = d.inputs[1], &mean = d.inputs[2];
  const Tensor of_product = row(d.g, 1);
  if (which == 0) return row(d.g, 0) + of_product * (x - mean);
  if (which == 1) return of_product * g;
  return neg(of_product * sum(g, {{0}}));
}
Tensor sums_in_ops(std::span<const Tensor> in, const Attrs&) {
  return stack({sum(in[0], {{0}}), sum(in[0] * (in[1] - in[2]), {{0}})});
}

double moments_flops(std::span<const Shape> inputs, const Shape&, const Attrs&) {
  return 4.0 * static_cast<double>(inputs[0].numel());
}

// Inputs: the value, x, and weight and bias if there are. The value is there without history; this is its derivative,
// with g's two sums taken together. It is written in ops that can be differentiated again.
Tensor batch_norm_derivative(const DerivativeArgs& d, int which) {
  if (which == 0) return {};
  const Tensor& x = d.inputs[1];
  const std::source_location where = d.output.node().where;
  const Tensor rows = rows_of(x), m = moments(rows, where), mean = row(m, 0);
  const Tensor inverse = rsqrt(row(m, 1) + std::get<NormAttrs>(d.attrs).eps);
  const Tensor both = sums(rows_of(d.g), rows, mean, where);
  if (which == 2) return row(both, 1) * inverse;
  if (which == 3) return row(both, 0);
  const int64_t channels = x.shape()[1];
  const double n = channels == 0 ? 1 : static_cast<double>(std::max<int64_t>(1, x.numel() / channels));
  const Tensor scale = d.inputs.size() > 2 ? d.inputs[2] * inverse : inverse;
  const Tensor slope = square(inverse) * row(both, 1) * (1 / n), level = row(both, 0) * (1 / n);
  return (d.g - per_channel(level, x) - (x - per_channel(mean, x)) * per_channel(slope, x)) * per_channel(scale, x);
}

Tensor in_evaluation(const Tensor& x, const Tensor& running_mean, const Tensor& running_var, const Tensor& weight,
                     const Tensor& bias, double eps) {
  const Tensor inverse = rsqrt(running_var + eps);
  return scaled_per_channel((x - per_channel(running_mean, x)) * per_channel(inverse, x), weight, bias);
}

}  // namespace

Tensor batch_norm(At at, Tensor running_mean, Tensor running_var, const Tensor& weight, const Tensor& bias,
                  const BatchNormOptions& options) {
  const Tensor& x = at.tensor;
  check_channels("batch_norm", x, {&running_mean, &running_var, &weight, &bias}, at.where);
  if (!options.training) {
    if (!running_mean.defined() || !running_var.defined())
      fail(ErrorKind::value, "[batch_norm] evaluation needs running statistics", call_site(at.where));
    return in_evaluation(x, running_mean, running_var, weight, bias, options.eps);
  }
  const int64_t channels = x.shape()[1], count = channels == 0 ? 0 : x.numel() / channels;
  if (count == 1)
    fail(ErrorKind::value, "[batch_norm] more than one value per channel is needed in training; got ", x.shape(),
         call_site(at.where));
  Tensor y;
  {
    NoGrad off;
    const Tensor m = moments(rows_of(x), at.where), mean = row(m, 0), variance = row(m, 1);
    if (count > 0) {
      const auto average = [&](Tensor& running, const Tensor& batch) {
        if (running.defined()) running.assign(running * (1 - options.momentum) + batch * options.momentum);
      };
      const double n = static_cast<double>(count);
      average(running_mean, mean);
      average(running_var, variance * (n / (n - 1)));
    }
    const Tensor inverse = rsqrt(variance + options.eps);
    const Tensor scale = weight.defined() ? inverse * weight : inverse;
    y = (x - per_channel(mean, x)) * per_channel(scale, x);
    if (bias.defined()) y = y + per_channel(bias, x);
  }
  const NormAttrs attrs{.eps = options.eps};
  if (!weight.defined() && !bias.defined()) return record(kBatchNorm, {&y, &x}, y.dtype(), y.shape(), attrs, at.where);
  const Tensor w = weight.defined() ? weight : expand(constant(1, x.dtype(), x.device()), Shape{channels});
  return bias.defined() ? record(kBatchNorm, {&y, &x, &w, &bias}, y.dtype(), y.shape(), attrs, at.where)
                        : record(kBatchNorm, {&y, &x, &w}, y.dtype(), y.shape(), attrs, at.where);
}

const OpDef kBatchMoments(OpFacts{.name = "batch_moments",
                                  .kind = OpKind::producer,
                                  .derivative = moments_derivative,
                                  .decompose = moments_in_ops,
                                  .autocast = Autocast::wide,
                                  .flops = moments_flops});
const OpDef kBatchNormSums(OpFacts{.name = "batch_norm_sums",
                                   .kind = OpKind::producer,
                                   .derivative = sums_derivative,
                                   .decompose = sums_in_ops,
                                   .autocast = Autocast::wide,
                                   .flops = moments_flops});
const OpDef kBatchNorm(OpFacts{.name = "batch_norm", .kind = OpKind::movement, .derivative = batch_norm_derivative});

}  // namespace outrace
