#include "outrace/nn/module.h"

#include <algorithm>
#include <map>

#include "outrace/graph/recorder.h"
#include "outrace/graph/scope.h"
#include "outrace/ops/ops.h"

namespace outrace::nn {

Tensor Module::operator()(const Tensor& x, std::source_location where) {
  ModuleScope scope(path_, where);
  if (CaptureLog* log = Recorder::current().capture) log->training.emplace_back(training_, *training_);
  return forward(x);
}

Tensor Module::register_parameter(std::string name, Tensor value) {
  value.eval();
  value.requires_grad_();
  entries_.push_back({std::move(name), value, true});
  return value;
}

Tensor Module::register_buffer(std::string name, Tensor value) {
  value.eval();
  entries_.push_back({std::move(name), value, false});
  return value;
}

void Module::register_module(std::string name, Module& child) {
  child.set_path(path_.empty() ? name : path_ + "." + name);
  children_.emplace_back(std::move(name), &child);
}

void Module::set_path(const std::string& path) {
  path_ = path;
  for (auto& [name, child] : children_) child->set_path(path + "." + name);
}

void Module::collect(const std::string& prefix, bool trainable_only, NamedTensors& out) const {
  for (const Entry& e : entries_)
    if (e.trainable || !trainable_only) out.emplace_back(prefix + e.name, e.tensor);
  for (const auto& [name, child] : children_) child->collect(prefix + name + ".", trainable_only, out);
}

NamedTensors Module::named_parameters() const {
  NamedTensors all, once;
  collect("", true, all);
  for (auto& entry : all) {
    const bool seen =
        std::any_of(once.begin(), once.end(), [&](const auto& o) { return &o.second.slot() == &entry.second.slot(); });
    if (!seen) once.push_back(std::move(entry));
  }
  return once;
}

std::vector<Tensor> Module::parameters() const {
  std::vector<Tensor> out;
  for (auto& [name, tensor] : named_parameters()) out.push_back(tensor);
  return out;
}

NamedTensors Module::state_dict() const {
  NamedTensors all;
  collect("", false, all);
  return all;
}

void Module::load_state_dict(const NamedTensors& state) {
  const NamedTensors mine = state_dict();
  std::map<std::string, const Tensor*> given;
  for (const auto& [name, tensor] : state) given[name] = &tensor;
  std::string missing, unexpected, shapes;
  for (const auto& [name, tensor] : mine) {
    auto it = given.find(name);
    if (it == given.end())
      missing += " " + name;
    else if (!(it->second->shape() == tensor.shape()))
      shapes += cat(" ", name, " (", it->second->shape(), " given, ", tensor.shape(), " needed)");
  }
  for (const auto& [name, tensor] : given)
    if (std::none_of(mine.begin(), mine.end(), [&](const auto& m) { return m.first == name; }))
      unexpected += " " + name;
  if (!missing.empty() || !unexpected.empty() || !shapes.empty())
    fail(ErrorKind::value, "[load_state_dict] names do not fit;", missing.empty() ? "" : " missing:", missing,
         unexpected.empty() ? "" : " unexpected:", unexpected, shapes.empty() ? "" : " wrong shape:", shapes);
  NoGrad off;
  for (auto [name, tensor] : mine) {
    const Tensor value = given[name]->to(tensor.dtype()).to(tensor.device());
    value.eval();
    tensor.assign(value);
  }
}

void Module::train(bool on) {
  *training_ = on;
  for (auto& [name, child] : children_) child->train(on);
}

template <class Fn>
void Module::for_tensors(Fn&& fn) {
  for (Entry& e : entries_) fn(e.tensor);
  for (auto& [name, child] : children_) child->for_tensors(fn);
}

// A moved tensor has another device or dtype, which assign() refuses on purpose: the slot itself gets the new node.
Module& Module::to(Device device) {
  NoGrad off;
  for_tensors([&](Tensor& t) {
    if (t.device() == device) return;
    Tensor moved = t.detach().to(device);
    moved.eval();
    t.replace_everywhere(moved);
  });
  return *this;
}

Module& Module::to(DType dtype) {
  NoGrad off;
  for_tensors([&](Tensor& t) {
    if (t.dtype() == dtype || !is_float(t.dtype())) return;
    Tensor moved = t.detach().to(dtype);
    moved.eval();
    t.replace_everywhere(moved);
  });
  return *this;
}

void Module::zero_grad() {
  for (Tensor& t : parameters()) t.zero_grad();
}

int64_t Module::parameter_count() const {
  int64_t n = 0;
  for (const auto& [name, tensor] : named_parameters()) n += tensor.numel();
  return n;
}

}  // namespace outrace::nn
