// Modules that hold modules. Names are PyTorch's: positions, or the keys.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "outrace/nn/module.h"

namespace outrace::nn {

// Modules to be called by the owner: list[i]. It cannot be called itself.
class ModuleList : public Module {
 public:
  ModuleList() = default;
  template <class... Modules>
  explicit ModuleList(std::shared_ptr<Modules>... modules) {
    (add(std::move(modules)), ...);
  }
  ModuleList& add(std::shared_ptr<Module> module) {
    register_module(std::to_string(modules_.size()), *module);
    modules_.push_back(std::move(module));
    return *this;
  }
  // Throws Error(value) for an index that is not there.
  Module& operator[](size_t i) const {
    if (i >= modules_.size()) fail(ErrorKind::value, "[ModuleList] no module ", i, "; there are ", modules_.size());
    return *modules_[i];
  }
  size_t size() const { return modules_.size(); }
  auto begin() const { return modules_.begin(); }
  auto end() const { return modules_.end(); }

 private:
  std::vector<std::shared_ptr<Module>> modules_;
};

// The same by name, in the order in which they came: dict["encoder"].
class ModuleDict : public Module {
 public:
  // Throws Error(value) if the name is taken.
  ModuleDict& add(const std::string& name, std::shared_ptr<Module> module) {
    if (contains(name)) fail(ErrorKind::value, "[ModuleDict] there is a module '", name, "' already");
    register_module(name, *module);
    modules_.emplace_back(name, std::move(module));
    return *this;
  }
  bool contains(const std::string& name) const { return find(name) != nullptr; }
  // Throws Error(value) for a name that is not there.
  Module& operator[](const std::string& name) const {
    Module* module = find(name);
    if (module == nullptr) fail(ErrorKind::value, "[ModuleDict] no module '", name, "'");
    return *module;
  }
  size_t size() const { return modules_.size(); }
  auto begin() const { return modules_.begin(); }
  auto end() const { return modules_.end(); }

 private:
  Module* find(const std::string& name) const {
    for (const auto& [known, module] : modules_)
      if (known == name) return module.get();
    return nullptr;
  }
  std::vector<std::pair<std::string, std::shared_ptr<Module>>> modules_;
};

}  // namespace outrace::nn
