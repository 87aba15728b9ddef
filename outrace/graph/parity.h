// Two devices, op by op: recorded work is computed on its own device, and every op of it once more on another device
// and in float64, from the same inputs. What differs is thus the op's own doing, not what came before it.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <source_location>
#include <span>
#include <string>

#include "outrace/graph/tensor.h"

namespace outrace {

// One op's result on one device beside the float64 reference.
struct OpError {
  std::string op, layer;  // "matmul", "fc1"; no layer: ""
  bool backward = false;
  Device device;
  DType dtype = DType::f32;
  Shape shape;
  int64_t element = 0;           // the row-major index of the worst one
  double got = 0, expected = 0;  // there
  double error = 0, bound = 0;   // there
  std::source_location where;    // the line that called the op
  double share() const { return bound > 0 ? error / bound : error > 0 ? HUGE_VAL : 0; }
};

struct OpParity {
  int64_t forward_ops = 0, backward_ops = 0;
  std::optional<OpError> worst_forward, worst_backward;  // by share of the bound
  std::optional<OpError> first;                          // the first beyond its bound, in order of computation
};

// `forward`: values recorded and not yet computed; `backward`: their gradients, likewise. `layer_of` names the layer
// that a node belongs to, or "". All must be on one device; `other` may be any that is found.
// An element's bound: an op that adds up K products or numbers may be off by (K + 8) roundings of the sum of their
// magnitudes (Higham, Accuracy and Stability of Numerical Algorithms, 3.1); any other by 64 roundings of the largest
// number it reads or writes. Integers, bools, random numbers and moved elements must be equal.
OpParity compare_ops(std::span<const Tensor> forward, std::span<const Tensor> backward, Device other,
                     const std::function<std::string(const Node&)>& layer_of);

}  // namespace outrace
