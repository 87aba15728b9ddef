#include "outrace/backend/cpu/peak.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "outrace/backend/cpu/peak_kernels.h"
#include "outrace/core/aligned.h"
#include "outrace/core/cpu_info.h"
#include "outrace/core/thread.h"

namespace outrace {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// 2^14 rounds of 48 multiply-adds are 0.1 to 0.2 ms; the best sample counts, for others run on the machine too.
constexpr int64_t kRounds = 1 << 14;
constexpr double kArithmeticSeconds = 0.05;  // a type; the first half also wakes the clock frequency
constexpr double kMemorySeconds = 0.1;

// The sum of each thread's best rate: threads do not start at the same moment, so a common clock would count the start.
double best_gflops(double (*multiply_add)(int64_t)) {
  std::vector<double> best(static_cast<size_t>(num_threads()), 0.0);
  parallel_for(num_threads(), [&](int64_t thread) {
    double rate = 0;
    for (const auto begin = Clock::now(); seconds_since(begin) < kArithmeticSeconds;) {
      const auto start = Clock::now();
      const double operations = multiply_add(kRounds);
      rate = std::max(rate, operations / seconds_since(start));
    }
    best[static_cast<size_t>(thread)] = rate * 1e-9;
  });
  double sum = 0;
  for (const double rate : best) sum += rate;
  return sum;
}

// Asks for 2 MiB pages: touching 256 MiB for the first time takes 0.15 s in 4 KiB pages, a tenth of that in huge ones.
AlignedArray<float> huge_array(int64_t count) {
  constexpr uintptr_t kHugePage = uintptr_t{2} << 20;
  AlignedArray<float> array = aligned_array<float>(count);
  const uintptr_t first = (reinterpret_cast<uintptr_t>(array.get()) + kHugePage - 1) / kHugePage * kHugePage;
  const uintptr_t last = reinterpret_cast<uintptr_t>(array.get() + count) / kHugePage * kHugePage;
  if (first < last) madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
  return array;
}

// Two arrays to copy between: 256 MiB together, or four times the last cache where that is more; an eighth of the
// memory at most.
class CopyArrays {
 public:
  CopyArrays() {
    const int64_t wanted = std::max<int64_t>(int64_t{256} << 20, 4 * cpu_info().l3_bytes);
    const int64_t bytes = std::min({wanted, int64_t{1} << 30, cpu_info().memory_bytes / 8}) / 2;
    tasks_ = bytes / static_cast<int64_t>(sizeof(float)) / kTask;
    if (tasks_ == 0) return;
    from_ = huge_array(tasks_ * kTask);
    to_ = huge_array(tasks_ * kTask);
    parallel_for(tasks_, [&](int64_t i) {
      std::fill_n(from_.get() + i * kTask, kTask, 1.0f);
      std::fill_n(to_.get() + i * kTask, kTask, 2.0f);
    });
  }
  // GB/s of one copy; 0 without memory for it.
  double sample() {
    if (tasks_ == 0) return 0;
    const auto start = Clock::now();
    parallel_for(tasks_,
                 [&](int64_t i) { peak_kernels().stream_copy(from_.get() + i * kTask, to_.get() + i * kTask, kTask); });
    return 2.0 * static_cast<double>(tasks_ * kTask) * sizeof(float) / seconds_since(start) * 1e-9;
  }

 private:
  // Tasks of 1 MiB, the same cut for filling and copying: each thread copies what lies in its own memory node.
  static constexpr int64_t kTask = (int64_t{1} << 20) / static_cast<int64_t>(sizeof(float));
  int64_t tasks_ = 0;
  AlignedArray<float> from_, to_;
};

double best_copy_gb_per_s() {
  CopyArrays arrays;
  double best = 0;
  const auto begin = Clock::now();
  for (int sample = 0; sample < 2 || seconds_since(begin) < kMemorySeconds; ++sample)
    best = std::max(best, arrays.sample());
  return best;
}

}  // namespace

const Peak& measured_peak() {
  static const Peak peak = [] {
    const PeakKernels& kernels = peak_kernels();
    return Peak{.gflops_f32 = best_gflops(kernels.multiply_add_f32),
                .gflops_f64 = best_gflops(kernels.multiply_add_f64),
                .gb_per_s_copy = best_copy_gb_per_s()};
  }();
  return peak;
}

double sample_copy_gb_per_s() {
  static CopyArrays arrays;
  return arrays.sample();
}

}  // namespace outrace
