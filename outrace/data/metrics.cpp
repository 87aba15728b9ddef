#include "outrace/data/metrics.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "outrace/core/error.h"

namespace outrace::data {

int64_t count_correct(const Tensor& logits, const Tensor& labels) {
  if (logits.rank() != 2 || labels.rank() != 1 || logits.size(0) != labels.size(0))
    fail(ErrorKind::shape, "[accuracy] logits must be [N, C] and labels [N]; got ", logits.shape(), " and ",
         labels.shape());
  const int64_t classes = logits.size(1);
  const std::vector<double> values = logits.to_vector<double>();
  const std::vector<int64_t> right = labels.to_vector<int64_t>();
  int64_t correct = 0;
  for (size_t i = 0; i < right.size(); ++i) {
    const std::span row(values.data() + i * classes, static_cast<size_t>(classes));
    if (std::ranges::any_of(row, [](double v) { return std::isnan(v); })) continue;
    correct += std::ranges::max_element(row) - row.begin() == right[i];
  }
  return correct;
}

double accuracy(const Tensor& logits, const Tensor& labels) {
  return static_cast<double>(count_correct(logits, labels)) / static_cast<double>(labels.numel());
}

}  // namespace outrace::data
