// Losses as objects, so that a translated training loop reads as before.
#pragma once
#include <source_location>

#include "outrace/ops/loss.h"

namespace outrace::nn {

// cross_entropy(logits [N, C], targets [N]).
class CrossEntropyLoss {
 public:
  explicit CrossEntropyLoss(const CrossEntropyOptions& options = {}) : options_(options) {}
  Tensor operator()(At logits, const Tensor& targets) const { return cross_entropy(logits, targets, options_); }

 private:
  CrossEntropyOptions options_;
};

}  // namespace outrace::nn
