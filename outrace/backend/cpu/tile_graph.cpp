#include "outrace/backend/cpu/tile_graph.h"

#include <algorithm>
#include <bit>

#include "outrace/backend/cpu/tile_super.h"
#include "outrace/core/error.h"

namespace outrace::cpu {
namespace {

void check(const TileProgram& p) {
  const int loads = static_cast<int>(p.loads.size()), registers = loads + static_cast<int>(p.instrs.size());
  OUTRACE_ASSERT(p.compute == DType::f32 || p.compute == DType::f64 || p.compute == DType::i64, name_of(p.compute));
  for (size_t i = 0; i < p.instrs.size(); ++i) {
    const TileInstr& instr = p.instrs[i];
    const EwInfo& info = info_of(instr.op);
    const int operands[] = {instr.x, instr.z, instr.w};
    for (int k = 0; k < info.arity; ++k)
      OUTRACE_ASSERT(operands[k] >= 0 && operands[k] < loads + static_cast<int>(i), info.name);
    OUTRACE_ASSERT(!info.real_only || p.compute != DType::i64, info.name);
  }
  for (const TileStore& s : p.stores) OUTRACE_ASSERT(s.reg >= 0 && s.reg < registers && s.view.value >= 0);
  OUTRACE_ASSERT(p.result < registers);
}

bool same_load(const TileLoad& a, const TileLoad& b) {
  if (a.kind != b.kind || a.dtype != b.dtype) return false;
  switch (a.kind) {
    case TileLoad::Kind::view:
      return a.view.value == b.view.value && a.view.offset == b.view.offset && a.view.strides == b.view.strides;
    case TileLoad::Kind::constant: return std::bit_cast<uint64_t>(a.constant) == std::bit_cast<uint64_t>(b.constant);
    case TileLoad::Kind::scalar: return a.scalar == b.scalar;
    case TileLoad::Kind::producer: return true;
  }
  return false;
}

// Equal loads become one register, square(x) becomes x * x: fewer shapes for the patterns to know.
void simplify(TileProgram& p) {
  std::vector<int16_t> renamed(p.loads.size() + p.instrs.size());
  for (size_t r = 0; r < renamed.size(); ++r) {
    renamed[r] = static_cast<int16_t>(r);
    if (r >= p.loads.size()) continue;
    const auto first =
        std::find_if(p.loads.begin(), p.loads.end(), [&](const TileLoad& l) { return same_load(l, p.loads[r]); });
    renamed[r] = static_cast<int16_t>(first - p.loads.begin());
  }
  for (TileInstr& instr : p.instrs) {
    const int arity = info_of(instr.op).arity;
    instr.x = renamed[instr.x];
    instr.z = arity < 2 ? int16_t{-1} : renamed[instr.z];
    instr.w = arity < 3 ? int16_t{-1} : renamed[instr.w];
    if (instr.op == Ew::square) instr = {.op = Ew::mul, .x = instr.x, .z = instr.x, .w = -1};
  }
  for (TileStore& s : p.stores) s.reg = renamed[s.reg];
  if (p.result >= 0) p.result = renamed[p.result];
}

bool is_uniform_load(const TileLoad& load, const Shape& space) {
  if (load.kind != TileLoad::Kind::view) return load.kind != TileLoad::Kind::producer;
  bool repeats = space.numel() > 1;
  for (int i = 0; i < space.rank() && repeats; ++i) repeats = space[i] == 1 || load.view.strides[i] == 0;
  return repeats;
}

void analyse(TileGraph& g) {
  g.uniform.assign(g.registers, 0);
  g.live.assign(g.registers, 0);
  g.escapes.assign(g.registers, 0);
  g.readers.resize(g.registers);
  for (int r = 0; r < g.registers; ++r) {
    if (g.is_load(r)) {
      g.uniform[r] = is_uniform_load(g.program.loads[r], g.program.space);
      continue;
    }
    g.uniform[r] = 1;
    for (const int x : g.operands_of(r))
      if (x >= 0 && !g.uniform[x]) g.uniform[r] = 0;
  }
  for (const TileStore& s : g.program.stores) g.live[s.reg] = g.escapes[s.reg] = 1;
  if (g.program.result >= 0) g.live[g.program.result] = g.escapes[g.program.result] = 1;
  for (int r = g.registers - 1; r >= g.loads; --r) {
    if (!g.live[r]) continue;
    for (const int x : g.operands_of(r)) {
      if (x < 0) continue;
      g.live[x] = 1;
      g.readers[x].push_back(r);
    }
  }
}

// Into an order in which every group follows those it reads from, otherwise as written. A superinstruction stands where
// its last instruction stood, so what read its earlier results may have to wait.
void sort_groups(TileGraph& g) {
  const auto last = [](const TileGroup& group) {
    return *std::max_element(group.outputs.begin(), group.outputs.end());
  };
  std::sort(g.groups.begin(), g.groups.end(),
            [&](const TileGroup& a, const TileGroup& b) { return last(a) < last(b); });
  std::vector<char> known(g.registers);
  for (int r = 0; r < g.registers; ++r) known[r] = g.is_load(r) || g.uniform[r];
  std::vector<TileGroup> waiting = std::move(g.groups);
  g.groups.clear();
  while (!waiting.empty()) {
    const auto next = std::find_if(waiting.begin(), waiting.end(), [&](const TileGroup& group) {
      return std::all_of(group.inputs.begin(), group.inputs.end(), [&](int r) { return known[r] != 0; });
    });
    OUTRACE_ASSERT(next != waiting.end(), "a cycle among tile instructions");
    for (const int r : next->outputs) known[r] = 1;
    g.groups.push_back(std::move(*next));
    waiting.erase(next);
  }
}

}  // namespace

TileGraph make_tile_graph(const TileProgram& program, const TileOptions& options) {
  check(program);
  TileGraph g;
  g.program = program;
  g.loads = static_cast<int>(program.loads.size());
  g.registers = g.loads + static_cast<int>(program.instrs.size());
  simplify(g.program);
  analyse(g);

  std::vector<char> covered(g.registers);
  if (options.superinstructions && program.compute != DType::i64) {
    for (SuperMatch& m : find_supers(g)) {
      for (const int r : m.covered) covered[r] = 1;
      g.groups.push_back(
          {.super = m.super, .op = {}, .outputs = m.outputs, .inputs = m.inputs, .uniforms = m.uniforms});
    }
  }
  for (int r = g.loads; r < g.registers; ++r) {
    if (!g.live[r] || g.uniform[r] || covered[r]) continue;
    TileGroup group{.super = {}, .op = g.instr(r).op, .outputs = {r}, .inputs = {}, .uniforms = {}};
    for (const int x : g.operands_of(r))
      if (x >= 0) group.inputs.push_back(x);
    g.groups.push_back(std::move(group));
  }
  sort_groups(g);
  return g;
}

}  // namespace outrace::cpu
