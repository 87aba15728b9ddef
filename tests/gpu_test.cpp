// label: backend
// OpenCL through whichever device is found (PoCL in the suite).
#include <gtest/gtest.h>

#include "outrace/backend/backend.h"
#include "outrace/ops/ops.h"

namespace outrace {
namespace {

TEST(Gpu, FirstSteps) {
  for (const Device d : found_devices()) {
    if (d == Device()) continue;
    const Tensor x = Tensor::from(std::vector<float>{1, 2, 3, 4, 5, 6}, {2, 3}).to(d);
    EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{1, 2, 3, 4, 5, 6}));
    EXPECT_EQ((x * 2 + 1).to_vector<float>(), (std::vector<float>{3, 5, 7, 9, 11, 13}));
    EXPECT_EQ((x.t() * 2).to_vector<float>(), (std::vector<float>{2, 8, 4, 10, 6, 12}));
    EXPECT_EQ(sum(x * x, {.axes = {0}}).to_vector<float>(), (std::vector<float>{17, 29, 45}));
    EXPECT_EQ(sum(x, {.axes = {1}}).to_vector<float>(), (std::vector<float>{6, 15}));
    EXPECT_EQ(sum(x.to(DType::i64)).to_vector<int64_t>(), (std::vector<int64_t>{21}));
  }
}

}  // namespace
}  // namespace outrace
