#include "outrace/ops/normalization.h"

#include "outrace/graph/recorder.h"
#include "outrace/graph/scope.h"
#include "outrace/ops/concat.h"
#include "outrace/ops/elementwise.h"
#include "outrace/ops/movement.h"
#include "outrace/ops/reduce.h"

namespace outrace {
namespace {

const ReduceOptions kLast{{-1}, true};

// x without its mean (layer norm), and the factor that normalizes it.
struct Parts {
  Tensor centered, inverse;
};
Parts parts_of(const Tensor& x, const NormAttrs& a) {
  const Tensor c = a.centered ? x - mean(x, kLast) : x;
  return {c, rsqrt(mean(square(c), kLast) + a.eps)};
}

Tensor layer_norm_in_ops(std::span<const Tensor> in, const Attrs& attrs) {
  const Parts p = parts_of(in[0], std::get<NormAttrs>(attrs));
  Tensor y = p.centered * p.inverse;
  if (in.size() > 1) y = y * in[1];
  return in.size() > 2 ? y + in[2] : y;
}

// Inputs of the gradient ops: x, g, and the weight if there is one.
Tensor layer_norm_grad_in_ops(std::span<const Tensor> in, const Attrs& attrs) {
  const auto& a = std::get<NormAttrs>(attrs);
  const Parts p = parts_of(in[0], a);
  const Tensor normalized = p.centered * p.inverse;
  const Tensor h = in.size() > 2 ? in[1] * in[2] : in[1];
  const Tensor rest = a.centered ? h - mean(h, kLast) : h;
  return (rest - normalized * mean(h * normalized, kLast)) * p.inverse;
}

Tensor layer_norm_weight_grad_in_ops(std::span<const Tensor> in, const Attrs& attrs) {
  const Parts p = parts_of(in[0], std::get<NormAttrs>(attrs));
  return stack({sum(in[1] * (p.centered * p.inverse), {{0}}), sum(in[1], {{0}})});
}

Tensor layer_norm_derivative(const DerivativeArgs& d, int which) {
  const Tensor& x = d.inputs[0];
  const std::source_location where = d.output.node().where;
  std::vector<Tensor> in{x, d.g};
  if (which == 0) {
    if (d.inputs.size() > 1) in.push_back(d.inputs[1]);
    // A gradient that will be differentiated again is written in ops that can be.
    if (grad_enabled()) return layer_norm_grad_in_ops(in, d.attrs);
    return in.size() > 2 ? record(kLayerNormGrad, {&in[0], &in[1], &in[2]}, x.dtype(), x.shape(), d.attrs, where)
                         : record(kLayerNormGrad, {&in[0], &in[1]}, x.dtype(), x.shape(), d.attrs, where);
  }
  const int64_t columns = x.shape().back();
  const Tensor both =
      grad_enabled() ? layer_norm_weight_grad_in_ops(in, d.attrs)
                     : record(kLayerNormWeightGrad, {&in[0], &in[1]}, x.dtype(), Shape{2, columns}, d.attrs, where);
  return reshape(slice(both, 0, which - 1, which), Shape{columns});
}

// Two passes over a row for its moments, one for the result.
double norm_flops(std::span<const Shape> inputs, const Shape&, const Attrs&) {
  return 8.0 * static_cast<double>(inputs[0].numel());
}

Tensor normalize(const char* op, At at, const Shape& normalized_shape, const Tensor& weight, const Tensor& bias,
                 const NormAttrs& attrs) {
  const Tensor& x = at.tensor;
  if (!is_float(x.dtype()))
    fail(ErrorKind::dtype, "[", op, "] needs floating point; got ", name_of(x.dtype()), call_site(at.where));
  const int axes = normalized_shape.rank(), lead = x.rank() - axes;
  bool fits = axes > 0 && lead >= 0;
  for (int i = 0; fits && i < axes; ++i) fits = x.shape()[lead + i] == normalized_shape[i];
  if (!fits)
    fail(ErrorKind::shape, "[", op, "] the input must end with the normalized shape ", normalized_shape, "; got ",
         x.shape(), call_site(at.where));
  for (const Tensor* t : {&weight, &bias}) {
    if (!t->defined()) continue;
    if (!(t->shape() == normalized_shape) || t->dtype() != x.dtype())
      fail(ErrorKind::shape, "[", op, "] weight and bias must have the normalized shape ", normalized_shape,
           " and the input's dtype ", name_of(x.dtype()), "; got ", t->shape(), " ", name_of(t->dtype()),
           call_site(at.where));
  }
  if (bias.defined() && !weight.defined())
    fail(ErrorKind::value, "[", op, "] a bias needs a weight", call_site(at.where));
  const int64_t columns = normalized_shape.numel();
  const Shape flat{columns == 0 ? 0 : x.numel() / columns, columns};
  const Tensor rows = reshape(At(x, at.where), flat);
  const Tensor w = weight.defined() ? reshape(weight, Shape{columns}) : weight;
  const Tensor b = bias.defined() ? reshape(bias, Shape{columns}) : bias;
  const Tensor y = b.defined()   ? record(kLayerNorm, {&rows, &w, &b}, x.dtype(), flat, attrs, at.where)
                   : w.defined() ? record(kLayerNorm, {&rows, &w}, x.dtype(), flat, attrs, at.where)
                                 : record(kLayerNorm, {&rows}, x.dtype(), flat, attrs, at.where);
  return reshape(At(y, at.where), x.shape());
}

// [C] as [1, C, 1, ...], to stand beside x.
Tensor per_channel(const Tensor& t, const Tensor& x) {
  Shape shape = Shape{1, t.numel()};
  for (int i = 2; i < x.rank(); ++i) shape = shape.inserted(i, 1);
  return reshape(t, shape);
}

Tensor scaled(Tensor y, const Tensor& weight, const Tensor& bias) {
  if (weight.defined()) y = y * per_channel(weight, y);
  return bias.defined() ? y + per_channel(bias, y) : y;
}

void check_channels(const char* op, const Tensor& x, std::initializer_list<const Tensor*> each,
                    std::source_location where) {
  if (!is_float(x.dtype()))
    fail(ErrorKind::dtype, "[", op, "] needs floating point; got ", name_of(x.dtype()), call_site(where));
  if (x.rank() < 2) fail(ErrorKind::shape, "[", op, "] needs [N, C, ...]; got ", x.shape(), call_site(where));
  for (const Tensor* t : each)
    if (t->defined() && !(t->shape() == Shape{x.shape()[1]}))
      fail(ErrorKind::shape, "[", op, "] weight, bias and statistics must be [", x.shape()[1], "], one a channel; got ",
           t->shape(), call_site(where));
}

}  // namespace

Tensor layer_norm(At x, const Shape& normalized_shape, const Tensor& weight, const Tensor& bias, double eps) {
  return normalize("layer_norm", x, normalized_shape, weight, bias, {eps, true});
}

Tensor rms_norm(At x, const Shape& normalized_shape, const Tensor& weight, double eps) {
  return normalize("rms_norm", x, normalized_shape, weight, {}, {eps, false});
}

Tensor group_norm(At at, int64_t groups, const Tensor& weight, const Tensor& bias, double eps) {
  const Tensor& x = at.tensor;
  check_channels("group_norm", x, {&weight, &bias}, at.where);
  const int64_t channels = x.shape()[1];
  if (groups < 1 || channels % groups != 0)
    fail(ErrorKind::value, "[group_norm] ", channels, " channels are not divisible into ", groups, " groups",
         call_site(at.where));
  const int64_t batch = x.shape()[0], each = batch == 0 ? 0 : x.numel() / (batch * groups);
  const Tensor rows = reshape(at, Shape{batch, groups, each});
  return scaled(reshape(layer_norm(rows, Shape{each}, {}, {}, eps), x.shape()), weight, bias);
}

Tensor batch_norm(At at, Tensor running_mean, Tensor running_var, const Tensor& weight, const Tensor& bias,
                  const BatchNormOptions& options) {
  const Tensor& x = at.tensor;
  check_channels("batch_norm", x, {&running_mean, &running_var, &weight, &bias}, at.where);
  if (!options.training) {
    if (!running_mean.defined() || !running_var.defined())
      fail(ErrorKind::value, "[batch_norm] evaluation needs running statistics", call_site(at.where));
    const Tensor inverse = rsqrt(running_var + options.eps);
    return scaled((x - per_channel(running_mean, x)) * per_channel(inverse, x), weight, bias);
  }
  const int64_t channels = x.shape()[1], count = channels == 0 ? 0 : x.numel() / channels;
  if (count == 1)
    fail(ErrorKind::value, "[batch_norm] more than one value per channel is needed in training; got ", x.shape(),
         call_site(at.where));
  ReduceOptions over{{0}, true};
  for (int i = 2; i < x.rank(); ++i) over.axes.push_back(i);
  const Tensor m = mean(x, over);
  const Tensor centered = x - m;
  const Tensor variance = mean(square(centered), over);
  if (count > 0) {
    NoGrad off;
    const auto average = [&](Tensor& running, const Tensor& batch) {
      if (!running.defined()) return;
      running.assign(running * (1 - options.momentum) + reshape(batch, Shape{channels}) * options.momentum);
    };
    const double n = static_cast<double>(count);
    average(running_mean, m.detach());
    average(running_var, variance.detach() * (n / (n - 1)));
  }
  return scaled(centered * rsqrt(variance + options.eps), weight, bias);
}

const OpDef kLayerNorm(OpFacts{.name = "layer_norm",
                               .kind = OpKind::producer,
                               .derivative = layer_norm_derivative,
                               .decompose = layer_norm_in_ops,
                               .autocast = Autocast::wide,
                               .flops = norm_flops});
const OpDef kLayerNormGrad(OpFacts{.name = "layer_norm_grad",
                                   .kind = OpKind::producer,
                                   .decompose = layer_norm_grad_in_ops,
                                   .autocast = Autocast::wide,
                                   .flops = norm_flops});
const OpDef kLayerNormWeightGrad(OpFacts{.name = "layer_norm_weight_grad",
                                         .kind = OpKind::producer,
                                         .decompose = layer_norm_weight_grad_in_ops,
                                         .autocast = Autocast::wide,
                                         .flops = norm_flops});

}  // namespace outrace
