// A matrix product that a driver may hand to its vendor's library.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>

#include "outrace/backend/gpu/launch.h"
#include "outrace/core/dtype.h"

namespace outrace::gpu {

enum class Activation : uint8_t { none, relu, gelu_tanh };

// c[i] = activation(a[i] b[i] + bias) for i < batch; [m, k] times [k, n]. c is dense, the others have a step of 1 along
// one of their last two axes.
struct Product {
  struct Matrix {
    Arg at;
    DType dtype = DType::f32;
    int64_t batch = 0, row = 0, column = 0;  // strides, in elements
  };
  int64_t batch = 1, m = 0, n = 0, k = 0;
  Matrix a, b;
  Arg c, bias;  // bias: n numbers of c's dtype, added to each row; no slot: none
  DType c_dtype = DType::f32;
  Activation activation = Activation::none;
};

// Memory of the call alone.
using Scratch = std::function<Arg(int64_t bytes)>;

}  // namespace outrace::gpu
