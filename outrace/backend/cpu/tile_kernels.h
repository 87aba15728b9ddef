// The functions a compiled tile program is made of, one table an instruction set: instructions, superinstructions,
// conversions, copies. Compute types: float (f32), double (f64), int64_t (i64).
#pragma once
#include <cstdint>

#include "outrace/core/dtype.h"
#include "outrace/ops/elementwise_op.h"

namespace outrace::cpu {

// Does one thing to n elements. cells: where each array of the program lies; operands: numbers of cells, those written
// first. Any operand may be the very array that is written; apart from that, arrays do not overlap.
using TileFn = void (*)(char* const* cells, const int16_t* operands, int64_t n);

constexpr int kComputeTypes = 3;
constexpr int compute_index(DType compute) { return compute == DType::f32 ? 0 : compute == DType::f64 ? 1 : 2; }

// Bit i: operand i is one value for all elements.
constexpr int kOperandForms = 8;

struct TileInstrKernels {
  // Null: the op has no integer form, or at least one of the operands must be written out.
  TileFn fn[kEwCount][kOperandForms][kComputeTypes];
};

enum class Super : uint8_t {
#define SUPER(name, ...) name,
#include "outrace/backend/cpu/tile_super.def"
#undef SUPER
};
constexpr int kSuperCount = 0
#define SUPER(...) +1
#include "outrace/backend/cpu/tile_super.def"
#undef SUPER
    ;

struct TileSuperKernels {
  TileFn fn[kSuperCount][2];  // f32, f64; operands: outputs, inputs, uniforms
};

// A rectangle of elements copied between two arrays; strides in elements.
struct TileRectangle {
  int64_t rows, columns;
  int64_t from_row, from_column;
  int64_t to_row, to_column;
};

struct TileMoveKernels {
  TileFn to_compute[kDTypeCount][kComputeTypes];    // operands: out, in
  TileFn from_compute[kDTypeCount][kComputeTypes];  // operands: out, in
  TileFn splat[kComputeTypes];                      // operands: out, in (one value)
  // Indexed by log2 of the element's size.
  void (*copy_rectangle[4])(char* to, const char* from, const TileRectangle& r);
  // Past the caches, for outputs that will not be read soon; fence() before another thread may read them.
  void (*stream)(char* to, const char* from, int64_t bytes);
  void (*fence)();
};

const TileInstrKernels& tile_instr_kernels();
const TileSuperKernels& tile_super_kernels();
const TileMoveKernels& tile_move_kernels();

}  // namespace outrace::cpu
