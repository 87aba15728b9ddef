// Derivatives, graph to graph: the gradient of a value is more graph.
#pragma once
#include <source_location>
#include <vector>

#include "outrace/graph/tensor.h"

namespace outrace {

// d(sum(output * upstream)) / d(wrt[i]); upstream defaults to ones and output must then have one element.
// Undefined where output does not depend on wrt[i]. Throws Error(state) when part of the graph was freed.
std::vector<Tensor> grad(const Tensor& output, const std::vector<Tensor>& wrt, BackwardOptions options = {},
                         const Tensor& upstream = {}, std::source_location where = std::source_location::current());

namespace detail {
// Nodes between `root` and its leaves whose values the derivative of root reads: what a program must store
// when backward() may follow later. Pending nodes only.
std::vector<Node*> read_by_derivative(const NodePtr& root);
}  // namespace detail

}  // namespace outrace
