// label: backend
// Op by op against float64: what is right passes on every device, and a fault planted in one kernel is named.
#include "outrace/graph/parity.h"

#include <gtest/gtest.h>

#include "outrace/backend/backend.h"
#include "outrace/backend/gpu/kernel_text.h"
#include "outrace/graph/autograd.h"
#include "outrace/graph/program_cache.h"
#include "outrace/nn/linear.h"
#include "outrace/ops/ops.h"

namespace outrace {
namespace {

OpParity parity_of(Device other) {
  ProgramCache::global().clear();
  manual_seed(3);
  nn::Linear first(12, 8), second(8, 5);
  const Tensor x = randn({7, 12}).eval(), y = randint(0, 5, {7}).eval();
  const Tensor loss = cross_entropy(second(relu(first(x))), y);
  std::vector<Tensor> parameters = first.parameters();
  for (const Tensor& p : second.parameters()) parameters.push_back(p);
  const std::vector<Tensor> gradients = grad(loss, parameters);
  return compare_ops(std::vector<Tensor>{loss}, gradients, other,
                     [](const Node& n) { return std::string(n.op->name); });
}

TEST(Parity, DevicesAreWithinTheBounds) {
  for (const Device d : found_devices()) {
    const OpParity p = parity_of(d);
    EXPECT_GE(p.forward_ops, 6);
    EXPECT_GE(p.backward_ops, 6);
    EXPECT_FALSE(p.first) << p.first->op << " on " << p.first->device.str();
    ASSERT_TRUE(p.worst_forward && p.worst_backward);
    EXPECT_LT(p.worst_forward->share(), 1);
    EXPECT_GT(p.worst_backward->share(), 0);  // f32 rounds somewhere: a comparison of nothing would say 0
  }
}

// What is wrong by little, with everything that reads it.
TEST(Parity, AFaultInOneKernelIsNamed) {
  struct Fault {
    const char *right, *wrong, *op;
    bool backward;
  };
  static const Fault* fault;
  const Fault faults[] = {
      {"total += LOG(row_sum(", "total += LOG(1.0001f * row_sum(", "cross_entropy", false},
      {"(c == chosen ? scale", "(c == chosen ? scale * 1.001f", "cross_entropy_grad", true},
  };
  for (const Device d : found_devices()) {
    if (d.type == DeviceType::cpu) continue;
    for (const Fault& f : faults) {
      fault = &f;
      gpu::edit_texts([](std::string text) {
        if (const size_t at = text.find(fault->right); at != std::string::npos)
          text.replace(at, std::string(fault->right).size(), fault->wrong);
        return text;
      });
      const OpParity p = parity_of(d);
      gpu::edit_texts(nullptr);
      ASSERT_TRUE(p.first) << f.op;
      EXPECT_EQ(p.first->op, f.op);
      EXPECT_EQ(p.first->backward, f.backward);
      EXPECT_EQ(p.first->device, d);
      EXPECT_EQ(p.first->layer, f.op);  // as this test names layers
      EXPECT_GT(p.first->error, p.first->bound);
    }
  }
}

}  // namespace
}  // namespace outrace
