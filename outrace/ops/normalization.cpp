#include "outrace/ops/normalization.h"

#include "outrace/graph/recorder.h"
#include "outrace/graph/scope.h"
#include "outrace/ops/concat.h"
#include "outrace/ops/elementwise.h"
#include "outrace/ops/movement.h"
#include "outrace/ops/per_channel.h"
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
  return scaled_per_channel(reshape(layer_norm(rows, Shape{each}, {}, {}, eps), x.shape()), weight, bias);
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
