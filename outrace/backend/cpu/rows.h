// Ops over the last axis of a row-major [rows, columns]: softmax, log-softmax, cross-entropy of class numbers and its
// gradient. f32, f64, and bf16 or f16 computed in f32. Bits depend on the shape, the type and the instruction set only.
// A row with a NaN, with infinity or with -infinity alone gives NaN, as the formulas do.
#pragma once
#include <cstdint>

#include "outrace/core/dtype.h"
#include "outrace/ops/attrs.h"

namespace outrace::cpu {

// y may be x.
void softmax(DType dtype, const void* x, void* y, int64_t rows, int64_t columns);
void log_softmax(DType dtype, const void* x, void* y, int64_t rows, int64_t columns);
// y: [rows]; columns > 0.
void logsumexp(DType dtype, const void* x, void* y, int64_t rows, int64_t columns);

struct CrossEntropyCall {
  DType dtype = DType::f32;         // of logits, loss, g and gradient
  DType target_dtype = DType::i64;  // or i32
  int64_t rows = 0, classes = 0;    // logits [rows, classes], targets [rows]
  CrossEntropyAttrs attrs;
};

// Both throw Error(value), before they write anything, for a target that is neither a class nor ignore_index.
// loss: [rows], 0 where the target is ignored; for mean and sum one number. Mean is over the rows not ignored; NaN if
// there are none.
void cross_entropy(const CrossEntropyCall& call, const void* logits, const void* targets, void* loss);
// gradient [rows, classes] = g * d loss / d logits, exactly 0 in ignored rows; g: [rows], for mean and sum one number.
void cross_entropy_grad(const CrossEntropyCall& call, const void* logits, const void* targets, const void* g,
                        void* gradient);

}  // namespace outrace::cpu
