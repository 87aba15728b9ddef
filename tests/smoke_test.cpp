// label: smoke
// Seconds that tell whether the whole path works: layers, loss, derivative, optimizer, capture, on every device found.
#include <gtest/gtest.h>

#include "outrace/outrace.h"

namespace outrace {
namespace {

TEST(Smoke, ASmallNetworkLearnsOnEveryDevice) {
  for (Device device : found_devices()) {
    SCOPED_TRACE(device.str());
    manual_seed(2);
    nn::Sequential net(std::make_shared<nn::Linear>(8, 32), std::make_shared<nn::Tanh>(),
                       std::make_shared<nn::Linear>(32, 3));
    net.to(device);
    optim::Adam adam(net.parameters(), {.lr = 0.01});
    const Tensor x = randn({48, 8}).to(device).eval();
    const Tensor y = randint(0, 3, {48}).to(device).eval();
    auto step = capture([&](const Tensor& a, const Tensor& b) {
      adam.zero_grad();
      Tensor loss = cross_entropy(net(a), b);
      loss.backward();
      adam.step();
      return loss;
    });
    const double first = step(x, y).item();
    for (int i = 0; i < 300; ++i) step(x, y);
    EXPECT_NEAR(first, std::log(3.0), 0.5);
    EXPECT_LT(step(x, y).item(), 0.2 * first);
  }
}

}  // namespace
}  // namespace outrace
