// Losses of pairs of equal shape, element by element. Shapes must be equal: a silent broadcast of [N] against [N, 1]
// would train on N x N pairs. Errors: Error(shape) naming both shapes, Error(dtype) unless both are of one floating
// dtype. mean divides by the number of elements; over no elements it is NaN.
#pragma once
#include "outrace/graph/tensor.h"

namespace outrace {

struct LossOptions {
  Reduction reduction = Reduction::mean;
};

Tensor mse_loss(At x, const Tensor& target, const LossOptions& options = {});  // (x - target)^2
Tensor l1_loss(At x, const Tensor& target, const LossOptions& options = {});   // |x - target|

struct HuberOptions {
  double delta = 1;  // > 0
  Reduction reduction = Reduction::mean;
};
// d^2 / 2 for |d| <= delta, else delta (|d| - delta / 2), with d = x - target (Huber, 1964).
Tensor huber_loss(At x, const Tensor& target, const HuberOptions& options = {});

struct SmoothL1Options {
  double beta = 1;  // >= 0; 0 is l1_loss
  Reduction reduction = Reduction::mean;
};
// d^2 / (2 beta) for |d| < beta, else |d| - beta / 2 (Girshick, ICCV 2015).
Tensor smooth_l1_loss(At x, const Tensor& target, const SmoothL1Options& options = {});

struct BceOptions {
  Tensor weight = {};  // of each element; broadcasts
  Reduction reduction = Reduction::mean;
};
// -(target log x + (1 - target) log(1 - x)) for probabilities x in [0, 1]; logarithms are at least -100, and the
// derivative's divisor x (1 - x) at least 1e-12, as PyTorch has it.
Tensor binary_cross_entropy(At x, const Tensor& target, const BceOptions& options = {});

struct BceWithLogitsOptions {
  Tensor weight = {};      // of each element; broadcasts
  Tensor pos_weight = {};  // of positive targets; broadcasts, usually one a class
  Reduction reduction = Reduction::mean;
};
// binary_cross_entropy of sigmoid(x), without overflow for any x.
Tensor binary_cross_entropy_with_logits(At x, const Tensor& target, const BceWithLogitsOptions& options = {});

struct KlDivOptions {
  bool log_target = false;  // the target is given as logarithms too
  bool batch_mean = false;  // the sum divided by the first size: the mathematical mean over a batch
  Reduction reduction = Reduction::mean;
};
// target (log target - x) for log-probabilities x; a target of 0 counts 0 (Kullback and Leibler, 1951).
Tensor kl_div(At x, const Tensor& target, const KlDivOptions& options = {});

}  // namespace outrace
