// A plan: what a backend compiles. Values (where each array lives) and calls in order. Plain data; the graph's passes
// write it, backends read it, print.cpp shows it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "outrace/core/device.h"
#include "outrace/core/dtype.h"
#include "outrace/core/shape.h"
#include "outrace/ops/attrs.h"
#include "outrace/ops/elementwise_op.h"

namespace outrace {

struct OpDef;

// How a matrix parameter is stored. `panel` is described in backend/cpu/gemm.h; every other array is plain row-major.
enum class Layout : uint8_t { plain, panel };

enum class ValueKind : uint8_t { input, output, temp, constant };

struct PlanValue {
  ValueKind kind = ValueKind::temp;
  int index = 0;  // which input or output
  DType dtype = DType::f32;
  Shape shape;
  Layout layout = Layout::plain;
  Device device;
  int donor = -1;            // output only: the input whose buffer it overwrites when nobody else reads that buffer
  int64_t arena_offset = 0;  // temp only: bytes
  double fill = 0;           // constant only: every element, written once by compile()
  int64_t bytes() const { return shape.numel() * size_of(dtype); }
};

// A number that changes from run to run: learning rate, step count, seed. Bound beside the buffers.
union ScalarValue {
  double real;
  int64_t integer;
};

// Elements of a value read or written over a space of the same rank: offset + sum of index[i] * strides[i], in
// elements.
struct View {
  int value = -1;
  int64_t offset = 0;
  Strides strides{};
};

// A straight-line elementwise program over a space. Register r < loads.size() holds load r; register loads.size() + i
// holds instruction i. A bool lives in a register as 0 or 1 of the compute type.
struct TileLoad {
  enum class Kind : uint8_t {
    view,
    constant,
    scalar,
    producer
  };  // producer: the tile of the call's product or reduction
  Kind kind = Kind::view;
  DType dtype = DType::f32;
  View view;
  double constant = 0;
  int scalar = -1;  // index into the plan's scalars; integer when the dtype is an integer type
};
struct TileInstr {
  Ew op;
  int16_t x = -1, z = -1, w = -1;  // registers
};
struct TileStore {
  int reg = -1;
  View view;                 // dense over the space
  DType dtype = DType::f32;  // converted from the compute type; floats to integers truncate, to bool test != 0
};
struct TileProgram {
  DType compute = DType::f32;  // f32 (also for bf16, f16), f64, or i64 (all integers and bool)
  Shape space;                 // row-major; for packed arrays one axis over the stored elements
  std::vector<TileLoad> loads;
  std::vector<TileInstr> instrs;
  std::vector<TileStore> stores;
  int result = -1;  // register handed to the call that follows (prologue of a reduction); -1: none
  bool empty() const { return loads.empty(); }
};

struct Call {
  const OpDef* op = nullptr;  // the producer; null: the epilogue alone (elementwise, copies)
  Attrs attrs;
  DType dtype = DType::f32;  // of the producer's result
  Shape shape;               // of the producer's result
  // Of the producer, each over its own logical shape. matmul: always [batch, M, K] and [batch, K, N], transposes
  // already in the strides.
  std::vector<View> operands;
  std::vector<Shape> operand_shapes;
  std::vector<int> scalars;       // scalar inputs of the producer (seed, serial)
  int result = -1;                // value that stores the producer's result; -1: only the epilogue sees it
  Layout layout = Layout::plain;  // order in which the result is stored and handed to the epilogue
  TileProgram prologue;           // what a reduction reads: result over operand_shapes[0]
  TileProgram epilogue;           // over the result's elements as stored
  Device device;
  bool inplace = false;  // overwrites an input
  double flops = 0, bytes = 0;
  std::string label;  // "matmul+add+relu", for people
};

struct Plan {
  std::vector<PlanValue> values;
  std::vector<Call> calls;
  int inputs = 0, outputs = 0, scalars = 0;
  struct Arena {
    Device device;
    int64_t bytes = 0;
  };
  std::vector<Arena> arenas;
};

}  // namespace outrace
