// Convolution as a product with the windows of an image (im2col): any sizes, f32 and f64; bf16 and f16 computed in f32.
#include <algorithm>
#include <cstring>

#include "outrace/backend/cpu/conv.h"
#include "outrace/backend/cpu/convert.h"
#include "outrace/backend/cpu/gemm.h"
#include "outrace/core/thread.h"

namespace outrace::cpu {
namespace {

// Calls fn(position, tap, entry) for the taps of one row of outputs that lie inside the image: `entry` is that of x.
template <class Fn>
void each_tap(const ConvShape& s, int64_t row, Fn&& fn) {
  for (int64_t r = 0; r < s.kernel[0]; ++r) {
    const int64_t y = row * s.stride[0] - s.before[0] + r * s.dilation[0];
    if (y < 0 || y >= s.h) continue;
    for (int64_t column = 0; column < s.ow; ++column)
      for (int64_t q = 0; q < s.kernel[1]; ++q) {
        const int64_t x = column * s.stride[1] - s.before[1] + q * s.dilation[1];
        if (x >= 0 && x < s.w) fn(column, r * s.kernel[1] + q, y * s.w + x);
      }
  }
}

// Of one image and group: [positions, taps, channels of the group].
template <class T>
void windows_of(const ConvShape& s, const T* image, int64_t group, T* out) {
  const int64_t channels = s.c / s.groups, width = s.taps() * channels;
  parallel_for(s.oh, [&](int64_t row) {
    T* at = out + row * s.ow * width;
    std::fill_n(at, s.ow * width, T(0));
    each_tap(s, row, [&](int64_t column, int64_t tap, int64_t entry) {
      std::copy_n(image + entry * s.c + group * channels, channels, at + column * width + tap * channels);
    });
  });
}

// The adjoint: windows added into the image. Rows of outputs share rows of the image, so one thread takes a range of
// channels.
template <class T>
void add_windows(const ConvShape& s, const T* windows, int64_t group, T* image) {
  const int64_t channels = s.c / s.groups, width = s.taps() * channels, each = 16;
  parallel_for(ceil_div(channels, each), [&](int64_t task) {
    const int64_t first = task * each, count = std::min(each, channels - first);
    for (int64_t row = 0; row < s.oh; ++row)
      each_tap(s, row, [&](int64_t column, int64_t tap, int64_t entry) {
        const T* from = windows + (row * s.ow + column) * width + tap * channels + first;
        T* to = image + entry * s.c + group * channels + first;
        for (int64_t i = 0; i < count; ++i) to[i] += from[i];
      });
  });
}

// [o, c, taps] as [o, taps, c], the order of windows, and back.
template <class T>
void taps_first(const ConvShape& s, const T* from, T* to) {
  const int64_t channels = s.c / s.groups;
  for (int64_t o = 0; o < s.o; ++o)
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t t = 0; t < s.taps(); ++t)
        to[(o * s.taps() + t) * channels + c] = from[(o * channels + c) * s.taps() + t];
}
template <class T>
void taps_last(const ConvShape& s, const T* from, T* to) {
  const int64_t channels = s.c / s.groups;
  for (int64_t o = 0; o < s.o; ++o)
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t t = 0; t < s.taps(); ++t)
        to[(o * channels + c) * s.taps() + t] = from[(o * s.taps() + t) * channels + c];
}

// Arrays in T: themselves, or 16-bit ones widened.
template <class T>
class Wide {
 public:
  Wide(DType dtype, int64_t count) : dtype_(dtype), count_(count) {
    if (dtype != dtype_of<T>()) memory_ = aligned_array<T>(count);
  }
  const T* read(const void* from) {
    if (!memory_) return static_cast<const T*>(from);
    if constexpr (std::is_same_v<T, float>) widen_to_f32(dtype_, from, memory_.get(), count_);
    return memory_.get();
  }
  T* place(void* to) { return memory_ ? memory_.get() : static_cast<T*>(to); }
  void write(void* to) {
    if (!memory_) return;
    if constexpr (std::is_same_v<T, float>) narrow_from_f32(dtype_, memory_.get(), to, count_);
  }

 private:
  DType dtype_;
  int64_t count_;
  AlignedArray<T> memory_;
};

// The arrays that one image and group needs.
template <class T>
struct Parts {
  explicit Parts(const ConvShape& s)
      : weights(aligned_array<T>(s.weights())),
        windows(aligned_array<T>(s.oh * s.ow * s.taps() * (s.c / s.groups))),
        product(aligned_array<T>(std::max(s.y_image() / s.groups, s.weights() / s.groups))) {}
  AlignedArray<T> weights, windows, product;
};

template <class T>
class Im2colConv final : public ImageConv {
 public:
  Im2colConv(const Call& call, const Plan& plan)
      : ImageConv(call, plan),
        parts_(shape_),
        source_(call.dtype, backward_ ? shape_.y_image() : shape_.x_image()),
        result_(call.dtype, backward_ ? shape_.x_image() : shape_.y_image()),
        weights_(call.dtype, shape_.weights()),
        bytes_(size_of(call.dtype)) {}

 protected:
  void read_weights(const void* weights) override { taps_first(shape_, weights_.read(weights), parts_.weights.get()); }

  void compute(const void* images, void* out) override {
    const int64_t from = backward_ ? shape_.y_image() : shape_.x_image(),
                  to = backward_ ? shape_.x_image() : shape_.y_image();
    for (int64_t i = 0; i < at_once(); ++i) {
      char* at = static_cast<char*>(out) + i * to * bytes_;
      const T* image = source_.read(static_cast<const char*>(images) + i * from * bytes_);
      T* result = result_.place(at);
      if (backward_)
        input_grad(image, result);
      else
        forward(image, result);
      result_.write(at);
    }
  }

 private:
  void forward(const T* x, T* y) {
    const ConvShape& s = shape_;
    const int64_t outputs = s.o / s.groups, positions = s.oh * s.ow, k = s.taps() * (s.c / s.groups);
    for (int64_t g = 0; g < s.groups; ++g) {
      windows_of(s, x, g, parts_.windows.get());
      GemmCall<T> call{.m = positions, .n = outputs, .k = k};
      call.a_row = k;
      call.a_col = 1;
      call.b_row = 1;
      call.b_col = k;
      T* product = s.groups == 1 ? y : parts_.product.get();
      gemm(call, {parts_.windows.get(), parts_.weights.get() + g * outputs * k, product, nullptr});
      if (s.groups > 1)
        for (int64_t p = 0; p < positions; ++p) std::copy_n(product + p * outputs, outputs, y + p * s.o + g * outputs);
    }
  }

  void input_grad(const T* y, T* x) {
    const ConvShape& s = shape_;
    const int64_t outputs = s.o / s.groups, positions = s.oh * s.ow, k = s.taps() * (s.c / s.groups);
    std::fill_n(x, s.x_image(), T(0));
    for (int64_t g = 0; g < s.groups; ++g) {
      GemmCall<T> call{.m = positions, .n = k, .k = outputs};
      call.a_row = s.o;
      call.a_col = 1;
      call.b_row = k;
      call.b_col = 1;
      gemm(call, {y + g * outputs, parts_.weights.get() + g * outputs * k, parts_.windows.get(), nullptr});
      add_windows(s, parts_.windows.get(), g, x);
    }
  }

  Parts<T> parts_;
  Wide<T> source_, result_, weights_;
  int64_t bytes_;
};

template <class T>
class Im2colWeightGrad final : public WeightGradConv {
 public:
  Im2colWeightGrad(const Call& call, const Plan& plan)
      : WeightGradConv(call, plan),
        parts_(shape_),
        x_(call.dtype, shape_.x_image()),
        g_(call.dtype, shape_.y_image()),
        result_(call.dtype, shape_.weights()),
        bytes_(size_of(call.dtype)) {}

 protected:
  void compute(const void* x, const void* g, void* out) override {
    const ConvShape& s = shape_;
    const int64_t outputs = s.o / s.groups, k = s.taps() * (s.c / s.groups);
    T* sums = parts_.weights.get();
    std::fill_n(sums, s.weights(), T(0));
    for (int64_t i = 0; i < s.images; ++i) {
      const T* image = x_.read(static_cast<const char*>(x) + i * s.x_image() * bytes_);
      const T* upstream = g_.read(static_cast<const char*>(g) + i * s.y_image() * bytes_);
      for (int64_t group = 0; group < s.groups; ++group) {
        windows_of(s, image, group, parts_.windows.get());
        GemmCall<T> call{.m = outputs, .n = k, .k = s.oh * s.ow};
        call.a_row = 1;
        call.a_col = s.o;
        call.b_row = k;
        call.b_col = 1;
        gemm(call, {upstream + group * outputs, parts_.windows.get(), parts_.product.get(), nullptr});
        T* to = sums + group * outputs * k;
        for (int64_t j = 0; j < outputs * k; ++j) to[j] += parts_.product[j];
      }
    }
    taps_last(s, sums, result_.place(out));
    result_.write(out);
  }

 private:
  Parts<T> parts_;
  Wide<T> x_, g_, result_;
  int64_t bytes_;
};

template <class T>
std::unique_ptr<ResolvedCall> make_of(const Call& call, const Plan& plan) {
  if (call.op == &kConvWeightGrad) return std::make_unique<Im2colWeightGrad<T>>(call, plan);
  return std::make_unique<Im2colConv<T>>(call, plan);
}

}  // namespace

const char* im2col_why_not(const Call& call, const Plan&) { return conv_why_not(call); }

std::unique_ptr<ResolvedCall> make_im2col(const Call& call, const Plan& plan) {
  return call.dtype == DType::f64 ? make_of<double>(call, plan) : make_of<float>(call, plan);
}

}  // namespace outrace::cpu
