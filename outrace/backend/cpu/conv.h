// What the CPU's kernels of convolution share: the sizes, and how a call runs image after image.
#pragma once
#include "outrace/backend/cpu/kernel_rows.h"
#include "outrace/backend/cpu/tile.h"
#include "outrace/core/aligned.h"

namespace outrace::cpu {

// y [images, oh, ow, o] = conv(x [images, h, w, c], weight [o, c / groups, kernel]); arrays: {H, W}.
struct ConvShape {
  int64_t images, h, w, c, oh, ow, o, groups;
  std::array<int64_t, 2> kernel, stride, dilation, before, after;

  int64_t x_image() const { return h * w * c; }
  int64_t y_image() const { return oh * ow * o; }
  int64_t taps() const { return kernel[0] * kernel[1]; }
  int64_t weights() const { return o * (c / groups) * taps(); }
  double flops() const { return 2.0 * static_cast<double>(images * oh * ow) * static_cast<double>(weights()); }
};

// Of any of the three ops.
ConvShape conv_shape(const Call& call);

// Why kernels of convolution cannot take the call whatever its sizes; null if they can.
const char* conv_why_not(const Call& call);

// conv or conv_input_grad: images and weights to images. What follows runs over a few images at a time, while they are
// in cache.
class ImageConv : public ResolvedCall {
 public:
  ImageConv(const Call& call, const Plan& plan);
  void run(const Frame& frame) final;
  std::string detail() const override { return tail_ ? tail_->description() : ""; }

 protected:
  // Called at the start of each run.
  virtual void read_weights(const void* weights) = 0;
  // at_once() images.
  virtual void compute(const void* images, void* out) = 0;
  // Divides the images of the call.
  int64_t at_once() const { return at_once_; }

  const ConvShape shape_;
  const bool backward_;  // conv_input_grad: reads images like y, makes images like x

 private:
  Place images_, weights_, out_;
  int64_t image_bytes_, out_bytes_, at_once_;
  std::unique_ptr<TileKernel> tail_;
  AlignedArray<char> scratch_;  // the result, where only the tail sees it
};

// conv_weight_grad: the sum over all images, then what follows.
class WeightGradConv : public ResolvedCall {
 public:
  WeightGradConv(const Call& call, const Plan& plan);
  void run(const Frame& frame) final;
  std::string detail() const override { return tail_ ? tail_->description() : ""; }

 protected:
  virtual void compute(const void* x, const void* g, void* out) = 0;

  const ConvShape shape_;

 private:
  Place x_, g_, out_;
  int64_t value_bytes_;
  std::unique_ptr<TileKernel> tail_;
  AlignedArray<char> scratch_;
};

// Elements that what follows a kernel takes at a time, some 20 us.
constexpr int64_t kTailTask = 64 << 10;
// The tail over elements [first, first + count) of its space, whose producer's values begin at `values`.
void run_tail_over(const TileKernel& tail, const Frame& frame, const void* values, int64_t first, int64_t count,
                   int64_t value_bytes);

// Rows of the families that stand in files of their own.
const char* im2col_why_not(const Call& call, const Plan& plan);
std::unique_ptr<ResolvedCall> make_im2col(const Call& call, const Plan& plan);
const char* onednn_conv_why_not(const Call& call, const Plan& plan);
std::unique_ptr<ResolvedCall> make_onednn_conv(const Call& call, const Plan& plan);

}  // namespace outrace::cpu
