// Counting elements by value.
#pragma once
#include "outrace/core/dtype.h"
#include "outrace/ops/attrs.h"

namespace outrace::cpu {

// counts[b]: elements from low + b * width up to the next edge, in f64; the last bin has its upper edge too. Elements
// outside, and NaN, are left out.
void histogram(DType dtype, const void* x, int64_t count, const HistogramAttrs& attrs, int64_t* counts);

// counts[b]: how often b occurs. Throws Error(value) for an element outside 0 .. bins - 1.
void bincount(const int64_t* x, int64_t count, int64_t bins, int64_t* counts);

}  // namespace outrace::cpu
