// Initial values: functions that make them, and in `init` the forms under PyTorch's names that fill a tensor in place.
// Random ones draw from manual_seed()'s sequence.
#pragma once
#include "outrace/graph/tensor.h"

namespace outrace::nn {

// Uniform in +-bound with bound = gain * sqrt(3 / fan_in), gain = sqrt(2 / (1 + a^2)) (He et al., ICCV 2015).
// a = sqrt(5) is what torch.nn.Linear uses: bound = 1 / sqrt(fan_in).
Tensor kaiming_uniform(const Shape& shape, int64_t fan_in, CreateOptions options = {}, double a = std::sqrt(5.0));

// Uniform in +-1/sqrt(fan_in): biases.
Tensor fan_in_uniform(const Shape& shape, int64_t fan_in, CreateOptions options = {});

enum class Nonlinearity : uint8_t { linear, conv, sigmoid, tanh, relu, leaky_relu, selu };

// The factor by which weights before a nonlinearity are scaled, PyTorch's table: linear, conv, sigmoid 1; tanh 5/3;
// relu sqrt(2); leaky_relu sqrt(2 / (1 + slope^2)); selu 3/4.
double calculate_gain(Nonlinearity nonlinearity, double negative_slope = 0.01);

struct Fans {
  int64_t in, out;
};
// Of a weight [out, in, ...kernel]: in and out times the kernel's size. Throws Error(shape) below two axes.
Fans calculate_fan_in_and_fan_out(const Shape& shape);

enum class FanMode : uint8_t { fan_in, fan_out };
struct KaimingOptions {
  double a = 0;  // the slope of leaky_relu
  FanMode mode = FanMode::fan_in;
  Nonlinearity nonlinearity = Nonlinearity::leaky_relu;
};

// Glorot and Bengio, AISTATS 2010: uniform in +-gain * sqrt(6 / (fan_in + fan_out)); normal with deviation
// gain * sqrt(2 / (fan_in + fan_out)).
Tensor xavier_uniform(const Shape& shape, double gain = 1, CreateOptions options = {});
Tensor xavier_normal(const Shape& shape, double gain = 1, CreateOptions options = {});
// He et al., ICCV 2015: uniform in +-gain * sqrt(3 / fan); normal with deviation gain / sqrt(fan).
Tensor kaiming_uniform(const Shape& shape, const KaimingOptions& kaiming, CreateOptions options = {});
Tensor kaiming_normal(const Shape& shape, const KaimingOptions& kaiming = {}, CreateOptions options = {});
// gain * Q, [rows, all other axes] with orthonormal rows or, if there are more rows than columns, columns (Saxe et al.,
// ICLR 2014). Gram-Schmidt twice, in f64 on the host: rows * columns * min(rows, columns) * 4 multiplications.
Tensor orthogonal(const Shape& shape, double gain = 1, CreateOptions options = {});
// A normal variable on condition that it lies in [low, high] (absolute bounds, as PyTorch's).
Tensor trunc_normal(const Shape& shape, double mean = 0, double deviation = 1, double low = -2, double high = 2,
                    CreateOptions options = {});
// Of a convolution's weight [out, in, ...kernel]: passes input channel c of each group on as its output channel c.
// Throws Error(value) unless groups divides out.
Tensor dirac(const Shape& shape, int64_t groups = 1, CreateOptions options = {});

// In place, whatever the tensor's history: the new value has the tensor's shape, dtype and device. Returns it.
namespace init {
Tensor uniform_(Tensor t, double low = 0, double high = 1);
Tensor normal_(Tensor t, double mean = 0, double deviation = 1);
Tensor constant_(Tensor t, double value);
Tensor zeros_(Tensor t);
Tensor ones_(Tensor t);
Tensor eye_(Tensor t);
Tensor dirac_(Tensor t, int64_t groups = 1);
Tensor xavier_uniform_(Tensor t, double gain = 1);
Tensor xavier_normal_(Tensor t, double gain = 1);
Tensor kaiming_uniform_(Tensor t, const KaimingOptions& kaiming = {});
Tensor kaiming_normal_(Tensor t, const KaimingOptions& kaiming = {});
Tensor orthogonal_(Tensor t, double gain = 1);
Tensor trunc_normal_(Tensor t, double mean = 0, double deviation = 1, double low = -2, double high = 2);
}  // namespace init

}  // namespace outrace::nn
