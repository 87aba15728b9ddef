#include "tests/plan_builder.h"

#include <utility>

namespace outrace {

int PlanBuilder::input(DType dtype, const Shape& shape, Layout layout) {
  PlanValue v;
  v.kind = ValueKind::input;
  v.index = plan.inputs++;
  v.dtype = dtype;
  v.shape = shape;
  v.layout = layout;
  v.device = device;
  plan.values.push_back(v);
  return static_cast<int>(plan.values.size()) - 1;
}

int PlanBuilder::output(DType dtype, const Shape& shape, Layout layout, int donor) {
  const int i = input(dtype, shape, layout);
  --plan.inputs;
  plan.values[i].kind = ValueKind::output;
  plan.values[i].index = plan.outputs++;
  plan.values[i].donor = donor;
  return i;
}

int PlanBuilder::temp(DType dtype, const Shape& shape) {
  const int i = input(dtype, shape);
  --plan.inputs;
  PlanValue& v = plan.values[i];
  v.kind = ValueKind::temp;
  if (plan.arenas.empty()) plan.arenas.push_back({device, 0});
  v.arena_offset = plan.arenas[0].bytes;
  plan.arenas[0].bytes += (v.bytes() + 63) / 64 * 64;
  return i;
}

int PlanBuilder::constant(DType dtype, const Shape& shape, double fill) {
  const int i = input(dtype, shape);
  --plan.inputs;
  plan.values[i].kind = ValueKind::constant;
  plan.values[i].fill = fill;
  return i;
}

View PlanBuilder::matrix(int value, bool transposed) const {
  const int64_t columns = plan.values[value].shape.back();
  View v{value, 0, {}};
  v.strides[transposed ? 2 : 1] = columns;
  v.strides[transposed ? 1 : 2] = 1;
  return v;
}

Call& PlanBuilder::matmul(const View& a, const View& b, int64_t m, int64_t n, int64_t k, DType dtype, int result) {
  Call call;
  call.op = &kMatmul;
  call.attrs = MatmulAttrs{};
  call.dtype = dtype;
  call.shape = Shape{m, n};
  call.operands = {a, b};
  call.operand_shapes = {Shape{1, m, k}, Shape{1, k, n}};
  call.result = result;
  call.device = device;
  call.flops = 2.0 * static_cast<double>(m * n * k);
  call.label = "matmul";
  return plan.calls.emplace_back(std::move(call));
}

Call& PlanBuilder::producer(const OpDef& op, const Attrs& attrs, const std::vector<int>& operands, DType dtype,
                            const Shape& shape, int result) {
  Call call;
  call.op = &op;
  call.attrs = attrs;
  call.dtype = dtype;
  call.shape = shape;
  for (int value : operands) {
    call.operands.push_back(dense(value));
    call.operand_shapes.push_back(plan.values[value].shape);
  }
  call.result = result;
  call.device = device;
  call.label = op.name;
  return plan.calls.emplace_back(std::move(call));
}

Call& PlanBuilder::elementwise(TileProgram program, const char* label) {
  Call call;
  call.epilogue = std::move(program);
  call.device = device;
  call.label = label;
  return plan.calls.emplace_back(std::move(call));
}

TileProgram tile_program(DType compute, const Shape& space) {
  TileProgram p;
  p.compute = compute;
  p.space = space;
  return p;
}

namespace {
int add_load(TileProgram& p, TileLoad load) {
  p.loads.push_back(load);
  return static_cast<int>(p.loads.size()) - 1;
}
}  // namespace

int load_view(TileProgram& p, DType dtype, const View& view) {
  TileLoad load;
  load.dtype = dtype;
  load.view = view;
  return add_load(p, load);
}

int load_producer(TileProgram& p, DType dtype) {
  TileLoad load;
  load.kind = TileLoad::Kind::producer;
  load.dtype = dtype;
  return add_load(p, load);
}

int load_scalar(TileProgram& p, DType dtype, int scalar) {
  TileLoad load;
  load.kind = TileLoad::Kind::scalar;
  load.dtype = dtype;
  load.scalar = scalar;
  return add_load(p, load);
}

int load_constant(TileProgram& p, DType dtype, double value) {
  TileLoad load;
  load.kind = TileLoad::Kind::constant;
  load.dtype = dtype;
  load.constant = value;
  return add_load(p, load);
}

int apply(TileProgram& p, Ew op, int x, int z, int w) {
  p.instrs.push_back({op, static_cast<int16_t>(x), static_cast<int16_t>(z), static_cast<int16_t>(w)});
  return static_cast<int>(p.loads.size() + p.instrs.size()) - 1;
}

void store(TileProgram& p, int reg, DType dtype, int value) {
  p.stores.push_back({reg, {value, 0, contiguous_strides(p.space)}, dtype});
}

}  // namespace outrace
