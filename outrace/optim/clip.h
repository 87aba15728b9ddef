// Gradient clipping between backward() and step(): part of the graph, so that it stands in a captured step too and
// nothing waits for the host. Parameters without a gradient are passed over.
#pragma once
#include <vector>

#include "outrace/graph/tensor.h"

namespace outrace::optim {

struct ClipOptions {
  double norm_type = 2;             // any p > 0; infinity is the largest magnitude
  bool error_if_nonfinite = false;  // asks for the norm's value: not within a captured step
};

// Scales the gradients so that the norm of them all together is at most max_norm (Pascanu et al., ICML 2013): by
// min(1, max_norm / (norm + 1e-6)), as PyTorch. Returns the norm before, [] in f32 (f64 beside f64 gradients).
// The powers are taken of gradients divided by the largest, so that none overflows. With a norm that is not finite
// the gradients keep their bits (PyTorch: they become NaN), or Error(diverged) is thrown when options say so.
Tensor clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, const ClipOptions& options = {},
                       std::source_location where = std::source_location::current());

// Clamps every element of every gradient to [-value, value]; NaN stays.
void clip_grad_value_(const std::vector<Tensor>& parameters, double value);

}  // namespace outrace::optim
