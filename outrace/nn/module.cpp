#include "outrace/nn/module.h"

#include <cxxabi.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <typeinfo>

#include "outrace/graph/recorder.h"
#include "outrace/graph/scope.h"
#include "outrace/ops/ops.h"

namespace outrace::nn {

Tensor Module::forward(const Tensor&) {
  fail(ErrorKind::value, "[", type(), "] this module is not called with one tensor");
}

Tensor Module::operator()(const Tensor& x, std::source_location where) {
  return called(x, where, [this](const Tensor& in) { return forward(in); });
}

Tensor Module::called(const Tensor& x, std::source_location where, FunctionRef<Tensor(const Tensor& x)> fn) {
  const ModuleScope scope(path_, where);
  if (CaptureLog* log = Recorder::current().capture) log->training.emplace_back(training_, *training_);
  if (!pre_hooks_ && !hooks_) return fn(x);
  Tensor in = x;
  // Copies: a hook may remove itself.
  const auto before = pre_hooks_ ? *pre_hooks_ : std::vector<std::pair<int64_t, ForwardPreHook>>();
  for (const auto& [id, hook] : before)
    if (Tensor other = hook(*this, in); other.defined()) in = other;
  Tensor y = fn(in);
  const auto after = hooks_ ? *hooks_ : std::vector<std::pair<int64_t, ForwardHook>>();
  for (const auto& [id, hook] : after)
    if (Tensor other = hook(*this, in, y); other.defined()) y = other;
  return y;
}

template <class Hook>
HookHandle Module::add_hook(Hooks<Hook>& hooks, Hook hook) {
  if (!hooks) hooks = std::make_shared<std::vector<std::pair<int64_t, Hook>>>();
  static std::atomic<int64_t> next{0};  // never twice: a handle that was copied removes no other hook
  const int64_t id = next++;
  hooks->emplace_back(id, std::move(hook));
  return HookHandle([id, list = std::weak_ptr(hooks)] {
    if (const auto held = list.lock()) std::erase_if(*held, [id](const auto& entry) { return entry.first == id; });
  });
}
HookHandle Module::register_forward_pre_hook(ForwardPreHook hook) { return add_hook(pre_hooks_, std::move(hook)); }
HookHandle Module::register_forward_hook(ForwardHook hook) { return add_hook(hooks_, std::move(hook)); }

std::string Module::type() const {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(typeid(*this).name(), nullptr, nullptr, &status), &std::free);
  const std::string whole = name ? name.get() : typeid(*this).name();
  return whole.substr(whole.rfind(':') == std::string::npos ? 0 : whole.rfind(':') + 1);
}

Tensor Module::register_parameter(std::string name, Tensor value) {
  value.eval();
  value.requires_grad_();
  entries_.push_back({std::move(name), value, true});
  return value;
}

Tensor Module::register_buffer(std::string name, Tensor value) {
  value.eval();
  value.requires_grad_(false);  // its slot's: captured steps read the current value
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

void Module::collect(const std::string& prefix, const std::function<bool(const Entry&)>& wanted,
                     NamedTensors& out) const {
  for (const Entry& e : entries_)
    if (wanted(e)) out.emplace_back(prefix + e.name, e.tensor);
  for (const auto& [name, child] : children_) child->collect(prefix + name + ".", wanted, out);
}

NamedTensors Module::named_parameters() const {
  NamedTensors all, once;
  collect(
      "", [](const Entry& e) { return e.trainable; }, all);
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

NamedTensors Module::named_buffers() const {
  NamedTensors all;
  collect(
      "", [](const Entry& e) { return !e.trainable; }, all);
  return all;
}

NamedTensors Module::state_dict() const {
  NamedTensors all;
  collect(
      "", [](const Entry&) { return true; }, all);
  return all;
}

LoadResult Module::load_state_dict(const NamedTensors& state, const LoadOptions& options) {
  const NamedTensors mine = state_dict();
  std::map<std::string, const Tensor*> given;
  for (const auto& [name, tensor] : state) given[name] = &tensor;
  LoadResult result;
  std::string shapes;
  for (const auto& [name, tensor] : mine) {
    auto it = given.find(name);
    if (it == given.end())
      result.missing.push_back(name);
    else if (!(it->second->shape() == tensor.shape()))
      shapes += cat(" ", name, " (", it->second->shape(), " given, ", tensor.shape(), " needed)");
  }
  for (const auto& [name, tensor] : given)
    if (std::none_of(mine.begin(), mine.end(), [&](const auto& m) { return m.first == name; }))
      result.unexpected.push_back(name);
  const auto listed = [&](const char* what, const std::vector<std::string>& names) {
    std::string text = names.empty() || !options.strict ? "" : what;
    if (options.strict)
      for (const std::string& name : names) text += " " + name;
    return text;
  };
  const std::string missing = listed(" missing:", result.missing),
                    unexpected = listed(" unexpected:", result.unexpected);
  if (!missing.empty() || !unexpected.empty() || !shapes.empty())
    fail(ErrorKind::value, "[load_state_dict] names do not fit;", missing, unexpected,
         shapes.empty() ? "" : " wrong shape:", shapes);
  NoGrad off;
  for (auto [name, tensor] : mine) {
    const auto it = given.find(name);
    if (it == given.end()) continue;
    const Tensor value = it->second->to(tensor.dtype()).to(tensor.device());
    value.eval();
    tensor.assign(value);
  }
  return result;
}

std::vector<std::pair<std::string, Module*>> Module::named_modules() {
  std::vector<std::pair<std::string, Module*>> out{{"", this}};
  for (auto& [name, child] : children_)
    for (auto& [path, module] : child->named_modules())
      out.emplace_back(path.empty() ? name : name + "." + path, module);
  return out;
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

Module& Module::requires_grad_(bool on) {
  for (Tensor& t : parameters()) t.requires_grad_(on);
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
