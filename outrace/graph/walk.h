// The pending graph below a set of roots, in topological order, with what a flush must know about each node.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "outrace/graph/node.h"

namespace outrace {

struct Walk {
  std::vector<Node*> nodes;     // inputs before users; leaves too
  std::vector<uint8_t> output;  // the value is stored: somebody outside this walk will read it
  std::vector<uint8_t> keep;    // an output that can still be differentiated: keeps its edges
};

// Marks nodes and leaves their position in Node::index. The roots are outputs, and so is every node with a handle or a
// user outside.
Walk walk_graph(std::span<const NodePtr> roots);

// For each node whether its last reference goes when the walk's outputs become leaves: a dying leaf may give away its
// buffer. `stored` marks the outputs.
std::vector<uint8_t> dying_nodes(const Walk& walk, std::span<const NodePtr> roots);

// The walk as words: equal words, equal program.
void append_signature(const Walk& walk, std::vector<uint64_t>& words);

}  // namespace outrace
