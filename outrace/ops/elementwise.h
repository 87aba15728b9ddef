// Elementwise functions and operators, declared from ops.def.
#pragma once
#include "outrace/graph/tensor.h"

namespace outrace {

#define UNARY(name, ...) Tensor name(At x);
#define BINARY(name, ...)      \
  Tensor name(At x, At z);     \
  Tensor name(At x, double z); \
  Tensor name(double x, At z);
#define COMPARE(name, ...) BINARY(name)
#define SELECT(name, ...)
#include "outrace/ops/ops.def"
#undef UNARY
#undef BINARY
#undef COMPARE
#undef SELECT

// The dtype in which two are combined: the wider, a float before an integer (bf16 with f16: f32).
DType promote(DType a, DType b);

// z where condition (bool) holds, else w.
Tensor select(At condition, At z, At w);
Tensor select(At condition, At z, double w);
Tensor select(At condition, double z, At w);

// Whether an element is 0 or false; bool.
Tensor logical_not(At x);

// Converts every element; floats to integers truncate, to bool test != 0. Throws nothing; differentiable between
// floating types.
Tensor cast(At x, DType dtype);

inline Tensor operator-(At x) { return neg(x); }
#define OUTRACE_OPERATOR(symbol, name)                                 \
  inline Tensor operator symbol(At x, At z) { return name(x, z); }     \
  inline Tensor operator symbol(At x, double z) { return name(x, z); } \
  inline Tensor operator symbol(double x, At z) { return name(x, z); }
OUTRACE_OPERATOR(+, add)
OUTRACE_OPERATOR(-, sub)
OUTRACE_OPERATOR(*, mul)
OUTRACE_OPERATOR(/, div)
OUTRACE_OPERATOR(<, less)
OUTRACE_OPERATOR(<=, less_equal)
OUTRACE_OPERATOR(>, greater)
OUTRACE_OPERATOR(>=, greater_equal)
#undef OUTRACE_OPERATOR

}  // namespace outrace
