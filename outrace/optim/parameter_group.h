// The parameters of an optimizer, in groups with options of their own, each with the name that its state is saved
// under.
#pragma once
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "outrace/graph/tensor.h"

namespace outrace::optim {

// Tensors with names: those of Module::named_parameters(), or for bare tensors their positions "0", "1", ...
struct Parameters {
  std::vector<std::pair<std::string, Tensor>> entries;
  bool named = false;

  Parameters() = default;
  Parameters(std::vector<std::pair<std::string, Tensor>> tensors) : entries(std::move(tensors)), named(true) {}
  Parameters(const std::vector<Tensor>& tensors) {
    for (const Tensor& t : tensors) entries.emplace_back(std::string(), t);
  }
  Parameters(std::initializer_list<Tensor> tensors) : Parameters(std::vector<Tensor>(tensors)) {}
};

// What is not given is taken from the optimizer's options.
struct ParameterGroup {
  Parameters parameters;
  std::optional<double> lr = {}, weight_decay = {};
  std::optional<double> momentum = {};    // of SGD and RMSprop; beta1 of Adam and its kin
  std::optional<DType> state_dtype = {};  // of the optimizer's tensors; f32, for f64 parameters f64
};

// What an optimizer's constructor takes: tensors, named tensors, or groups of either.
struct ParameterGroups {
  std::vector<ParameterGroup> groups;

  ParameterGroups(std::vector<ParameterGroup> g) : groups(std::move(g)) {}
  ParameterGroups(std::initializer_list<ParameterGroup> g) : groups(g) {}
  ParameterGroups(std::vector<std::pair<std::string, Tensor>> tensors) : groups{{.parameters = std::move(tensors)}} {}
  ParameterGroups(const std::vector<Tensor>& tensors) : groups{{.parameters = tensors}} {}
  ParameterGroups(std::initializer_list<Tensor> tensors) : groups{{.parameters = tensors}} {}
};

// The entries of all groups in order, names filled in. Throws Error(value) when there are none, one does not require a
// gradient, one stands there twice, or two have one name.
std::vector<std::pair<std::string, Tensor>> checked_parameters(const ParameterGroups& groups, std::string_view who);

}  // namespace outrace::optim
