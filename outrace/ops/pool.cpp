#include "outrace/ops/pool.h"

#include <algorithm>

#include "outrace/graph/recorder.h"
#include "outrace/graph/scope.h"
#include "outrace/ops/creation.h"
#include "outrace/ops/movement.h"

namespace outrace {
namespace {

// Of x [N, H, W, C]; `values` are picked where x is largest.
Tensor pick(const Tensor& x, const Tensor& values, const PoolAttrs& a, std::source_location where) {
  const Shape shape{x.shape()[0], a.count[0], a.count[1], x.shape()[3]};
  return record(kMaxPoolPick, {&x, &values}, values.dtype(), shape, a, where);
}
Tensor put(const Tensor& x, const Tensor& g, const PoolAttrs& a, std::source_location where) {
  return record(kMaxPoolGrad, {&x, &g}, g.dtype(), x.shape(), a, where);
}

Tensor max_pool_derivative(const DerivativeArgs& d, int) {
  return put(d.inputs[0], d.g, std::get<PoolAttrs>(d.attrs), d.output.node().where);
}
// Where the maxima are does not change with x: no gradient goes there.
Tensor max_pool_grad_derivative(const DerivativeArgs& d, int which) {
  return which == 0 ? Tensor() : pick(d.inputs[0], d.g, std::get<PoolAttrs>(d.attrs), d.output.node().where);
}
Tensor max_pool_pick_derivative(const DerivativeArgs& d, int which) {
  return which == 0 ? Tensor() : put(d.inputs[0], d.g, std::get<PoolAttrs>(d.attrs), d.output.node().where);
}

Tensor avg_pool_of(const Tensor& x, const PoolAttrs& a, std::source_location where) {
  const Shape shape{x.shape()[0], a.count[0], a.count[1], x.shape()[3]};
  return record(kAvgPool, {&x}, x.dtype(), shape, a, where);
}
Tensor avg_pool_derivative(const DerivativeArgs& d, int) {
  const Tensor& x = d.inputs[0];
  return record(kAvgPoolGrad, {&d.g}, x.dtype(), x.shape(), d.attrs, d.output.node().where);
}
Tensor avg_pool_grad_derivative(const DerivativeArgs& d, int) {
  return avg_pool_of(d.g, std::get<PoolAttrs>(d.attrs), d.output.node().where);
}

// One operation an entry of a window.
double pool_flops(std::span<const Shape> inputs, const Shape& output, const Attrs& attrs) {
  const auto& a = std::get<PoolAttrs>(attrs);
  const Shape& any = inputs[0].numel() > output.numel() ? inputs[0] : output;
  double entries[2] = {0, 0};
  for (int i = 0; i < 2; ++i)
    for (int64_t w = 0; w < a.count[i]; ++w) {
      const PoolWindow window = pool_window(a, i, w);
      entries[i] += static_cast<double>((window.end - window.begin + window.step - 1) / window.step);
    }
  return static_cast<double>(any[0] * any[3]) * entries[0] * entries[1];
}

struct Windows {
  Pair kernel;
  std::optional<Pair> stride;
  Pair padding, dilation;
  bool ceil_mode, count_padding;
};

void require_images(const char* op, At x) {
  if (x.tensor.rank() != 4)
    fail(ErrorKind::shape, "[", op, "] needs [N, C, H, W]; got ", x.tensor.shape(), call_site(x.where));
  if (x.tensor.dtype() == DType::boolean)
    fail(ErrorKind::dtype, "[", op, "] needs numbers; got bool", call_site(x.where));
}

PoolAttrs attrs_of(const char* op, At at, const Windows& w) {
  require_images(op, at);
  const Shape& x = at.tensor.shape();
  PoolAttrs a{.size = {x[2], x[3]},
              .kernel = w.kernel.array(),
              .stride = w.stride.value_or(w.kernel).array(),
              .before = w.padding.array(),
              .after = w.padding.array(),
              .dilation = w.dilation.array(),
              .count_padding = w.count_padding};
  check_pair(op, "the kernel", a.kernel, 1, at.where);
  check_pair(op, "the stride", a.stride, 1, at.where);
  check_pair(op, "the padding", a.before, 0, at.where);
  check_pair(op, "the dilation", a.dilation, 1, at.where);
  for (int i = 0; i < 2; ++i) {
    const int64_t extent = a.dilation[i] * (a.kernel[i] - 1) + 1, room = a.size[i] + 2 * a.before[i] - extent;
    if (2 * a.before[i] > extent)
      fail(ErrorKind::value, "[", op, "] the padding may be half of the window's ", extent, " entries; got ",
           a.before[i], call_site(at.where));
    if (room < 0)
      fail(ErrorKind::value, "[", op, "] a window that spans ", extent, " entries does not fit into ",
           a.size[i] + 2 * a.before[i], i == 0 ? " padded rows" : " padded columns", "; got ", x, call_site(at.where));
    a.count[i] = (w.ceil_mode ? room + a.stride[i] - 1 : room) / a.stride[i] + 1;
    // Every window begins inside the image or the padding before it.
    if (w.ceil_mode && (a.count[i] - 1) * a.stride[i] >= a.size[i] + a.before[i]) --a.count[i];
  }
  return a;
}

PoolAttrs adaptive_attrs(const char* op, At at, Pair size) {
  require_images(op, at);
  const Shape& x = at.tensor.shape();
  PoolAttrs a{.size = {x[2], x[3]}, .count = size.array(), .adaptive = true};
  check_pair(op, "the output size", a.count, 1, at.where);
  if (a.size[0] < 1 || a.size[1] < 1)
    fail(ErrorKind::shape, "[", op, "] an image has no entries; got ", x, call_site(at.where));
  return a;
}

Tensor max_pool(At at, const PoolAttrs& a) {
  const Tensor x = channels_last(at);
  const Shape shape{x.shape()[0], a.count[0], a.count[1], x.shape()[3]};
  const Tensor y = record(kMaxPool, {&x}, x.dtype(), shape, a, at.where);
  return channels_first(At(y, at.where));
}

Tensor avg_pool(const char* op, At at, const PoolAttrs& a) {
  if (!is_float(at.tensor.dtype()))
    fail(ErrorKind::dtype, "[", op, "] needs floating point; got ", name_of(at.tensor.dtype()), call_site(at.where));
  const Tensor y = avg_pool_of(channels_last(at), a, at.where);
  return channels_first(At(y, at.where));
}

PoolAttrs max_attrs(At x, const MaxPool2dOptions& o) {
  return attrs_of("max_pool2d", x, {o.kernel, o.stride, o.padding, o.dilation, o.ceil_mode, false});
}

// Along the axis of [N, C, L].
template <class Fn>
Tensor along_line(const char* op, At x, Fn&& pool) {
  if (x.tensor.rank() != 3)
    fail(ErrorKind::shape, "[", op, "] needs [N, C, L]; got ", x.tensor.shape(), call_site(x.where));
  const Tensor rows = unsqueeze(x, 2);
  const Tensor y = pool(At(rows, x.where));
  return squeeze(At(y, x.where), 2);
}

std::optional<Pair> line_stride(std::optional<int64_t> stride) {
  return stride ? std::optional(Pair(1, *stride)) : std::nullopt;
}

}  // namespace

PoolWindow pool_window(const PoolAttrs& a, int axis, int64_t i) {
  const int64_t size = a.size[axis], count = a.count[axis];
  if (a.adaptive) {
    const int64_t begin = i * size / count, end = ((i + 1) * size + count - 1) / count;
    return {begin, end, 1, end - begin};
  }
  const int64_t first = i * a.stride[axis] - a.before[axis], step = a.dilation[axis];
  const int64_t begin = first < 0 ? first + (-first + step - 1) / step * step : first;
  const int64_t end = std::min(size, first + step * (a.kernel[axis] - 1) + 1);
  const int64_t inside = std::max<int64_t>(0, (end - begin + step - 1) / step);
  return {begin, end, step, a.count_padding ? std::min(first + a.kernel[axis], size + a.after[axis]) - first : inside};
}

Tensor max_pool2d(At x, const MaxPool2dOptions& o) { return max_pool(x, max_attrs(x, o)); }

ValuesAndIndices max_pool2d_with_indices(At at, const MaxPool2dOptions& o) {
  const PoolAttrs a = max_attrs(at, o);
  const Tensor x = channels_last(At(at.tensor.detach(), at.where));
  const int64_t h = a.size[0], w = a.size[1];
  const Tensor place = reshape(arange(0, static_cast<double>(h * w), 1, {DType::i64, x.device()}), {1, h, w, 1});
  return {max_pool(at, a), channels_first(pick(x, expand(place, x.shape()), a, at.where))};
}

Tensor avg_pool2d(At x, const AvgPool2dOptions& o) {
  return avg_pool("avg_pool2d", x,
                  attrs_of("avg_pool2d", x, {o.kernel, o.stride, o.padding, 1, o.ceil_mode, o.count_include_pad}));
}

Tensor adaptive_avg_pool2d(At x, Pair size) {
  return avg_pool("adaptive_avg_pool2d", x, adaptive_attrs("adaptive_avg_pool2d", x, size));
}
Tensor adaptive_max_pool2d(At x, Pair size) { return max_pool(x, adaptive_attrs("adaptive_max_pool2d", x, size)); }

Tensor max_pool1d(At at, const MaxPool1dOptions& o) {
  return along_line("max_pool1d", at, [&](At x) {
    return max_pool2d(x, {.kernel = {1, o.kernel},
                          .stride = line_stride(o.stride),
                          .padding = {0, o.padding},
                          .dilation = {1, o.dilation},
                          .ceil_mode = o.ceil_mode});
  });
}
Tensor avg_pool1d(At at, const AvgPool1dOptions& o) {
  return along_line("avg_pool1d", at, [&](At x) {
    return avg_pool2d(x, {.kernel = {1, o.kernel},
                          .stride = line_stride(o.stride),
                          .padding = {0, o.padding},
                          .ceil_mode = o.ceil_mode,
                          .count_include_pad = o.count_include_pad});
  });
}
Tensor adaptive_avg_pool1d(At at, int64_t size) {
  return along_line("adaptive_avg_pool1d", at, [&](At x) { return adaptive_avg_pool2d(x, {1, size}); });
}
Tensor adaptive_max_pool1d(At at, int64_t size) {
  return along_line("adaptive_max_pool1d", at, [&](At x) { return adaptive_max_pool2d(x, {1, size}); });
}

const OpDef kMaxPool(OpFacts{
    .name = "max_pool", .kind = OpKind::producer, .derivative = max_pool_derivative, .flops = pool_flops});
const OpDef kMaxPoolGrad(OpFacts{
    .name = "max_pool_grad", .kind = OpKind::producer, .derivative = max_pool_grad_derivative, .flops = pool_flops});
const OpDef kMaxPoolPick(OpFacts{
    .name = "max_pool_pick", .kind = OpKind::producer, .derivative = max_pool_pick_derivative, .flops = pool_flops});
const OpDef kAvgPool(OpFacts{
    .name = "avg_pool", .kind = OpKind::producer, .derivative = avg_pool_derivative, .flops = pool_flops});
const OpDef kAvgPoolGrad(OpFacts{
    .name = "avg_pool_grad", .kind = OpKind::producer, .derivative = avg_pool_grad_derivative, .flops = pool_flops});

}  // namespace outrace
