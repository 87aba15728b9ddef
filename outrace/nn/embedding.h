// Embedding: rows of a trained table by index.
#pragma once
#include <optional>

#include "outrace/nn/module.h"

namespace outrace::nn {

struct EmbeddingOptions {
  std::optional<int64_t> padding_idx = {};  // this row (negative: from the end) starts as 0 and gets no gradient
  DType dtype = DType::f32;
  Device device = {};
};

// i64 or i32 of any shape -> [..., width]. weight [rows, width] starts standard normal, as torch.nn.Embedding.
class Embedding : public Module {
 public:
  Embedding(int64_t rows, int64_t width, const EmbeddingOptions& options = {});
  Tensor forward(const Tensor& index) override;
  std::string arguments() const override;
  Tensor weight;

 private:
  std::optional<int64_t> padding_idx_;
};

}  // namespace outrace::nn
