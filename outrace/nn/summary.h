// A table of a network: its modules, what each gives for an input, and how many parameters it has.
#pragma once
#include <string>

#include "outrace/nn/module.h"

namespace outrace::nn {

struct SummaryOptions {
  DType dtype = DType::f32;  // of the input; an index type for networks that begin with an embedding
  Device device = {};
};

// One line a module: name, type with its arguments, shape of the output, parameters of its own, then the sums. The
// network is called once, in evaluation mode and without anything being computed.
//
//   Layer  Type             Output      Parameters
//   fc1    Linear 1000, 512 [64, 512]      512,512
//
std::string summary(Module& module, const Shape& input, const SummaryOptions& options = {});

}  // namespace outrace::nn
