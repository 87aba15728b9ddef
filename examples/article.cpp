// The program of the article: a small network, trained; another processor is one changed line.
#include <cstdio>

#include "outrace/outrace.h"
using namespace outrace;

struct SimpleNet : nn::Module {
  nn::Linear fc1{1000, 512};
  nn::ReLU relu;
  nn::Linear fc2{512, 10};
  SimpleNet() {
    register_module("fc1", fc1);
    register_module("fc2", fc2);
  }
  Tensor forward(const Tensor& x) override { return fc2(relu(fc1(x))); }
};

int main() {
  const Device device("cpu");  // the one line to change: "cuda", "opencl:0"
  const int batches = 1000, batch_size = 64;
  const Tensor inputs = randn({batches, batch_size, 1000}).to(device).eval();
  const Tensor labels = randint(0, 10, {batches, batch_size}).to(device).eval();

  SimpleNet model;
  model.to(device);
  nn::CrossEntropyLoss criterion;
  optim::Adam optimizer(model.parameters(), {.lr = 0.001});

  std::printf("Training on %s\n", device.str().c_str());
  for (int i = 0; i < batches; ++i) {
    optimizer.zero_grad();
    Tensor outputs = model(inputs[i]);
    Tensor loss = criterion(outputs, labels[i]);
    loss.backward();
    optimizer.step();
    if (i % 100 == 99) std::printf("Batch [%d/%d], Loss: %.4f\n", i + 1, batches, loss.item());
  }
}
