// Distances and losses of pairs and triples of vectors along the last axis.
#pragma once
#include "outrace/graph/tensor.h"

namespace outrace {

// sum(x1 x2) / (max(|x1|, eps) max(|x2|, eps)) along `axis`; the shapes broadcast.
Tensor cosine_similarity(At x1, At x2, int64_t axis = 1, double eps = 1e-8);

// |x1 - x2 + eps|_p along the last axis; eps keeps the derivative finite where they are equal.
Tensor pairwise_distance(At x1, At x2, double p = 2, double eps = 1e-6, bool keepdim = false);

struct CosineEmbeddingOptions {
  double margin = 0;
  Reduction reduction = Reduction::mean;
};
// With c = cosine_similarity(x1, x2): 1 - c where the target is 1, max(0, c - margin) where it is -1. x1, x2: [N, D] or
// [D]; target: [N] or 0-dim.
Tensor cosine_embedding_loss(At x1, At x2, const Tensor& target, const CosineEmbeddingOptions& options = {});

struct TripletMarginOptions {
  double margin = 1, p = 2, eps = 1e-6;
  bool swap = false;  // the negative's distance is the smaller of those to anchor and positive (Balntas et al., 2016)
  Reduction reduction = Reduction::mean;
};
// max(0, d(anchor, positive) - d(anchor, negative) + margin) with d = pairwise_distance. All [N, D] or [D].
Tensor triplet_margin_loss(At anchor, At positive, At negative, const TripletMarginOptions& options = {});

}  // namespace outrace
