// How long a step takes: samples of consecutive steps after a warm-up, the best of them the figure.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

namespace outrace::app {

class Stopwatch {
 public:
  double ms() const {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

struct Timing {
  std::vector<double> samples = {};  // ms a step, each the mean over `steps_a_sample`
  int64_t steps_a_sample = 0;
  double best() const { return samples.empty() ? 0 : *std::ranges::min_element(samples); }
};

}  // namespace outrace::app
