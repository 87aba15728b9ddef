// Rows of a table by index.
#pragma once
#include <optional>

#include "outrace/graph/tensor.h"

namespace outrace {

// weight [rows, width], index of any shape -> [index shape..., width]. The gradient of a row is the sum over its uses,
// in order of position. Row padding_idx (negative: counted from the end) is looked up as it is stored and gets no
// gradient. Throws Error(value) when there is no such row, and when the call runs for an index that is none.
Tensor embedding(At weight, const Tensor& index, std::optional<int64_t> padding_idx = std::nullopt);

enum class BagMode : uint8_t { sum, mean, max };

// weight [rows, width], index [n], offsets [bags]: bag b combines the rows of index offsets[b] to offsets[b + 1] - 1,
// the last one up to the end -> [bags, width]. An empty bag is 0. Of equal maxima the first gets the gradient. Throws
// Error(value) when the call runs unless the offsets start with 0, do not decrease and do not pass n.
Tensor embedding_bag(At weight, const Tensor& index, const Tensor& offsets, BagMode mode = BagMode::mean);

}  // namespace outrace
