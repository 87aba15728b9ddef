// A tile program as the compiler sees it: what is uniform, what is needed, who reads what, what forms one step.
#pragma once
#include <array>
#include <optional>
#include <vector>

#include "outrace/backend/cpu/tile.h"
#include "outrace/backend/cpu/tile_kernels.h"
#include "outrace/graph/plan.h"

namespace outrace::cpu {

// What one step computes: an instruction or a superinstruction.
struct TileGroup {
  std::optional<Super> super;
  Ew op{};  // without super
  std::vector<int> outputs, inputs,
      uniforms;  // registers, in the order of the kernel's operands; uniforms: of a super only
};

struct TileGraph {
  TileProgram program;  // equal loads are one register, square(x) is x * x
  int loads = 0, registers = 0;
  // Of each register:
  std::vector<char> uniform;              // the same for all elements
  std::vector<char> live;                 // something stored depends on it
  std::vector<char> escapes;              // stored, or the program's result
  std::vector<std::vector<int>> readers;  // registers of live instructions
  std::vector<TileGroup> groups;          // in an order in which each follows those it reads from

  const TileInstr& instr(int reg) const { return program.instrs[static_cast<size_t>(reg - loads)]; }
  bool is_load(int reg) const { return reg < loads; }
  std::array<int, 3> operands_of(int reg) const {
    if (is_load(reg)) return {-1, -1, -1};
    return {instr(reg).x, instr(reg).z, instr(reg).w};
  }
  // An array read element by element.
  bool is_view(int reg) const {
    return is_load(reg) && program.loads[reg].kind == TileLoad::Kind::view && !uniform[reg];
  }
  // Reads memory that a store may overwrite.
  bool reads_memory(int reg) const {
    return is_view(reg) || (is_load(reg) && program.loads[reg].kind == TileLoad::Kind::producer);
  }
};

TileGraph make_tile_graph(const TileProgram& program, const TileOptions& options);

}  // namespace outrace::cpu
