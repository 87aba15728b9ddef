// Matrices between row-major order and the panels of backend/cpu/gemm.h, on all threads.
#pragma once
#include "outrace/core/dtype.h"
#include "outrace/core/shape.h"
#include "outrace/graph/plan.h"

namespace outrace::cpu {

// Null, or why there is no packed form.
const char* relayout_refusal(DType dtype, const Shape& shape);

// A [rows, columns] matrix of f32 or f64; `to` and `from` do not overlap.
void relayout(void* to, Layout to_layout, const void* from, Layout from_layout, DType dtype, const Shape& shape);

}  // namespace outrace::cpu
