// What a trained network is worth: figures computed on the host.
#pragma once
#include "outrace/graph/tensor.h"

namespace outrace::data {

// How many rows of logits [N, C] have their largest value at the class that labels [N] name. Of equal values the first
// counts; a row with NaN is wrong.
int64_t count_correct(const Tensor& logits, const Tensor& labels);

// The same as a share of the rows, 0 to 1; NaN without rows.
double accuracy(const Tensor& logits, const Tensor& labels);

}  // namespace outrace::data
