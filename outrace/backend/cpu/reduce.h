// Sum, mean, product, maximum and minimum over any axes of an array, from memory or from the tiles of a prologue, to
// memory, an epilogue or both. The order is a tree fixed by the array's shape, the axes, the type and the instruction
// set: threads, prologue and epilogue change no bit. The error grows like a pairwise sum's. An extreme is NaN as soon
// as one element is.
#pragma once
#include <cstdint>
#include <memory>

#include "outrace/backend/cpu/tile.h"
#include "outrace/core/dtype.h"
#include "outrace/core/shape.h"
#include "outrace/graph/plan.h"

namespace outrace::cpu {

enum class ReduceKind : uint8_t { sum, mean, max, min, prod };

struct ReduceCall {
  ReduceKind kind = ReduceKind::sum;
  Shape space;       // of what is reduced
  int64_t axes = 0;  // bit i: axis i of the space is reduced
  // What is reduced: the prologue's result, or without one the elements of a view over the space, stored as `input`.
  // Sums and products are taken in f32 (also of bf16 and f16), f64 or i64 (of integers and bool).
  const TileKernel* prologue = nullptr;
  DType input = DType::f32;  // with a prologue: its compute type
  View view;                 // its value is not read: run() gets the pointer
  // Where results go, row-major without the reduced axes.
  bool store = true;
  DType output = DType::f32;
  // Its producer are the results in the type of the sum, before they are narrowed for storage.
  const TileKernel* epilogue = nullptr;
};

class Reducer {
 public:
  // The kernels that the call names must outlive the object.
  static std::unique_ptr<Reducer> prepare(const ReduceCall& call);
  virtual ~Reducer() = default;

  // `values` and `scalars` are the prologue's and the epilogue's. `input` is null with a prologue, `output` when
  // nothing is stored.
  virtual void run(void* const* values, const ScalarValue* scalars, const void* input, void* output) const = 0;
};

}  // namespace outrace::cpu
