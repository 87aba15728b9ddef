// Writes whole arrays: random numbers, and pad (slice's derivative).
#pragma once
#include "outrace/core/dtype.h"
#include "outrace/core/random.h"
#include "outrace/core/shape.h"
#include "outrace/ops/attrs.h"

namespace outrace::cpu {

// Element i is the one that core/random.h gives for (state, i). bf16 and f16 get the f32 number, rounded; integers the
// i64 one, cut to the type. Uniform and normal numbers are for floats, Distribution::integer is for all types.
void fill_random(const RandomAttrs& attrs, RandomState state, DType dtype, void* out, int64_t count);

// out = full(shape, attrs.fill) with out[start + i * step] = x[i] on every axis. `attrs` has the rank of both shapes;
// steps may be negative.
void pad(DType dtype, const void* x, const Shape& x_shape, const SliceAttrs& attrs, void* out, const Shape& shape);

}  // namespace outrace::cpu
