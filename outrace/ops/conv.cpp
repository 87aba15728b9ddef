#include "outrace/ops/conv.h"

#include <algorithm>

#include "outrace/graph/recorder.h"
#include "outrace/graph/scope.h"
#include "outrace/ops/elementwise.h"
#include "outrace/ops/matmul.h"
#include "outrace/ops/movement.h"

namespace outrace {
namespace {

// Windows along H or W of outputs.
int64_t count_of(const ConvAttrs& a, int axis) {
  return (a.size[axis] + a.before[axis] + a.after[axis] - a.dilation[axis] * (a.kernel[axis] - 1) - 1) /
             a.stride[axis] +
         1;
}

// y = conv(x, w); each of the three is the derivative of the other two.
Tensor record_conv(const OpDef& op, const Tensor& a, const Tensor& b, const Shape& shape, const ConvAttrs& attrs,
                   std::source_location where) {
  return record(op, {&a, &b}, a.dtype(), shape, attrs, where);
}
Tensor conv(const Tensor& x, const Tensor& w, const ConvAttrs& a, std::source_location where) {
  return record_conv(kConv, x, w, Shape{x.shape()[0], count_of(a, 0), count_of(a, 1), w.shape()[0]}, a, where);
}
Tensor input_grad(const Tensor& g, const Tensor& w, const ConvAttrs& a, std::source_location where) {
  return record_conv(kConvInputGrad, g, w, Shape{g.shape()[0], a.size[0], a.size[1], w.shape()[1] * a.groups}, a,
                     where);
}
Tensor weight_grad(const Tensor& x, const Tensor& g, const ConvAttrs& a, std::source_location where) {
  return record_conv(kConvWeightGrad, x, g,
                     Shape{g.shape().back(), x.shape().back() / a.groups, a.kernel[0], a.kernel[1]}, a, where);
}

Tensor conv_derivative(const DerivativeArgs& d, int which) {
  const auto& a = std::get<ConvAttrs>(d.attrs);
  const std::source_location where = d.output.node().where;
  return which == 0 ? input_grad(d.g, d.inputs[1], a, where) : weight_grad(d.inputs[0], d.g, a, where);
}
Tensor input_grad_derivative(const DerivativeArgs& d, int which) {
  const auto& a = std::get<ConvAttrs>(d.attrs);
  const std::source_location where = d.output.node().where;
  return which == 0 ? conv(d.g, d.inputs[1], a, where) : weight_grad(d.g, d.inputs[0], a, where);
}
Tensor weight_grad_derivative(const DerivativeArgs& d, int which) {
  const auto& a = std::get<ConvAttrs>(d.attrs);
  const std::source_location where = d.output.node().where;
  return which == 0 ? input_grad(d.inputs[1], d.g, a, where) : conv(d.inputs[0], d.g, a, where);
}

// The decompositions: windows of the padded image as a matrix (im2col), one product a group.
struct Sizes {
  int64_t images, rows, columns;  // outputs are [images, rows, columns, O]
  int64_t channels, groups;       // of x
  int64_t positions() const { return images * rows * columns; }
  int64_t taps(const ConvAttrs& a) const { return channels / groups * a.kernel[0] * a.kernel[1]; }
};
Sizes sizes_of(const ConvAttrs& a, int64_t images, int64_t channels) {
  return {images, count_of(a, 0), count_of(a, 1), channels, a.groups};
}

int64_t extent(const ConvAttrs& a, int axis) { return a.dilation[axis] * (a.kernel[axis] - 1) + 1; }
// Entries of the padded image that windows cover.
int64_t covered(const ConvAttrs& a, int axis) { return (count_of(a, axis) - 1) * a.stride[axis] + extent(a, axis); }

// [groups, positions, taps]
Tensor windows_of(const Tensor& x, const ConvAttrs& a) {
  const Sizes n = sizes_of(a, x.shape()[0], x.shape().back());
  SliceAttrs where;
  where.step.fill(1);
  Shape padded = x.shape();
  Tensor y = x;
  for (int i = 0; i < 2; ++i) {
    padded = padded.with(i + 1, a.before[i] + a.size[i] + std::max<int64_t>(0, a.after[i]));
    where.start[i + 1] = a.before[i];
  }
  y = pad(y, padded, where);
  for (int i = 0; i < 2; ++i) y = unfold(slice(y, i + 1, 0, covered(a, i)), i + 1, extent(a, i), a.stride[i]);
  for (int i = 0; i < 2; ++i) y = slice(y, 4 + i, 0, extent(a, i), a.dilation[i]);
  return permute(reshape(y, Shape{n.positions(), n.groups, n.taps(a)}), std::array<int64_t, 3>{1, 0, 2});
}

// [positions, groups * each] as [groups, positions, each], and back.
Tensor by_group(const Tensor& y, int64_t groups) {
  const int64_t each = y.shape().back() / groups;
  return permute(reshape(y, Shape{y.numel() / (groups * each), groups, each}), std::array<int64_t, 3>{1, 0, 2});
}
Tensor from_groups(const Tensor& y, const Shape& shape) {
  return reshape(permute(y, std::array<int64_t, 3>{1, 0, 2}), shape);
}
Tensor weights_by_group(const Tensor& w, int64_t groups) {
  const int64_t outputs = w.shape()[0] / groups;
  return reshape(w, Shape{groups, outputs, w.shape()[1] * w.shape()[2] * w.shape()[3]});
}

Tensor conv_in_ops(std::span<const Tensor> in, const Attrs& attrs) {
  const auto& a = std::get<ConvAttrs>(attrs);
  const Tensor y = matmul(windows_of(in[0], a), weights_by_group(in[1], a.groups), {.transpose_b = true});
  return from_groups(y, Shape{in[0].shape()[0], count_of(a, 0), count_of(a, 1), in[1].shape()[0]});
}

Tensor weight_grad_in_ops(std::span<const Tensor> in, const Attrs& attrs) {
  const auto& a = std::get<ConvAttrs>(attrs);
  const Tensor dw = matmul(by_group(in[1], a.groups), windows_of(in[0], a), {.transpose_a = true});
  return reshape(dw, Shape{in[1].shape().back(), in[0].shape().back() / a.groups, a.kernel[0], a.kernel[1]});
}

Tensor input_grad_in_ops(std::span<const Tensor> in, const Attrs& attrs) {
  const auto& a = std::get<ConvAttrs>(attrs);
  const Sizes n = sizes_of(a, in[0].shape()[0], in[1].shape()[1] * a.groups);
  const Tensor columns = matmul(by_group(in[0], a.groups), weights_by_group(in[1], a.groups));
  Tensor y = from_groups(columns, Shape{n.images, n.rows, n.columns, n.channels, a.kernel[0], a.kernel[1]});
  SliceAttrs spread;  // taps to their places in the window
  spread.step.fill(1);
  for (int i = 0; i < 2; ++i) spread.step[4 + i] = a.dilation[i];
  y = pad(y, y.shape().with(4, extent(a, 0)).with(5, extent(a, 1)), spread);
  y = fold(y, Shape{n.images, n.rows, covered(a, 1), n.channels, extent(a, 0)}, 2, a.stride[1]);
  y = fold(y, Shape{n.images, covered(a, 0), covered(a, 1), n.channels}, 1, a.stride[0]);
  SliceAttrs where;
  where.step.fill(1);
  Shape whole = y.shape();
  for (int i = 0; i < 2; ++i) whole = whole.with(i + 1, std::max(covered(a, i), a.before[i] + a.size[i]));
  y = pad(y, whole, where);
  for (int i = 0; i < 2; ++i) y = slice(y, i + 1, a.before[i], a.before[i] + a.size[i]);
  return y;
}

// A multiplication and an addition for each output and tap that lies inside the image.
double flops_of(int64_t images, const Shape& weight, const ConvAttrs& a) {
  double inside[2] = {0, 0};
  for (int i = 0; i < 2; ++i)
    for (int64_t k = 0; k < a.kernel[i]; ++k) {
      const int64_t first = a.before[i] - k * a.dilation[i];  // tap k of output o is entry o * stride - first
      const int64_t low = first <= 0 ? 0 : (first + a.stride[i] - 1) / a.stride[i];
      const int64_t end = first + a.size[i] <= 0 ? 0 : (first + a.size[i] - 1) / a.stride[i] + 1;
      inside[i] += static_cast<double>(std::max<int64_t>(0, std::min(count_of(a, i), end) - low));
    }
  return 2 * static_cast<double>(images * weight[0] * weight[1]) * inside[0] * inside[1];
}
double conv_flops(std::span<const Shape> inputs, const Shape&, const Attrs& attrs) {
  return flops_of(inputs[0][0], inputs[1], std::get<ConvAttrs>(attrs));
}
double weight_grad_flops(std::span<const Shape> inputs, const Shape& output, const Attrs& attrs) {
  return flops_of(inputs[0][0], output, std::get<ConvAttrs>(attrs));
}

void check_operands(const char* op, const Tensor& x, const Tensor& w, int rank, const char* shapes,
                    std::source_location where) {
  if (x.rank() != rank || w.rank() != rank)
    fail(ErrorKind::shape, "[", op, "] needs ", shapes, "; got ", x.shape(), " and ", w.shape(), call_site(where));
  if (!is_float(x.dtype()) || x.dtype() != w.dtype())
    fail(ErrorKind::dtype, "[", op, "] input and weight must have one floating point dtype; got ", name_of(x.dtype()),
         " and ", name_of(w.dtype()), call_site(where));
}

void check_groups(const char* op, int64_t groups, int64_t inputs, int64_t outputs, std::source_location where) {
  if (groups < 1 || inputs % groups != 0 || outputs % groups != 0)
    fail(ErrorKind::value, "[", op, "] ", groups, " groups must divide the ", inputs, " input and the ", outputs,
         " output channels", call_site(where));
}

Tensor with_bias(const char* op, const Tensor& y, const Tensor& bias, std::source_location where) {
  if (!bias.defined()) return y;
  if (!(bias.shape() == Shape{y.shape().back()}))
    fail(ErrorKind::shape, "[", op, "] the bias must be [", y.shape().back(), "], one an output channel; got ",
         bias.shape(), call_site(where));
  return add(At(y, where), bias);
}

// Takes what no window reaches off `after`, so that equal convolutions have equal attributes.
ConvAttrs exact(ConvAttrs a) {
  for (int i = 0; i < 2; ++i) a.after[i] = covered(a, i) - a.before[i] - a.size[i];
  return a;
}

}  // namespace

Tensor conv2d(At at, const Tensor& weight, const Tensor& bias, const Conv2dOptions& options) {
  const Tensor& x = at.tensor;
  check_operands("conv2d", x, weight, 4, "[N, C, H, W] and a weight [O, C / groups, kh, kw]", at.where);
  check_groups("conv2d", options.groups, x.shape()[1], weight.shape()[0], at.where);
  if (weight.shape()[1] * options.groups != x.shape()[1])
    fail(ErrorKind::shape, "[conv2d] the weight's second size must be the input's channels / groups; got input ",
         x.shape(), ", weight ", weight.shape(), " and ", options.groups, " groups", call_site(at.where));
  ConvAttrs a{.size = {x.shape()[2], x.shape()[3]},
              .kernel = {weight.shape()[2], weight.shape()[3]},
              .stride = options.stride.array(),
              .dilation = options.dilation.array(),
              .before = options.padding.before(),
              .after = options.padding.after(),
              .groups = options.groups};
  check_pair("conv2d", "the stride", a.stride, 1, at.where);
  check_pair("conv2d", "the dilation", a.dilation, 1, at.where);
  check_pair("conv2d", "the padding", a.before, 0, at.where);
  check_pair("conv2d", "the padding", a.after, 0, at.where);
  check_pair("conv2d", "the kernel", a.kernel, 1, at.where);
  for (int i = 0; i < 2; ++i) {
    if (options.padding.is_same) {
      const int64_t count = (a.size[i] + a.stride[i] - 1) / a.stride[i];
      const int64_t total = std::max<int64_t>(0, (count - 1) * a.stride[i] + extent(a, i) - a.size[i]);
      a.before[i] = total / 2;
      a.after[i] = total - total / 2;
    }
    if (a.size[i] + a.before[i] + a.after[i] < extent(a, i))
      fail(ErrorKind::value, "[conv2d] a kernel that spans ", extent(a, i), " entries does not fit into ",
           a.size[i] + a.before[i] + a.after[i], i == 0 ? " padded rows" : " padded columns", "; input ", x.shape(),
           ", weight ", weight.shape(), call_site(at.where));
  }
  const Tensor last = channels_last(at);
  const Tensor y = conv(last, weight, exact(a), at.where);
  return channels_first(At(with_bias("conv2d", y, bias, at.where), at.where));
}

Tensor conv1d(At at, const Tensor& weight, const Tensor& bias, const Conv1dOptions& options) {
  check_operands("conv1d", at.tensor, weight, 3, "[N, C, L] and a weight [O, C / groups, k]", at.where);
  const Tensor rows = unsqueeze(at, 2);
  Padding padding = options.padding;
  padding.top = padding.bottom = 0;
  const Tensor y = conv2d(
      At(rows, at.where), unsqueeze(weight, 2), bias,
      {.stride = {1, options.stride}, .padding = padding, .dilation = {1, options.dilation}, .groups = options.groups});
  return squeeze(At(y, at.where), 2);
}

Tensor conv_transpose2d(At at, const Tensor& weight, const Tensor& bias, const ConvTranspose2dOptions& options) {
  const char* op = "conv_transpose2d";
  const Tensor& x = at.tensor;
  check_operands(op, x, weight, 4, "[N, C, H, W] and a weight [C, O / groups, kh, kw]", at.where);
  if (weight.shape()[0] != x.shape()[1])
    fail(ErrorKind::shape, "[", op, "] the weight's first size must be the input's channels; got input ", x.shape(),
         " and weight ", weight.shape(), call_site(at.where));
  check_groups(op, options.groups, x.shape()[1], weight.shape()[1] * options.groups, at.where);
  if (options.padding.is_same) fail(ErrorKind::value, "[", op, "] needs its padding in numbers", call_site(at.where));
  ConvAttrs a{.kernel = {weight.shape()[2], weight.shape()[3]},
              .stride = options.stride.array(),
              .dilation = options.dilation.array(),
              .before = options.padding.before(),
              .groups = options.groups};
  const std::array<int64_t, 2> after = options.padding.after(), more = options.output_padding.array();
  check_pair(op, "the stride", a.stride, 1, at.where);
  check_pair(op, "the dilation", a.dilation, 1, at.where);
  check_pair(op, "the kernel", a.kernel, 1, at.where);
  check_pair(op, "the padding", a.before, 0, at.where);
  check_pair(op, "the padding", after, 0, at.where);
  check_pair(op, "the output padding", more, 0, at.where);
  for (int i = 0; i < 2; ++i) {
    if (more[i] >= std::max(a.stride[i], a.dilation[i]))
      fail(ErrorKind::value, "[", op, "] the output padding must be below the stride or the dilation; got ", more[i],
           call_site(at.where));
    const int64_t span = (x.shape()[2 + i] - 1) * a.stride[i] + extent(a, i);
    a.size[i] = span - a.before[i] - after[i] + more[i];
    a.after[i] = after[i] - more[i];  // the windows of the convolution are exactly the entries of x
    if (a.size[i] < 1)
      fail(ErrorKind::value, "[", op, "] the padding takes away the whole output of ", span, " entries; input ",
           x.shape(), ", weight ", weight.shape(), call_site(at.where));
  }
  const Tensor y = input_grad(channels_last(at), weight, a, at.where);
  return channels_first(At(with_bias(op, y, bias, at.where), at.where));
}

Tensor conv_transpose1d(At at, const Tensor& weight, const Tensor& bias, const ConvTranspose1dOptions& options) {
  check_operands("conv_transpose1d", at.tensor, weight, 3, "[N, C, L] and a weight [C, O / groups, k]", at.where);
  const Tensor rows = unsqueeze(at, 2);
  const Tensor y = conv_transpose2d(At(rows, at.where), unsqueeze(weight, 2), bias,
                                    {.stride = {1, options.stride},
                                     .padding = {0, options.padding},
                                     .output_padding = {0, options.output_padding},
                                     .dilation = {1, options.dilation},
                                     .groups = options.groups});
  return squeeze(At(y, at.where), 2);
}

const OpDef kConv(OpFacts{.name = "conv",
                          .kind = OpKind::producer,
                          .derivative = conv_derivative,
                          .decompose = conv_in_ops,
                          .autocast = Autocast::narrow,
                          .flops = conv_flops});
const OpDef kConvInputGrad(OpFacts{.name = "conv_input_grad",
                                   .kind = OpKind::producer,
                                   .derivative = input_grad_derivative,
                                   .decompose = input_grad_in_ops,
                                   .autocast = Autocast::narrow,
                                   .flops = conv_flops});
const OpDef kConvWeightGrad(OpFacts{.name = "conv_weight_grad",
                                    .kind = OpKind::producer,
                                    .derivative = weight_grad_derivative,
                                    .decompose = weight_grad_in_ops,
                                    .autocast = Autocast::narrow,
                                    .flops = weight_grad_flops});

}  // namespace outrace
