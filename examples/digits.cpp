// Handwritten digits, 8 x 8: split, load, train, and see how many of those held out the network reads right.
#include <cstdio>

#include "outrace/outrace.h"
using namespace outrace;

struct DigitNet : nn::Module {
  nn::Linear fc1{64, 512};
  nn::ReLU relu;
  nn::Linear fc2{512, 10};
  DigitNet() {
    register_module("fc1", fc1);
    register_module("fc2", fc2);
  }
  Tensor forward(const Tensor& x) override { return fc2(relu(fc1(x))); }
};

double evaluate(nn::Module& model, data::DataLoader& loader) {
  NoGrad no_grad;
  model.eval();
  int64_t correct = 0;
  loader.start_epoch(0);
  while (auto batch = loader.next()) correct += data::count_correct(model(batch->inputs), batch->labels);
  model.train();
  return static_cast<double>(correct) / static_cast<double>(loader.rows());
}

int main() {
  const Device device("cpu");
  const int epochs = 60;
  manual_seed(1);

  const Digits& digits = load_digits();
  const Split split = split_indices(digits.count, 0.2, /*seed=*/1);
  data::DataLoader train_set(digits.images, {64}, digits.labels, split.train,
                             {.batch_size = 64, .shuffle = true, .seed = 1, .device = device});
  data::DataLoader test_set(digits.images, {64}, digits.labels, split.test, {.batch_size = 360, .device = device});

  DigitNet model;
  model.to(device);
  nn::CrossEntropyLoss criterion;
  optim::Adam optimizer(model.parameters(), {.lr = 0.001});

  for (int epoch = 0; epoch < epochs; ++epoch) {
    Tensor loss;
    train_set.start_epoch(epoch);
    while (auto batch = train_set.next()) {
      optimizer.zero_grad();
      loss = criterion(model(batch->inputs), batch->labels);
      loss.backward();
      optimizer.step();
    }
    if (epoch % 10 == 9)
      std::printf("Epoch [%d/%d], Loss: %.4f, Accuracy: %.2f %%\n", epoch + 1, epochs, loss.item(),
                  100 * evaluate(model, test_set));
  }
}
