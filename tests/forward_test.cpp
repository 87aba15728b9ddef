// label: backend
// Every op case in f32 on every device found, against float64 on the CPU from the same numbers.
#include <gtest/gtest.h>

#include <algorithm>

#include "op_cases.h"
#include "outrace/backend/backend.h"

namespace outrace {
namespace {

TEST(Forward, EveryOpOnEveryDeviceAgainstFloat64) {
  for (Device device : found_devices())
    for (const OpCase& c : op_cases()) {
      SCOPED_TRACE(cat(c.name, " on ", device));
      std::vector<Tensor> narrow, wide;
      for (size_t i = 0; i < c.inputs.size(); ++i) {
        const std::vector<double> v = case_values(c, i);
        const std::vector<float> rounded(v.begin(), v.end());
        narrow.push_back(Tensor::from(rounded, c.inputs[i], device));
        wide.push_back(Tensor::from(std::vector<double>(rounded.begin(), rounded.end()), c.inputs[i]));
      }
      const std::vector<double> got = c.apply(narrow).to_vector<double>();
      const std::vector<double> reference = c.apply(wide).to_vector<double>();
      ASSERT_EQ(got.size(), reference.size());
      // The case says how many roundings can add up; each is half an ulp of a number no larger than this.
      double largest = std::max(std::abs(c.low), std::abs(c.high));
      for (double r : reference) largest = std::max(largest, std::abs(r));
      const double tolerance = c.tolerance_factor * epsilon_of(DType::f32) / 2 * largest;
      for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], reference[i], tolerance) << i;
    }
}

}  // namespace
}  // namespace outrace
