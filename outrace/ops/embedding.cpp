#include "outrace/ops/embedding.h"

#include "outrace/graph/recorder.h"
#include "outrace/graph/scope.h"
#include "outrace/ops/concat.h"
#include "outrace/ops/elementwise.h"
#include "outrace/ops/index.h"
#include "outrace/ops/movement.h"

namespace outrace {
namespace {

void require_index(const char* op, const char* what, const Tensor& t, std::source_location where) {
  if (t.dtype() != DType::i64 && t.dtype() != DType::i32)
    fail(ErrorKind::dtype, "[", op, "] the ", what, " must be i64 or i32; got ", name_of(t.dtype()), call_site(where));
}

Tensor embedding_derivative(const DerivativeArgs& d, int which) {
  if (which != 0) return Tensor();
  const std::source_location where = d.output.node().where;
  const int64_t count = d.inputs[1].numel();
  const Tensor index = reshape(At(d.inputs[1], where), Shape{count});
  const Tensor g = reshape(At(d.g, where), Shape{count, d.inputs[0].shape()[1]});
  IndexAttrs attrs = std::get<IndexAttrs>(d.attrs);
  attrs.checked = true;
  return record(kIndexAdd, {&index, &g}, g.dtype(), d.inputs[0].shape(), attrs, where);
}

}  // namespace

Tensor embedding(At weight, const Tensor& index, std::optional<int64_t> padding_idx) {
  const Shape& w = weight.tensor.shape();
  if (w.rank() != 2)
    fail(ErrorKind::shape, "[embedding] the weight must be [rows, width]; got ", w, call_site(weight.where));
  require_index("embedding", "index", index, weight.where);
  IndexAttrs attrs;
  if (padding_idx) {
    if (*padding_idx < -w[0] || *padding_idx >= w[0])
      fail(ErrorKind::value, "[embedding] padding_idx must name one of the ", w[0], " rows; got ", *padding_idx,
           call_site(weight.where));
    attrs.padding = *padding_idx < 0 ? *padding_idx + w[0] : *padding_idx;
  }
  return record(kEmbedding, {&weight.tensor, &index}, weight.tensor.dtype(), index.shape().inserted(index.rank(), w[1]),
                attrs, weight.where);
}

Tensor embedding_bag(At weight, const Tensor& index, const Tensor& offsets, BagMode mode) {
  const std::source_location where = weight.where;
  if (index.rank() != 1 || offsets.rank() != 1)
    fail(ErrorKind::shape, "[embedding_bag] index and offsets must be vectors; got ", index.shape(), " and ",
         offsets.shape(), call_site(where));
  require_index("embedding_bag", "offsets", offsets, where);
  const Tensor rows = embedding(weight, index);
  const int64_t n = index.numel(), bags = offsets.numel(), width = rows.shape()[1];
  const Device device = weight.tensor.device();
  const Tensor bag = record(kBagOf, {&offsets}, DType::i64, Shape{n}, NoAttrs{}, where);
  const auto total = [&] {
    return record(kIndexAdd, {&bag, &rows}, rows.dtype(), Shape{bags, width}, IndexAttrs{.checked = true}, where);
  };
  if (mode == BagMode::sum || bags == 0) return total();
  const Tensor starts = cast(At(offsets, where), DType::i64);
  const Tensor end = expand(number(static_cast<double>(n), DType::i64, device), Shape{1});
  const Tensor counts = reshape(cat({slice(starts, 0, 1, bags), end}, 0, where) - starts, Shape{bags, 1});
  if (mode == BagMode::mean) return total() / cast(maximum(counts, 1), rows.dtype());
  if (n == 0) return total();
  const Tensor best = record(kBagArgmax, {&rows, &offsets}, DType::i64, Shape{bags, width}, NoAttrs{}, where);
  const Tensor found = record(kGather, {&rows, &best}, rows.dtype(), best.shape(), IndexAttrs{.checked = true}, where);
  return select(At(counts > 0, where), found, 0.0);
}

const OpDef kEmbedding(OpFacts{
    .name = "embedding", .kind = OpKind::producer, .derivative = embedding_derivative, .may_throw = true});
const OpDef kBagOf(OpFacts{.name = "bag_of", .kind = OpKind::producer, .may_throw = true});
const OpDef kBagArgmax(OpFacts{.name = "bag_argmax", .kind = OpKind::producer, .may_throw = true});

}  // namespace outrace
