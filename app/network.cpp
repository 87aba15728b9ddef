#include "app/network.h"

#include <algorithm>

namespace outrace::app {

Network::Network(const Sizes& sizes, DType dtype)
    : fc1_(sizes.inputs, sizes.hidden, {.dtype = dtype}), fc2_(sizes.hidden, sizes.outputs, {.dtype = dtype}) {
  register_module("fc1", fc1_);
  register_module("relu", relu_);
  register_module("fc2", fc2_);
}

Batches::Batches(const Sizes& sizes, int64_t wanted, int64_t most_bytes, DType dtype, Device device)
    : count(std::clamp<int64_t>(most_bytes / (sizes.batch * sizes.inputs * size_of(dtype)), 1, wanted)) {
  inputs = randn({count, sizes.batch, sizes.inputs}, {.dtype = dtype}).to(device).eval();
  labels = randint(0, sizes.outputs, {count, sizes.batch}).to(device).eval();
}

Training::Training(const Sizes& sizes, const TrainingOptions& options)
    : loop_(options.loop),
      network_(sizes, options.dtype),
      optimizer_(network_.to(options.device).parameters(), {.lr = options.lr}),
      captured_([this](const Tensor& x, const Tensor& y) { return plain_step(x, y); }) {}

Tensor Training::step(const Tensor& inputs, const Tensor& labels) {
  return loop_ == Loop::captured ? captured_(inputs, labels) : plain_step(inputs, labels);
}

Tensor Training::plain_step(const Tensor& inputs, const Tensor& labels) {
  optimizer_.zero_grad();
  Tensor outputs = network_(inputs);
  Tensor loss = criterion_(outputs, labels);
  if (loop_ == Loop::item) loss.item();
  loss.backward();
  optimizer_.step();
  return loss;
}

}  // namespace outrace::app
