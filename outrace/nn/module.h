// Module: a network or a part of one. Parameters and children register under names equal to PyTorch's state_dict.
#pragma once
#include <functional>
#include <memory>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

#include "outrace/core/function_ref.h"
#include "outrace/graph/tensor.h"

namespace outrace::nn {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

class Module;
// See register_forward_pre_hook and register_forward_hook.
using ForwardPreHook = std::function<Tensor(Module& module, const Tensor& x)>;
using ForwardHook = std::function<Tensor(Module& module, const Tensor& x, const Tensor& y)>;

// Takes the hook away again; does nothing when the module is gone or it was called before.
class HookHandle {
 public:
  void remove() {
    if (remove_) std::exchange(remove_, nullptr)();
  }

 private:
  friend class Module;
  explicit HookHandle(std::function<void()> remove) : remove_(std::move(remove)) {}
  std::function<void()> remove_;
};

struct LoadOptions {
  bool strict = true;  // missing and unexpected names are errors
};
struct LoadResult {
  std::vector<std::string> missing, unexpected;  // names of this module without a value; names that it has not
};

class Module {
 public:
  Module() = default;
  virtual ~Module() = default;
  Module(const Module&) = delete;  // children are registered by address
  Module& operator=(const Module&) = delete;

  // What the module computes. Modules of more than one input leave this one and declare a call operator of their own.
  virtual Tensor forward(const Tensor& x);
  // Calls the hooks and forward; errors inside name this module's path and the caller's line.
  Tensor operator()(const Tensor& x, std::source_location where = std::source_location::current());

  // Called before forward; what it returns, if defined, is the input instead. A captured step calls hooks when it is
  // recorded, not when it is replayed.
  HookHandle register_forward_pre_hook(ForwardPreHook hook);
  // Called after forward; what it returns, if defined, is the output instead.
  HookHandle register_forward_hook(ForwardHook hook);

  // Every trainable tensor below, each once, with its dotted name ("fc1.weight"), in order of registration.
  NamedTensors named_parameters() const;
  std::vector<Tensor> parameters() const;
  NamedTensors named_buffers() const;  // what is saved but not trained: running statistics
  // Parameters and buffers: the whole state, in PyTorch's names.
  NamedTensors state_dict() const;
  // Copies values by name, converted to this module's dtypes and devices. Throws Error(value) listing missing and
  // unexpected names if strict, and misshapen ones always; nothing is changed then.
  LoadResult load_state_dict(const NamedTensors& state, const LoadOptions& options = {});

  // This module ("") and all below with their dotted names, parents first.
  std::vector<std::pair<std::string, Module*>> named_modules();

  void train(bool on = true);  // evaluation mode is train(false)
  void eval() { train(false); }
  bool training() const { return *training_; }
  // Moves parameters and buffers; a dtype is for floating point ones only. Returns itself.
  Module& to(Device device);
  Module& to(DType dtype);
  // Whether parameters are trained. Returns itself.
  Module& requires_grad_(bool on = true);
  void zero_grad();
  int64_t parameter_count() const;
  const std::string& path() const { return path_; }
  std::string type() const;                             // "Linear"
  virtual std::string arguments() const { return ""; }  // "1000, 512", for summary()

 protected:
  Tensor register_parameter(std::string name, Tensor value);
  Tensor register_buffer(std::string name, Tensor value);
  // `child` must live as long as this module: a member, or owned by it.
  void register_module(std::string name, Module& child);
  // What operator() does around forward: path, mode, hooks. For call operators of more inputs, which see the first.
  Tensor called(const Tensor& x, std::source_location where, FunctionRef<Tensor(const Tensor& x)> fn);

 private:
  struct Entry {
    std::string name;
    Tensor tensor;
    bool trainable;
  };
  void set_path(const std::string& path);
  void collect(const std::string& prefix, const std::function<bool(const Entry&)>& wanted, NamedTensors& out) const;
  template <class Fn>
  void for_tensors(Fn&& fn);

  std::vector<Entry> entries_;
  std::vector<std::pair<std::string, Module*>> children_;
  std::string path_;
  std::shared_ptr<bool> training_ = std::make_shared<bool>(true);  // shared with recordings, which may outlive us
  template <class Hook>
  using Hooks = std::shared_ptr<std::vector<std::pair<int64_t, Hook>>>;
  template <class Hook>
  static HookHandle add_hook(Hooks<Hook>& hooks, Hook hook);
  Hooks<ForwardPreHook> pre_hooks_;  // null: none
  Hooks<ForwardHook> hooks_;
};

}  // namespace outrace::nn
