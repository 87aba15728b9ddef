// Running sums and products along an axis, and linear recurrences.
#pragma once
#include "outrace/backend/cpu/axis.h"
#include "outrace/backend/cpu/scan_kernels.h"
#include "outrace/core/dtype.h"
#include "outrace/ops/attrs.h"

namespace outrace::cpu {

// Floats in f64, rounded once an element; i64 wraps around. A long axis is cut in fixed parts, whose totals are found
// first. y is not x.
void scan(ScanKind kind, DType dtype, const ScanAttrs& attrs, const void* x, const AxisView& view, void* y);

// h[i] = a[i] * h[i - 1] + b[i] (reverse: h[i + 1]) in f64 for f64, else in f32. Each line is computed by one thread.
void linear_recurrence(DType dtype, bool reverse, const void* a, const void* b, const AxisView& view, void* h);

}  // namespace outrace::cpu
