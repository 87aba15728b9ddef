// The state of an optimizer, a scheduler or an average as a file can hold it: named tensors and named numbers.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "outrace/graph/tensor.h"

namespace outrace {

struct StateDict {
  std::vector<std::pair<std::string, Tensor>> tensors;
  std::vector<std::pair<std::string, double>> numbers;  // counts too: exact up to 2^53
};

// Takes a StateDict apart by name and gathers everything that does not fit, so that nothing is changed before all is
// known to be right.
class StateReader {
 public:
  // `who` names the reader in the error's text.
  StateReader(const StateDict& state, std::string_view who);
  // 0 and a note when the name is missing.
  double number(const std::string& name);
  // The same for a whole number from 0 to 2^53.
  int64_t count(const std::string& name);
  // Undefined and a note when the name is missing, or has another shape or no floating point type, or not the very type
  // `exactly`.
  Tensor tensor(const std::string& name, const Shape& shape, std::optional<DType> exactly = {});
  // The same where `name` may have any number of entries along a leading axis.
  Tensor stack(const std::string& name, const Shape& entry);
  void note(const std::string& what) { faults_ += " " + what; }
  // Throws Error(value) that lists the names missing, unexpected (never asked for) and misshapen.
  void finish() const;

 private:
  const Tensor* find(const std::string& name, std::optional<DType> exactly = {});

  std::string who_, missing_, shapes_, faults_;
  std::map<std::string, std::pair<const Tensor*, bool>> tensors_;  // and whether it was asked for
  std::map<std::string, std::pair<double, bool>> numbers_;
};

// The value as it is now, under a handle of its own: later assignments to `t` do not reach it.
Tensor snapshot(const Tensor& t);
// Gives `to` the value, with its dtype, on `device`. Recorded steps that hold the slot of `to` go on with it.
void restore(Tensor& to, const Tensor& value, Device device);

}  // namespace outrace
