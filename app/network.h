// The article's network with its sizes open, random batches for it, and a step of training: what `race` and `bench`
// run, written as a user of the library would.
#pragma once
#include <cstdint>
#include <string_view>

#include "outrace/outrace.h"

namespace outrace::app {

struct Sizes {
  int64_t inputs = 1000, hidden = 512, outputs = 10, batch = 64;

  // Of the matrix products of one step: each layer's forward and weight gradient, and the hidden layer's gradient; 2
  // operations a multiply-add. The first layer's input needs no gradient.
  double flops() const {
    const double first = 2.0 * batch * inputs * hidden, second = 2.0 * batch * hidden * outputs;
    return 2 * first + 3 * second;
  }
};

class Network : public nn::Module {
 public:
  Network(const Sizes& sizes, DType dtype);
  Tensor forward(const Tensor& x) override { return fc2_(relu_(fc1_(x))); }

 private:
  nn::Linear fc1_;
  nn::ReLU relu_;
  nn::Linear fc2_;
};

// `wanted` batches made beforehand, fewer where they would take more than `most_bytes`.
struct Batches {
  Batches(const Sizes& sizes, int64_t wanted, int64_t most_bytes, DType dtype, Device device);
  int64_t count;
  Tensor inputs, labels;  // [count, batch, inputs], [count, batch]
};

enum class Loop : uint8_t {
  captured,  // the step recorded once and replayed
  plain,     // the article's loop
  item,      // the same with loss.item() before backward()
};

struct TrainingOptions {
  Device device = {};
  DType dtype = DType::f32;
  double lr = 1e-3;
  Loop loop = Loop::plain;
};

class Training {
 public:
  Training(const Sizes& sizes, const TrainingOptions& options);
  // One step of Adam on the mean cross-entropy. Returns the loss before it.
  Tensor step(const Tensor& inputs, const Tensor& labels);
  nn::Module& network() { return network_; }

 private:
  Tensor plain_step(const Tensor& inputs, const Tensor& labels);

  Loop loop_;
  Network network_;
  nn::CrossEntropyLoss criterion_;
  optim::Adam optimizer_;
  Captured<std::function<Tensor(const Tensor&, const Tensor&)>> captured_;
};

}  // namespace outrace::app
