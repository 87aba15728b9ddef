// Reference values made with PyTorch (tests/golden/README.md).
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace outrace {

struct GoldenArray {
  std::vector<int64_t> shape;  // empty: one number
  std::vector<double> values;  // row by row
};

// The arrays below one name of a golden file; names of nested groups are joined with '/'.
class Golden {
 public:
  // Reads tests/golden/<file>.json. Throws std::runtime_error if it is absent or damaged.
  explicit Golden(std::string_view file);

  // Throw std::runtime_error that lists what exists.
  const GoldenArray& array(const std::string& name) const;
  const std::vector<double>& values(const std::string& name) const { return array(name).values; }
  double number(const std::string& name) const;

  bool has(const std::string& name) const { return arrays_.contains(name); }
  // The names directly below `group` ("" is the top), each once, in alphabetical order.
  std::vector<std::string> names(const std::string& group = "") const;

 private:
  std::string file_;
  std::map<std::string, GoldenArray> arrays_;
};

}  // namespace outrace
