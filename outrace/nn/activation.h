// Activations as modules: the functions of ops/elementwise.h and ops/activation.h with their parameters.
#pragma once
#include "outrace/nn/module.h"
#include "outrace/ops/ops.h"

namespace outrace::nn {

#define OUTRACE_ACTIVATION(name, fn)                                    \
  class name : public Module {                                          \
   public:                                                              \
    Tensor forward(const Tensor& x) override { return outrace::fn(x); } \
  };
OUTRACE_ACTIVATION(ReLU, relu)
OUTRACE_ACTIVATION(ReLU6, relu6)
OUTRACE_ACTIVATION(Sigmoid, sigmoid)
OUTRACE_ACTIVATION(LogSigmoid, log_sigmoid)
OUTRACE_ACTIVATION(Tanh, tanh)
OUTRACE_ACTIVATION(Tanhshrink, tanhshrink)
OUTRACE_ACTIVATION(SiLU, silu)
OUTRACE_ACTIVATION(Mish, mish)
OUTRACE_ACTIVATION(SELU, selu)
OUTRACE_ACTIVATION(Hardsigmoid, hard_sigmoid)
OUTRACE_ACTIVATION(Hardswish, hard_swish)
OUTRACE_ACTIVATION(Softsign, softsign)
#undef OUTRACE_ACTIVATION

// With one parameter, in the order and with the default of the function.
#define OUTRACE_ACTIVATION_OF(name, fn, parameter, standard)                         \
  class name : public Module {                                                       \
   public:                                                                           \
    explicit name(double parameter = standard) : value_(parameter) {}                \
    Tensor forward(const Tensor& x) override { return outrace::fn(x, value_); }      \
    std::string arguments() const override { return cat(#parameter " = ", value_); } \
                                                                                     \
   private:                                                                          \
    double value_;                                                                   \
  };
OUTRACE_ACTIVATION_OF(LeakyReLU, leaky_relu, slope, 0.01)
OUTRACE_ACTIVATION_OF(ELU, elu, alpha, 1)
OUTRACE_ACTIVATION_OF(CELU, celu, alpha, 1)
OUTRACE_ACTIVATION_OF(Softshrink, softshrink, lambda, 0.5)
OUTRACE_ACTIVATION_OF(Hardshrink, hardshrink, lambda, 0.5)
#undef OUTRACE_ACTIVATION_OF

enum class GeluForm : uint8_t { erf, tanh };

// The exact form by default, or the tanh one (Hendrycks and Gimpel, 2016).
class GELU : public Module {
 public:
  explicit GELU(GeluForm form = GeluForm::erf) : form_(form) {}
  Tensor forward(const Tensor& x) override { return form_ == GeluForm::erf ? gelu(x) : gelu_tanh(x); }

 private:
  GeluForm form_;
};

class Softplus : public Module {
 public:
  explicit Softplus(double beta = 1, double threshold = 20) : beta_(beta), threshold_(threshold) {}
  Tensor forward(const Tensor& x) override { return softplus(x, beta_, threshold_); }

 private:
  double beta_, threshold_;
};

class Hardtanh : public Module {
 public:
  explicit Hardtanh(double low = -1, double high = 1) : low_(low), high_(high) {}
  Tensor forward(const Tensor& x) override { return hardtanh(x, low_, high_); }

 private:
  double low_, high_;
};

class Threshold : public Module {
 public:
  Threshold(double threshold, double value) : threshold_(threshold), value_(value) {}
  Tensor forward(const Tensor& x) override { return outrace::threshold(x, threshold_, value_); }

 private:
  double threshold_, value_;
};

// One trained slope, or one for each of `count` channels (axis 1), 0.25 at first.
class PReLU : public Module {
 public:
  explicit PReLU(int64_t count = 1, double start = 0.25, CreateOptions options = {}) {
    if (count < 1) fail(ErrorKind::value, "[PReLU] needs at least one slope; got ", count);
    weight = register_parameter("weight", full({count}, start, options));
  }
  Tensor forward(const Tensor& x) override { return prelu(x, weight); }
  Tensor weight;
};

// Half of `axis` gates the other half.
class GLU : public Module {
 public:
  explicit GLU(int64_t axis = -1) : axis_(axis) {}
  Tensor forward(const Tensor& x) override { return glu(x, axis_); }

 private:
  int64_t axis_;
};

// Along `axis`.
class Softmax : public Module {
 public:
  explicit Softmax(int64_t axis = -1) : axis_(axis) {}
  Tensor forward(const Tensor& x) override { return softmax(x, axis_); }

 private:
  int64_t axis_;
};

class LogSoftmax : public Module {
 public:
  explicit LogSoftmax(int64_t axis = -1) : axis_(axis) {}
  Tensor forward(const Tensor& x) override { return log_softmax(x, axis_); }

 private:
  int64_t axis_;
};

}  // namespace outrace::nn
