// The handwritten digits that come with the library (data/digits), and the cut of any data set into training and test
// part.
#pragma once
#include <cstdint>
#include <vector>

namespace outrace {

struct Digits {
  static constexpr int64_t kPixels = 64;  // 8 x 8, row by row
  std::vector<float> images;              // [count][64], ink from 0 to 1
  std::vector<int64_t> labels;            // [count], 0 to 9
  int64_t count = 0;
};

// Unpacked at the first call, kept for the process's life.
const Digits& load_digits();

// Which samples train and which test; together each of 0..count-1 once, in random order.
struct Split {
  std::vector<int64_t> train;
  std::vector<int64_t> test;
};

// Puts round(count * test_share) samples into the test part. The same seed gives the same split on every machine.
Split split_indices(int64_t count, double test_share, uint64_t seed);

}  // namespace outrace
