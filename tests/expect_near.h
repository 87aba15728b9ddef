// Values of a tensor beside those that it should have.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "outrace/graph/tensor.h"

namespace outrace {

struct Tolerance {
  double absolute = 0, relative = 0;
  Tolerance(double a, double r = 0) : absolute(a), relative(r) {}
};

// Infinities and NaN must be where they are expected.
inline void expect_near(const Tensor& t, const std::vector<double>& expected, Tolerance tolerance,
                        const std::string& what = "") {
  const std::vector<double> got = t.to_vector<double>();
  ASSERT_EQ(got.size(), expected.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(expected[i])) {
      EXPECT_TRUE(std::isnan(got[i])) << what << " " << i;
    } else if (std::isinf(expected[i])) {
      EXPECT_EQ(got[i], expected[i]) << what << " " << i;
    } else {
      EXPECT_NEAR(got[i], expected[i], tolerance.absolute + tolerance.relative * std::abs(expected[i]))
          << what << " " << i;
    }
  }
}

}  // namespace outrace
