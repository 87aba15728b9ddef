// Softmax and losses.
#pragma once
#include "outrace/graph/tensor.h"

namespace outrace {

// exp(x) / sum(exp(x)) along `axis`, the maximum subtracted first. A row of -inf is NaN, as the definition has it.
Tensor softmax(At x, int64_t axis = -1);
Tensor log_softmax(At x, int64_t axis = -1);

struct CrossEntropyOptions {
  Reduction reduction = Reduction::mean;
  int64_t ignore_index = -100;  // rows with this target count neither in the loss nor in the mean's divisor
  Tensor weight = {};           // [C], of each class; the mean divides by the sum of the targets' weights
  double label_smoothing = 0;   // this share of the target is spread over all classes (Szegedy et al., CVPR 2016)
};

// -log softmax(logits)[target]. Logits are [N, C], [C] or [N, C, d1, ...]; targets are
//   class numbers (i32 or i64) of the logits' shape without C: a target that is neither in [0, C) nor ignore_index
//   throws Error(value) when computed;
//   or probabilities of the logits' shape and dtype: sum of -target * log softmax over C, where a target of 0 counts 0.
// mean and sum: 0-dim; none: the logits' shape without C. The mean over no counted row is NaN, with gradient 0.
Tensor cross_entropy(At logits, const Tensor& target, const CrossEntropyOptions& options = {});

struct NllOptions {
  Reduction reduction = Reduction::mean;
  int64_t ignore_index = -100;
  Tensor weight = {};
};
// -log_probabilities[target] for class numbers: cross_entropy without its log_softmax, with the same shapes and errors.
Tensor nll_loss(At log_probabilities, const Tensor& target, const NllOptions& options = {});

// The last step of a loss: itself, its mean or its sum.
Tensor reduce_loss(const Tensor& loss, Reduction reduction);

}  // namespace outrace
