// label: null
// The reader of golden files; the values themselves are checked where the code they belong to is tested.
#include "tests/golden.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

namespace outrace {
namespace {

TEST(Golden, joins_names_and_keeps_shapes) {
  const Golden golden("train_relu");
  EXPECT_EQ(golden.array("inputs").shape, (std::vector<int64_t>{20, 16, 20}));
  EXPECT_EQ(golden.values("inputs").size(), 20u * 16 * 20);
  EXPECT_EQ(golden.array("start/0.weight").shape, (std::vector<int64_t>{16, 20}));
  EXPECT_EQ(golden.names("start"), (std::vector<std::string>{"0.bias", "0.weight", "1.bias", "1.weight"}));
  EXPECT_EQ(golden.names("adam"), (std::vector<std::string>{"f32", "f64"}));
}

TEST(Golden, reads_what_json_cannot_hold) {
  const Golden golden("elementwise");
  const std::vector<double>& x = golden.values("unary/neg/special/x");
  EXPECT_TRUE(x[0] == 0 && !std::signbit(x[0]));
  EXPECT_TRUE(x[1] == 0 && std::signbit(x[1]));
  EXPECT_EQ(x[2], HUGE_VAL);
  EXPECT_EQ(x[3], -HUGE_VAL);
  EXPECT_TRUE(std::isnan(x[4]));
  EXPECT_EQ(x[5], 5e-324);
}

TEST(Golden, reads_single_numbers) {
  const Golden golden("cross_entropy");
  EXPECT_EQ(golden.number("smoothing_value"), 0.1);
  EXPECT_TRUE(golden.has("plain/mean/y"));
  EXPECT_TRUE(golden.array("plain/mean/y").shape.empty());
  EXPECT_THROW(golden.number("plain/none/y"), std::runtime_error);
}

TEST(Golden, refuses_unknown_names) {
  EXPECT_THROW(Golden("absent"), std::runtime_error);
  EXPECT_THROW(Golden("softmax").array("absent"), std::runtime_error);
  EXPECT_FALSE(Golden("softmax").has("absent"));
  EXPECT_TRUE(Golden("softmax").names("absent").empty());
}

}  // namespace
}  // namespace outrace
