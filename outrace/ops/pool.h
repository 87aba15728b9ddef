// Pooling: the largest or the mean entry of each window of an image. x: [N, C, H, W]; what a window's entries beyond
// the image are is said below.
#pragma once
#include <optional>

#include "outrace/ops/arg_reduce.h"
#include "outrace/ops/spatial.h"

namespace outrace {

struct MaxPool2dOptions {
  Pair kernel = 2;
  std::optional<Pair> stride = {};  // the kernel
  Pair padding = 0;                 // at most half the kernel; never the maximum
  Pair dilation = 1;
  bool ceil_mode = false;  // a last window that begins inside the image or the padding before it may end outside
};

// y: [N, C, OH, OW], OH = floor((H + 2 * padding - dilation * (kernel - 1) - 1) / stride) + 1 (ceil with ceil_mode, as
// PyTorch counts). Of equal entries the first gets the gradient; NaN is the maximum. Any dtype but bool. Throws
// Error(value) when a window does not fit.
Tensor max_pool2d(At x, const MaxPool2dOptions& options);
// And where each maximum is: i64, row * W + column in its image.
ValuesAndIndices max_pool2d_with_indices(At x, const MaxPool2dOptions& options);

struct AvgPool2dOptions {
  Pair kernel = 2;
  std::optional<Pair> stride = {};
  Pair padding = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;  // the mean counts padding as zeros; entries beyond the padding never count
};
Tensor avg_pool2d(At x, const AvgPool2dOptions& options);

// Windows such that the output is [N, C, size.h, size.w]: entries floor(i * H / OH) up to ceil((i + 1) * H / OH).
Tensor adaptive_avg_pool2d(At x, Pair size);
Tensor adaptive_max_pool2d(At x, Pair size);

// The same along the axis of x [N, C, L].
struct MaxPool1dOptions {
  int64_t kernel = 2;
  std::optional<int64_t> stride = {};
  int64_t padding = 0, dilation = 1;
  bool ceil_mode = false;
};
Tensor max_pool1d(At x, const MaxPool1dOptions& options);
struct AvgPool1dOptions {
  int64_t kernel = 2;
  std::optional<int64_t> stride = {};
  int64_t padding = 0;
  bool ceil_mode = false, count_include_pad = true;
};
Tensor avg_pool1d(At x, const AvgPool1dOptions& options);
Tensor adaptive_avg_pool1d(At x, int64_t size);
Tensor adaptive_max_pool1d(At x, int64_t size);

// The entries of x that window i of `axis` (0: H, 1: W) reads: begin, begin + step, ... below end; `divisor` is how
// many of them a mean counts.
struct PoolWindow {
  int64_t begin, end, step, divisor;
};
PoolWindow pool_window(const PoolAttrs& attrs, int axis, int64_t i);

}  // namespace outrace
