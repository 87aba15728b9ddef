// What the files of reductions share: the axes they reduce, and arrays seen along one axis.
#pragma once
#include "outrace/graph/tensor.h"
#include "outrace/ops/attrs.h"
#include "outrace/ops/reduce.h"

namespace outrace {

// Throws Error(shape) naming `op` for an axis out of range.
ReduceAttrs reduce_attrs(const char* op, const Tensor& x, const ReduceOptions& options);
Shape reduced_shape(const Shape& shape, const ReduceAttrs& attrs);
int64_t reduced_count(const Shape& shape, const ReduceAttrs& attrs);
ReduceOptions keeping_dims(const Shape& shape, const ReduceAttrs& attrs);  // the same axes with keepdim

// `t`, a result of reducing x, stretched over x again.
Tensor stretch(const Tensor& t, const Tensor& x, const ReduceAttrs& attrs);

// x as [kept, reduced, kept] with the reduced axes as axis 1: a view where they lie side by side, else permuted to the
// end (so that the last size is 1). A result of shape [kept, kept] is, reshaped, that of reducing x.
Tensor along_one_axis(const Tensor& x, const ReduceAttrs& attrs);
// The inverse, for an array of x's elements in that form.
Tensor from_one_axis(const Tensor& along, const Shape& x_shape, const ReduceAttrs& attrs);

// Throws Error(dtype) naming `op` unless x is floating point.
void require_float(const char* op, At x);

}  // namespace outrace
