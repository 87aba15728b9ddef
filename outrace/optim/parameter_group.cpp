#include "outrace/optim/parameter_group.h"

#include <set>

namespace outrace::optim {

std::vector<std::pair<std::string, Tensor>> checked_parameters(const ParameterGroups& groups, std::string_view who) {
  std::vector<std::pair<std::string, Tensor>> out;
  std::set<const Slot*> slots;
  std::set<std::string> names;
  for (const ParameterGroup& group : groups.groups)
    for (const auto& [name, tensor] : group.parameters.entries) {
      out.emplace_back(group.parameters.named ? name : std::to_string(out.size()), tensor);
      if (!tensor.requires_grad())
        fail(ErrorKind::value, "[", who, "] a parameter of shape ", tensor.shape(), " does not require a gradient");
      if (!slots.insert(&tensor.slot()).second)
        fail(ErrorKind::value, "[", who, "] the parameter ", out.back().first, " stands there twice");
      if (!names.insert(out.back().first).second)
        fail(ErrorKind::value, "[", who, "] two parameters have the name ", out.back().first);
    }
  if (out.empty()) fail(ErrorKind::value, "[", who, "] got no parameters");
  return out;
}

}  // namespace outrace::optim
