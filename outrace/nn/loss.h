// Losses as objects, so that a translated training loop reads as before: options once, then loss(input, target).
#pragma once
#include "outrace/ops/ops.h"

namespace outrace::nn {

template <auto kFn, class Options>
class Loss {
 public:
  explicit Loss(const Options& options = {}) : options_(options) {}
  Tensor operator()(At input, const Tensor& target) const { return kFn(input, target, options_); }

 private:
  Options options_;
};

using CrossEntropyLoss = Loss<cross_entropy, CrossEntropyOptions>;
using NLLLoss = Loss<nll_loss, NllOptions>;
using MSELoss = Loss<mse_loss, LossOptions>;
using L1Loss = Loss<l1_loss, LossOptions>;
using HuberLoss = Loss<huber_loss, HuberOptions>;
using SmoothL1Loss = Loss<smooth_l1_loss, SmoothL1Options>;
using BCELoss = Loss<binary_cross_entropy, BceOptions>;
using BCEWithLogitsLoss = Loss<binary_cross_entropy_with_logits, BceWithLogitsOptions>;
using KLDivLoss = Loss<kl_div, KlDivOptions>;

// Losses of three inputs: loss(x1, x2, target), loss(anchor, positive, negative).
template <auto kFn, class Third, class Options>
class LossOfThree {
 public:
  explicit LossOfThree(const Options& options = {}) : options_(options) {}
  Tensor operator()(At first, At second, Third third) const { return kFn(first, second, third, options_); }

 private:
  Options options_;
};

using CosineEmbeddingLoss = LossOfThree<cosine_embedding_loss, const Tensor&, CosineEmbeddingOptions>;
using TripletMarginLoss = LossOfThree<triplet_margin_loss, At, TripletMarginOptions>;

}  // namespace outrace::nn
