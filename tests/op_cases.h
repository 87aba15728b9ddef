// One list of op cases, used by every check of an op: forward against float64, derivative against finite differences,
// decomposition against kernel, device against device. An op of the registry without a case fails the suite.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "outrace/ops/ops.h"

namespace outrace {

struct OpCase {
  std::string op;             // name in the registry
  std::string name;           // op and variant
  std::vector<Shape> inputs;  // differentiable inputs
  double low = -2, high = 2;  // of their values
  std::function<Tensor(std::span<const Tensor>)> apply;
  double tolerance_factor = 1;  // of the forward check, in units of eps: how far rounding may grow beyond elementwise
  bool integers = false;        // also defined for integers, where it is exact
};

std::vector<OpCase> op_cases();
void add_index_cases(std::vector<OpCase>& out);  // op_cases_index.cpp

// The parts of the list that have a file of their own.
void add_normalization_cases(std::vector<OpCase>& out);  // op_cases_nn.cpp
void add_image_cases(std::vector<OpCase>& out);          // op_cases_image.cpp

// Their parts that stand in files of their own.
void add_reduce_cases(std::vector<OpCase>& out);

// Values of case inputs: spread over the range, no two alike (maxima have no ties), the same at each call.
std::vector<double> case_values(const OpCase& c, size_t input);

}  // namespace outrace
