// Module: a network or a part of one. Parameters and children register under names equal to PyTorch's state_dict.
#pragma once
#include <memory>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

#include "outrace/graph/tensor.h"

namespace outrace::nn {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

class Module {
 public:
  Module() = default;
  virtual ~Module() = default;
  Module(const Module&) = delete;  // children are registered by address
  Module& operator=(const Module&) = delete;

  virtual Tensor forward(const Tensor& x) = 0;
  // Calls forward; errors inside name this module's path and the caller's line.
  Tensor operator()(const Tensor& x, std::source_location where = std::source_location::current());

  // Every trainable tensor below, each once, with its dotted name ("fc1.weight"), in order of registration.
  NamedTensors named_parameters() const;
  std::vector<Tensor> parameters() const;
  // Parameters and buffers: the whole state, in PyTorch's names.
  NamedTensors state_dict() const;
  // Copies values by name. Throws Error listing missing, unexpected and misshapen names; nothing is changed then.
  void load_state_dict(const NamedTensors& state);

  void train(bool on = true);  // evaluation mode is train(false)
  void eval() { train(false); }
  bool training() const { return *training_; }
  // Moves parameters and buffers. Returns itself.
  Module& to(Device device);
  Module& to(DType dtype);
  void zero_grad();
  int64_t parameter_count() const;
  const std::string& path() const { return path_; }

 protected:
  Tensor register_parameter(std::string name, Tensor value);
  Tensor register_buffer(std::string name, Tensor value);
  // `child` must live as long as this module: a member, or owned by it.
  void register_module(std::string name, Module& child);

 private:
  struct Entry {
    std::string name;
    Tensor tensor;
    bool trainable;
  };
  void set_path(const std::string& path);
  void collect(const std::string& prefix, bool trainable_only, NamedTensors& out) const;
  template <class Fn>
  void for_tensors(Fn&& fn);

  std::vector<Entry> entries_;
  std::vector<std::pair<std::string, Module*>> children_;
  std::string path_;
  std::shared_ptr<bool> training_ = std::make_shared<bool>(true);  // shared with recordings, which may outlive us
};

}  // namespace outrace::nn
