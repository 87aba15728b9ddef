// Where along an axis the largest or smallest element is.
#pragma once
#include "outrace/backend/cpu/axis.h"
#include "outrace/core/dtype.h"

namespace outrace::cpu {

// out [outer, inner]: the first position of the extreme; of a NaN, if there is one, the first. The axis is not empty.
void arg_extreme(bool largest, DType dtype, const void* x, const AxisView& view, int64_t* out);

// out [outer, size, inner]: the latest position of the extreme among the elements up to each; a NaN stays.
void running_arg_extreme(bool largest, DType dtype, const void* x, const AxisView& view, int64_t* out);

}  // namespace outrace::cpu
