#include "outrace/graph/lower.h"

#include <algorithm>
#include <map>

#include "outrace/core/error.h"

namespace outrace {
namespace {

// Joins neighbouring axes that every view walks through in one stride: fewer, longer rows.
void collapse(TileProgram& p) {
  std::vector<View*> views;
  for (TileLoad& l : p.loads)
    if (l.kind == TileLoad::Kind::view) views.push_back(&l.view);
  for (TileStore& s : p.stores) views.push_back(&s.view);
  std::array<int64_t, kMaxRank> dims{};
  int rank = 0;
  std::vector<Strides> strides(views.size());
  for (int i = 0; i < p.space.rank(); ++i) {
    const int64_t size = p.space[i];
    if (size == 1) continue;
    bool joins = rank > 0;
    for (size_t v = 0; v < views.size() && joins; ++v) joins = strides[v][rank - 1] == views[v]->strides[i] * size;
    if (!joins) dims[rank++] = 1;
    dims[rank - 1] *= size;
    for (size_t v = 0; v < views.size(); ++v) strides[v][rank - 1] = views[v]->strides[i];
  }
  p.space = Shape(std::span<const int64_t>(dims.data(), rank));
  for (size_t v = 0; v < views.size(); ++v) {
    for (int i = rank; i < kMaxRank; ++i) strides[v][i] = 0;
    views[v]->strides = strides[v];
  }
}

// How a tile program loads what lies at `access`, but for the strides.
TileLoad load_of(const Ir& ir, const Placement& placement, const Access& access, DType dtype) {
  TileLoad l;
  l.dtype = dtype;
  const IrNode& base = ir.nodes[access.base];
  if (base.op == &kConstant) {
    l.kind = TileLoad::Kind::constant;
    l.constant = std::get<ConstantAttrs>(base.attrs).value;
  } else if (base.op == &kScalar) {
    l.kind = TileLoad::Kind::scalar;
    l.scalar = placement.scalar[access.base];
  } else {
    l.view.value = placement.value[access.base];
    l.view.offset = access.offset;
  }
  return l;
}

struct ProgramBuilder {
  const Ir& ir;
  const Fused& fused;
  const Placement& placement;
  TileProgram program;
  std::map<int, int> reg;  // node -> register

  int load(TileLoad l) {
    program.loads.push_back(l);
    return static_cast<int>(program.loads.size()) - 1;
  }

  // The register of `node` as an operand over `space`.
  int operand(int node, const Shape& space, Layout layout, int producer) {
    if (auto known = reg.find(node); known != reg.end()) return known->second;
    const IrNode& n = ir.nodes[node];
    const Access& access = fused.access[node];
    TileLoad l = load_of(ir, placement, access, n.dtype);
    if (node == producer) {
      l = {.kind = TileLoad::Kind::producer, .dtype = n.dtype, .view = {}};
    } else if (l.kind == TileLoad::Kind::view) {
      OUTRACE_ASSERT(l.view.value >= 0, "a fused group reads ", ir.nodes[access.base].op->name,
                     ", which is not stored");
      if (layout == Layout::panel) {
        l.view.strides[0] = n.shape.numel() == 1 ? 0 : 1;
      } else {
        const int shift = space.rank() - n.shape.rank();
        for (int i = 0; i < n.shape.rank(); ++i) l.view.strides[i + shift] = n.shape[i] == 1 ? 0 : access.strides[i];
      }
    }
    return reg[node] = load(l);
  }
};

// Loads come first in a program's register file, so operands are gathered before instructions are numbered.
TileProgram build_program(const Ir& ir, const Fused& fused, const Placement& placement, const std::vector<int>& members,
                          int producer, Layout layout, const std::vector<int>& stored) {
  ProgramBuilder b{ir, fused, placement, {}, {}};
  const IrNode& last = ir.nodes[members.back()];
  const Shape logical = last.shape;
  b.program.space = layout == Layout::panel ? Shape{logical.numel()} : logical;
  b.program.compute = compute_type(ir, last);
  std::vector<uint8_t> inside(ir.nodes.size(), 0);
  for (int m : members) inside[m] = 1;
  for (int m : members)
    for (int in : ir.nodes[m].inputs)
      if (!inside[in]) b.operand(in, logical, layout, producer);
  for (int m : members) {
    const IrNode& n = ir.nodes[m];
    if (n.op == &kCast) {  // the conversion happens in the store
      b.reg[m] = b.reg.at(n.inputs[0]);
      continue;
    }
    TileInstr instr{static_cast<Ew>(n.op->ew), -1, -1, -1};
    int16_t* operands[] = {&instr.x, &instr.z, &instr.w};
    for (size_t k = 0; k < n.inputs.size(); ++k) *operands[k] = static_cast<int16_t>(b.reg.at(n.inputs[k]));
    b.program.instrs.push_back(instr);
    b.reg[m] = static_cast<int>(b.program.loads.size() + b.program.instrs.size()) - 1;
  }
  for (int s : stored) {
    TileStore store;
    store.reg = b.reg.at(s);
    store.dtype = ir.nodes[s].dtype;
    store.view.value = placement.value[s];
    store.view.strides = contiguous_strides(b.program.space);
    b.program.stores.push_back(store);
  }
  b.program.result = b.reg.at(members.back());
  return std::move(b.program);
}

TileProgram copy_program(const Ir& ir, const Fused& fused, const Placement& placement, int node) {
  const IrNode& n = ir.nodes[node];
  const int in = n.inputs[0];
  Access access = fused.access[in];
  Shape space = ir.nodes[in].shape;
  if (n.op != &kReshape) {  // a reshape keeps the order of elements, the others are read through their strides
    access = *move(ir, n, access);
    space = n.shape;
  }
  TileProgram p;
  p.space = space;
  p.compute = compute_of(n.dtype);
  TileLoad l = load_of(ir, placement, access, n.dtype);
  if (l.kind == TileLoad::Kind::view) l.view.strides = access.strides;
  p.loads.push_back(l);
  TileStore s{0, {placement.value[node], 0, contiguous_strides(space)}, n.dtype};
  p.stores.push_back(s);
  collapse(p);
  return p;
}

View matrix_view(const Access& access, const Shape& shape, bool transpose, int value, const Shape& out,
                 Shape& logical) {
  const int rank = shape.rank();
  View v{value, access.offset, {}};
  int64_t batch = 1;
  for (int i = 0; i < out.rank() - 2; ++i) batch *= out[i];
  // readable() made sure that one stride walks all leading axes.
  for (int i = rank - 3; i >= 0; --i)
    if (shape[i] != 1) {
      v.strides[0] = access.strides[i];
      break;
    }
  const int rows = transpose ? rank - 1 : rank - 2, cols = transpose ? rank - 2 : rank - 1;
  v.strides[1] = access.strides[rows];
  v.strides[2] = access.strides[cols];
  logical = Shape{batch, shape[rows], shape[cols]};
  return v;
}

void lower_operands(const Ir& ir, const Fused& fused, const Placement& placement, const Group& g, Call& call) {
  const IrNode& p = ir.nodes[g.producer];
  if (p.op == &kMatmul) {
    const auto& attrs = std::get<MatmulAttrs>(p.attrs);
    for (int k = 0; k < 2; ++k) {
      const int in = p.inputs[k];
      Shape logical;
      call.operands.push_back(matrix_view(fused.access[in], ir.nodes[in].shape,
                                          k ? attrs.transpose_b : attrs.transpose_a,
                                          placement.value[fused.access[in].base], p.shape, logical));
      call.operand_shapes.push_back(logical);
    }
    return;
  }
  for (int in : p.inputs) {
    const Access& access = fused.access[in];
    const IrNode& base = ir.nodes[access.base];
    if (base.op == &kScalar) {
      call.scalars.push_back(placement.scalar[access.base]);
      continue;
    }
    call.operands.push_back({placement.value[access.base], access.offset, access.strides});
    call.operand_shapes.push_back(ir.nodes[in].shape);
  }
}

double count_flops(const Ir& ir, const Group& g) {
  double flops = 0;
  auto add = [&](int i) {
    const IrNode& n = ir.nodes[i];
    std::vector<Shape> inputs;
    for (int in : n.inputs) inputs.push_back(ir.nodes[in].shape);
    flops += n.op->flops                         ? n.op->flops(inputs, n.shape, n.attrs)
             : n.op->kind == OpKind::elementwise ? static_cast<double>(n.shape.numel())
                                                 : 0;
  };
  if (g.producer >= 0) add(g.producer);
  for (int m : g.members) add(m);
  for (int m : g.prologue) add(m);
  return flops;
}

}  // namespace

Call lower_group(const Ir& ir, const Fused& fused, const Group& g, const Placement& placement,
                 const std::vector<PlanValue>& values) {
  Call call;
  const int root = g.members.empty() ? g.producer : g.members.back();
  call.device = ir.nodes[root].device;
  call.layout = g.layout;
  auto name = [&](int i) { call.label += (call.label.empty() ? "" : "+") + std::string(ir.nodes[i].op->name); };
  for (int m : g.prologue) name(m);
  if (g.producer >= 0) name(g.producer);
  for (int m : g.members) name(m);

  if (g.producer >= 0) {
    const IrNode& p = ir.nodes[g.producer];
    call.op = p.op;
    call.attrs = p.attrs;
    call.dtype = p.dtype;
    call.shape = p.shape;
    call.result = placement.value[g.producer];
    if (!g.prologue.empty()) {
      call.prologue = build_program(ir, fused, placement, g.prologue, -1, Layout::plain, {});
      call.operand_shapes.push_back(ir.nodes[g.prologue.back()].shape);
      call.operands.push_back({});
    } else {
      lower_operands(ir, fused, placement, g, call);
    }
  }
  if (!g.members.empty()) {
    if (ir.nodes[root].op->kind == OpKind::movement) {
      call.epilogue = copy_program(ir, fused, placement, root);
    } else {
      std::vector<int> stored;
      for (int m : g.members)
        if (placement.value[m] >= 0) stored.push_back(m);
      call.epilogue = build_program(ir, fused, placement, g.members, g.producer, g.layout, stored);
      if (g.producer < 0) collapse(call.epilogue);
    }
  }
  call.flops = count_flops(ir, g);
  // Each value counts once however often it is read; broadcast operands by their own size.
  std::vector<uint8_t> seen(values.size(), 0);
  auto touch = [&](int v, bool written) {
    if (v < 0 || (seen[v] & (written ? 2 : 1))) return;
    seen[v] |= written ? 2 : 1;
    call.bytes += static_cast<double>(values[v].bytes());
  };
  for (const View& v : call.operands) touch(v.value, false);
  touch(call.result, true);
  for (const TileProgram* p : {&call.prologue, &call.epilogue}) {
    for (const TileLoad& l : p->loads)
      if (l.kind == TileLoad::Kind::view) touch(l.view.value, false);
    for (const TileStore& s : p->stores) touch(s.view.value, true);
  }
  return call;
}

}  // namespace outrace
