#include "outrace/ops/embedding_loss.h"

#include "outrace/graph/scope.h"
#include "outrace/ops/elementwise.h"
#include "outrace/ops/loss.h"
#include "outrace/ops/reduce.h"
#include "outrace/ops/statistics.h"

namespace outrace {
namespace {

void check_vectors(const char* op, std::initializer_list<const Tensor*> each, std::source_location where) {
  const Tensor& first = **each.begin();
  for (const Tensor* t : each) {
    if (!(t->shape() == first.shape()) || t->rank() < 1 || t->rank() > 2)
      fail(ErrorKind::shape, "[", op, "] needs vectors [N, D] or [D] of one shape; got ", first.shape(), " and ",
           t->shape(), call_site(where));
    if (!is_float(t->dtype()))
      fail(ErrorKind::dtype, "[", op, "] needs floating point; got ", name_of(t->dtype()), call_site(where));
  }
}

}  // namespace

Tensor cosine_similarity(At x1, At x2, int64_t axis, double eps) {
  const Tensor dot = sum(mul(x1, x2), {{axis}});
  return dot / (maximum(norm(x1, 2, {{axis}}), eps) * maximum(norm(x2, 2, {{axis}}), eps));
}

Tensor pairwise_distance(At x1, At x2, double p, double eps, bool keepdim) {
  return norm(sub(x1, x2) + eps, p, {{-1}, keepdim});
}

Tensor cosine_embedding_loss(At x1, At x2, const Tensor& target, const CosineEmbeddingOptions& options) {
  check_vectors("cosine_embedding_loss", {&x1.tensor, &x2.tensor}, x1.where);
  const Shape expected = x1.tensor.shape().without(x1.tensor.rank() - 1);
  if (!(target.shape() == expected))
    fail(ErrorKind::shape, "[cosine_embedding_loss] the target must be ", expected, ", one a vector; got ",
         target.shape(), call_site(x1.where));
  const Tensor c = cosine_similarity(x1, x2, -1);
  const Tensor apart = maximum(c - options.margin, 0.0);
  const Tensor loss = select(equal(target, 1.0), 1 - c, select(equal(target, -1.0), apart, 0.0));
  return reduce_loss(loss, options.reduction);
}

Tensor triplet_margin_loss(At anchor, At positive, At negative, const TripletMarginOptions& options) {
  check_vectors("triplet_margin_loss", {&anchor.tensor, &positive.tensor, &negative.tensor}, anchor.where);
  if (!(options.margin > 0))
    fail(ErrorKind::value, "[triplet_margin_loss] the margin must be positive; got ", options.margin,
         call_site(anchor.where));
  const Tensor near = pairwise_distance(anchor, positive, options.p, options.eps);
  Tensor far = pairwise_distance(anchor, negative, options.p, options.eps);
  if (options.swap) far = minimum(far, pairwise_distance(positive, negative, options.p, options.eps));
  return reduce_loss(maximum(near - far + options.margin, 0.0), options.reduction);
}

}  // namespace outrace
