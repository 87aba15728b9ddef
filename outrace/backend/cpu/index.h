// Kernels of the ops that take indices (ops/index.h, ops/embedding.h). Arrays are dense. An index out of range is never
// used as an address: the call ends with an Error(value) that names the first one.
#pragma once
#include "outrace/core/dtype.h"
#include "outrace/core/shape.h"
#include "outrace/ops/attrs.h"

namespace outrace::cpu {

struct IndexCall {
  const char* op;  // for errors
  DType dtype;     // of the array, its source and the result
  DType index_dtype;
  Shape array;  // what has `attrs.axis`: read by gather and index_select, written by the others
  Shape index;
  IndexAttrs attrs;
};

// ---- one index an element: index has the array's rank ----
void gather(const IndexCall& call, const void* array, const void* index, void* out);
// out = base (null: zeros), then the source's elements in order of position.
void scatter(const IndexCall& call, const void* index, const void* source, const void* base, void* out);
void scatter_add(const IndexCall& call, const void* index, const void* source, const void* base, void* out);

// ---- one index an entry of the axis: the index's elements in a row, whatever its shape ----
void index_select(const IndexCall& call, const void* array, const void* index, void* out);
void index_add(const IndexCall& call, const void* index, const void* source, const void* base, void* out);
// The array is the result, [index..., classes].
void one_hot(const IndexCall& call, const void* index, void* out);

// ---- bags of rows (embedding_bag); dtype is that of the offsets ----
void bag_of(DType dtype, const void* offsets, int64_t bags, int64_t* bag, int64_t rows);
// Positions [bags, width] of the largest of each bag's rows [rows, width] of type row_dtype; the first of equal ones, a
// NaN before all; 0 for an empty bag.
void bag_argmax(DType row_dtype, const void* x, int64_t rows, int64_t width, DType dtype, const void* offsets,
                int64_t bags, int64_t* best);

}  // namespace outrace::cpu
