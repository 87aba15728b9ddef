// Finds the superinstructions of tile_super.def in a program.
#pragma once
#include <string_view>
#include <vector>

#include "outrace/backend/cpu/tile_graph.h"

namespace outrace::cpu {

struct SuperMatch {
  Super super;
  std::vector<int> outputs, inputs, uniforms;  // registers, in the order of the kernel's operands
  std::vector<int> covered;                    // registers whose instructions it replaces
};

// Groups that share no instruction, in the order of the file's rows.
std::vector<SuperMatch> find_supers(const TileGraph& graph);
std::string_view name_of(Super super);

}  // namespace outrace::cpu
