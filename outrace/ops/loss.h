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
};

// -log softmax(logits [N, C])[target] for class indices target [N] (i32 or i64). mean and sum: 0-dim; none: [N].
// The mean over no counted row is NaN, with gradient 0 (as PyTorch). A target outside [0, C) throws Error(value) when
// computed.
Tensor cross_entropy(At logits, const Tensor& target, const CrossEntropyOptions& options = {});

}  // namespace outrace
