#include "outrace/backend/cpu/conv.h"

#include <algorithm>

#include "outrace/core/error.h"
#include "outrace/core/thread.h"

namespace outrace::cpu {
namespace {

// Images that what follows finds in cache: in L2 and L3 beside what the convolution itself reads.
constexpr int64_t kHotBytes = 4 << 20;

int64_t images_at_once(int64_t images, int64_t bytes, bool followed) {
  if (!followed || images == 0) return std::max<int64_t>(1, images);
  int64_t count = std::clamp<int64_t>(kHotBytes / std::max<int64_t>(1, bytes), 1, images);
  while (images % count != 0) --count;
  return count;
}

std::unique_ptr<TileKernel> compile_tail(const Call& call) {
  return call.epilogue.empty() ? nullptr : TileKernel::compile(call.epilogue);
}

}  // namespace

ConvShape conv_shape(const Call& call) {
  const auto& a = std::get<ConvAttrs>(call.attrs);
  const bool to_x = call.op == &kConvInputGrad, to_w = call.op == &kConvWeightGrad;
  const Shape& y = to_x ? call.operand_shapes[0] : to_w ? call.operand_shapes[1] : call.shape;
  const Shape& x = to_x ? call.shape : call.operand_shapes[0];
  return {.images = x[0],
          .h = x[1],
          .w = x[2],
          .c = x[3],
          .oh = y[1],
          .ow = y[2],
          .o = y[3],
          .groups = a.groups,
          .kernel = a.kernel,
          .stride = a.stride,
          .dilation = a.dilation,
          .before = a.before,
          .after = a.after};
}

const char* conv_why_not(const Call& call) {
  if (call.operands.size() != 2) return "an operand is a scalar without memory";
  for (const View& v : call.operands)
    if (v.value < 0) return "an operand is a scalar without memory";
  return nullptr;
}

void run_tail_over(const TileKernel& tail, const Frame& frame, const void* values, int64_t first, int64_t count,
                   int64_t value_bytes) {
  parallel_for(ceil_div(count, kTailTask), [&](int64_t task) {
    const int64_t at = task * kTailTask;
    tail.run(frame.values, frame.scalars, static_cast<const char*>(values) + at * value_bytes, first + at,
             std::min(kTailTask, count - at));
  });
}

ImageConv::ImageConv(const Call& call, const Plan& plan)
    : shape_(conv_shape(call)),
      backward_(call.op == &kConvInputGrad),
      images_(Place::of(call.operands[0], plan)),
      weights_(Place::of(call.operands[1], plan)),
      out_{call.result, 0},
      image_bytes_((backward_ ? shape_.y_image() : shape_.x_image()) * size_of(stored(call.operands[0], plan))),
      out_bytes_((backward_ ? shape_.x_image() : shape_.y_image()) * size_of(call.dtype)),
      at_once_(images_at_once(shape_.images, out_bytes_, !call.epilogue.empty())),
      tail_(compile_tail(call)) {
  if (call.result < 0) scratch_ = aligned_array<char>(out_bytes_ * at_once_);
}

void ImageConv::run(const Frame& frame) {
  if (shape_.images == 0) return;
  read_weights(weights_.at(frame));
  const char* images = static_cast<const char*>(images_.at(frame));
  const int64_t elements = backward_ ? shape_.x_image() : shape_.y_image();
  for (int64_t first = 0; first < shape_.images; first += at_once_) {
    char* out = scratch_ ? scratch_.get() : static_cast<char*>(out_.at(frame)) + first * out_bytes_;
    compute(images + first * image_bytes_, out);
    if (tail_) run_tail_over(*tail_, frame, out, first * elements, at_once_ * elements, out_bytes_ / elements);
  }
}

WeightGradConv::WeightGradConv(const Call& call, const Plan& plan)
    : shape_(conv_shape(call)),
      x_(Place::of(call.operands[0], plan)),
      g_(Place::of(call.operands[1], plan)),
      out_{call.result, 0},
      value_bytes_(size_of(call.dtype)),
      tail_(compile_tail(call)) {
  if (call.result < 0) scratch_ = aligned_array<char>(shape_.weights() * value_bytes_);
}

void WeightGradConv::run(const Frame& frame) {
  char* out = scratch_ ? scratch_.get() : static_cast<char*>(out_.at(frame));
  compute(x_.at(frame), g_.at(frame), out);
  if (tail_) run_tail_over(*tail_, frame, out, 0, shape_.weights(), value_bytes_);
}

}  // namespace outrace::cpu
