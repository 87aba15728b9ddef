// Plans made by hand, for tests of backends.
#pragma once
#include <vector>

#include "outrace/backend/backend.h"
#include "outrace/graph/plan.h"
#include "outrace/ops/op_def.h"

namespace outrace {

// Adds values and calls to a plan. Registers of a tile program are those of graph/plan.h: loads first, then
// instructions.
struct PlanBuilder {
  Plan plan;
  Device device = DeviceType::cpu;

  int input(DType dtype, const Shape& shape, Layout layout = Layout::plain);
  int output(DType dtype, const Shape& shape, Layout layout = Layout::plain, int donor = -1);
  int temp(DType dtype, const Shape& shape);  // each at its own offset
  int constant(DType dtype, const Shape& shape, double fill);
  int scalar() { return plan.scalars++; }

  View dense(int value) const { return {value, 0, contiguous_strides(plan.values[value].shape)}; }
  // A matrix as an operand of a product: [1, rows, columns], transposed on request.
  View matrix(int value, bool transposed = false) const;

  // A product of two matrices with the given operands; shape [m, n].
  Call& matmul(const View& a, const View& b, int64_t m, int64_t n, int64_t k, DType dtype, int result);
  // A call of `op` over dense operands.
  Call& producer(const OpDef& op, const Attrs& attrs, const std::vector<int>& operands, DType dtype, const Shape& shape,
                 int result);
  Call& elementwise(TileProgram program, const char* label);
};

TileProgram tile_program(DType compute, const Shape& space);
int load_view(TileProgram& p, DType dtype, const View& view);
int load_producer(TileProgram& p, DType dtype);
int load_scalar(TileProgram& p, DType dtype, int scalar);
int load_constant(TileProgram& p, DType dtype, double value);
// After all loads. Returns the register.
int apply(TileProgram& p, Ew op, int x, int z = -1, int w = -1);
void store(TileProgram& p, int reg, DType dtype, int value);

}  // namespace outrace
