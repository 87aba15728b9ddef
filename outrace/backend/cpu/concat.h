// Arrays put side by side, and windows added up.
#pragma once
#include <span>

#include "outrace/core/dtype.h"
#include "outrace/core/shape.h"

namespace outrace::cpu {

// One of the arrays that cat joins: `rows` pieces of `bytes`, which begin row_step bytes apart (0: one piece again and
// again).
struct CatPart {
  const char* data;
  int64_t bytes, row_step;
};

// Each row of the result is a row of each part, one behind the other.
void concat(std::span<const CatPart> parts, int64_t rows, void* out);

// out of shape [outer, size, inner] = the sum of the windows [outer, count, inner, length] that cover each entry;
// window w begins at entry w * step. In order of the windows; 16-bit floats are added in f32 and rounded once.
struct FoldCall {
  DType dtype;
  int64_t outer, size, inner, count, length, step;
};
void fold(const FoldCall& call, const void* windows, void* out);

}  // namespace outrace::cpu
