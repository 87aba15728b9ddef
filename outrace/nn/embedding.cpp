#include "outrace/nn/embedding.h"

#include "outrace/ops/ops.h"

namespace outrace::nn {

Embedding::Embedding(int64_t rows, int64_t width, const EmbeddingOptions& options) : padding_idx_(options.padding_idx) {
  if (rows < 1 || width < 1)
    fail(ErrorKind::value, "[Embedding] sizes must be positive; got ", rows, " rows of ", width);
  Tensor start = randn({rows, width}, {options.dtype, options.device});
  if (padding_idx_) {
    const int64_t row = *padding_idx_ < 0 ? *padding_idx_ + rows : *padding_idx_;
    if (row < 0 || row >= rows)
      fail(ErrorKind::value, "[Embedding] padding_idx must name one of ", rows, " rows; got ", *padding_idx_);
    start = select_assign(start, 0, row, zeros({width}, {options.dtype, options.device}));
  }
  weight = register_parameter("weight", start);
}

Tensor Embedding::forward(const Tensor& index) { return embedding(weight, index, padding_idx_); }

std::string Embedding::arguments() const { return cat(weight.shape()[0], ", ", weight.shape()[1]); }

}  // namespace outrace::nn
