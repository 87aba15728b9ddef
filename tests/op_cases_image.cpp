// Cases of convolution and pooling.
#include "op_cases.h"
#include "outrace/graph/autograd.h"
#include "outrace/graph/recorder.h"

namespace outrace {
namespace {

using Args = std::span<const Tensor>;

void add_convolutions(std::vector<OpCase>& out) {
  const auto conv = [&](const char* name, const Shape& x, const Shape& w, const Conv2dOptions& o) {
    const double terms = static_cast<double>(w.numel() / w[0]);
    out.push_back({"conv", name, {x, w}, -2, 2, [o](Args a) { return conv2d(a[0], a[1], {}, o); }, 8 * terms});
  };
  conv("conv2d", {2, 3, 5, 6}, {4, 3, 3, 2}, {});
  conv("conv2d of one entry", {2, 5, 3, 4}, {7, 5, 1, 1}, {});
  conv("conv2d with padding and stride", {1, 4, 7, 8}, {3, 4, 3, 3}, {.stride = {2, 3}, .padding = {1, 2}});
  conv("conv2d that leaves entries out", {1, 2, 6, 7}, {2, 2, 1, 1}, {.stride = {2, 4}});
  conv("conv2d with unlike sides", {1, 2, 5, 5}, {3, 2, 3, 4}, {.padding = {2, 0, 1, 3}});
  conv("conv2d same", {1, 3, 5, 6}, {2, 3, 4, 3}, {.stride = 2, .padding = Padding::same()});
  conv("conv2d dilated", {1, 2, 7, 7}, {2, 2, 3, 2}, {.padding = 2, .dilation = {2, 3}});
  conv("conv2d in groups", {2, 6, 4, 4}, {4, 3, 3, 3}, {.padding = 1, .groups = 2});
  conv("conv2d depthwise", {2, 5, 6, 5}, {5, 1, 3, 3}, {.stride = 2, .padding = 1, .groups = 5});
  conv("conv2d of 3 x 3 with many channels", {2, 16, 9, 6}, {32, 16, 3, 3}, {.padding = 1});
  out.push_back({"conv",
                 "conv2d with bias and relu",
                 {{2, 4, 5, 5}, {8, 4, 3, 3}, {8}},
                 -2,
                 2,
                 [](Args a) { return relu(conv2d(a[0], a[1], a[2], {.padding = 1})); },
                 8 * 40});
  out.push_back({"conv",
                 "conv1d",
                 {{2, 3, 9}, {4, 3, 3}, {4}},
                 -2,
                 2,
                 [](Args a) { return conv1d(a[0], a[1], a[2], {.stride = 2, .padding = 1, .dilation = 2}); },
                 8 * 12});
  out.push_back(
      {"conv_input_grad",
       "conv_transpose2d",
       {{2, 4, 3, 4}, {4, 3, 3, 2}, {6}},
       -2,
       2,
       [](Args a) {
         return conv_transpose2d(a[0], a[1], a[2], {.stride = {2, 3}, .padding = 1, .output_padding = 1, .groups = 2});
       },
       8 * 24});
  out.push_back({"conv_input_grad",
                 "conv_transpose1d",
                 {{1, 3, 5}, {3, 2, 4}},
                 -2,
                 2,
                 [](Args a) { return conv_transpose1d(a[0], a[1], {}, {.stride = 2, .dilation = 2}); },
                 8 * 12});
  out.push_back({"conv_weight_grad",
                 "gradient of a weight as a value",
                 {{2, 4, 5, 4}, {6, 2, 3, 3}},
                 -1,
                 1,
                 [](Args a) {
                   const Tensor w = a[1].requires_grad() ? a[1] : a[1].detach().requires_grad_();
                   const Tensor y = conv2d(a[0], w, {}, {.stride = 2, .padding = 1, .groups = 2});
                   return grad(sum(y * y), {w}, {.create_graph = true})[0];
                 },
                 8 * 400});
}

void add_pooling(std::vector<OpCase>& out) {
  const auto add = [&](const char* op, const char* name, const Shape& x, std::function<Tensor(const Tensor&)> fn,
                       bool integers) {
    out.push_back({op, name, {x}, -9, 9, [fn](Args a) { return fn(a[0]); }, 32, integers});
  };
  add(
      "max_pool", "max_pool2d", {2, 3, 6, 7}, [](const Tensor& x) { return max_pool2d(x, {.kernel = 2}); }, true);
  add(
      "max_pool", "max_pool2d overlapping", {2, 3, 6, 7},
      [](const Tensor& x) {
        return max_pool2d(x, {.kernel = {3, 2}, .stride = Pair(2, 1), .padding = {1, 0}, .dilation = {1, 2}});
      },
      true);
  add(
      "max_pool", "max_pool2d with ceil_mode", {1, 2, 8, 10},
      [](const Tensor& x) { return max_pool2d(x, {.kernel = 3, .stride = Pair(4), .ceil_mode = true}); }, true);
  add(
      "max_pool", "adaptive_max_pool2d", {1, 2, 7, 5},
      [](const Tensor& x) {
        return adaptive_max_pool2d(x, {3, 4});
      },
      true);
  add(
      "max_pool", "max_pool1d", {2, 3, 9}, [](const Tensor& x) { return max_pool1d(x, {.kernel = 3, .padding = 1}); },
      true);
  add(
      "avg_pool", "avg_pool2d", {2, 3, 6, 7}, [](const Tensor& x) { return avg_pool2d(x, {.kernel = 2}); }, false);
  add(
      "avg_pool", "avg_pool2d with padding", {1, 3, 7, 6},
      [](const Tensor& x) {
        return avg_pool2d(x, {.kernel = 3, .stride = Pair(2, 3), .padding = 1, .ceil_mode = true});
      },
      false);
  add(
      "avg_pool", "avg_pool2d of real entries", {1, 3, 7, 6},
      [](const Tensor& x) {
        return avg_pool2d(x, {.kernel = 3, .stride = Pair(2), .padding = 1, .count_include_pad = false});
      },
      false);
  add(
      "avg_pool", "adaptive_avg_pool2d", {1, 2, 7, 5},
      [](const Tensor& x) {
        return adaptive_avg_pool2d(x, {3, 4});
      },
      false);
  add(
      "avg_pool", "avg_pool1d", {2, 3, 9}, [](const Tensor& x) { return avg_pool1d(x, {.kernel = 2}); }, false);
  // As a sum of squares, so that second derivatives are there.
  out.push_back({"max_pool_pick",
                 "gradient of max_pool2d as a value",
                 {{1, 2, 5, 5}},
                 -2,
                 2,
                 [](Args a) {
                   const Tensor y = max_pool2d(a[0], {.kernel = 3, .stride = Pair(2)});
                   return y * y * y;
                 },
                 32});
  const auto attrs = [](int64_t size, int64_t count, int64_t stride) {
    return PoolAttrs{.size = {size, size},
                     .count = {count, count},
                     .kernel = {3, 3},
                     .stride = {stride, stride},
                     .before = {1, 1},
                     .after = {1, 1},
                     .dilation = {1, 1}};
  };
  for (const int64_t stride : {1, 2}) {
    const int64_t count = (5 - 1) / stride + 1;
    const Shape x{2, 5, 5, 3}, y{2, count, count, 3};
    out.push_back({"max_pool_grad",
                   cat("max_pool_grad at stride ", stride),
                   {x, y},
                   -3,
                   3,
                   [=](Args a) {
                     return record(kMaxPoolGrad, {&a[0], &a[1]}, a[1].dtype(), x, attrs(5, count, stride),
                                   std::source_location::current());
                   },
                   16});
    out.push_back({"avg_pool_grad",
                   cat("avg_pool_grad at stride ", stride),
                   {y},
                   -3,
                   3,
                   [=](Args a) {
                     return record(kAvgPoolGrad, {&a[0]}, a[0].dtype(), x, attrs(5, count, stride),
                                   std::source_location::current());
                   },
                   16});
  }
}

}  // namespace

void add_image_cases(std::vector<OpCase>& out) {
  add_convolutions(out);
  add_pooling(out);
}

}  // namespace outrace
