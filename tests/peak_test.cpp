// The measured roofs are plausible: wide bounds, since the tests may run beside other work, in a sanitizer or an
// emulator.
#include "outrace/backend/cpu/peak.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "outrace/backend/cpu/peak_kernels.h"
#include "outrace/core/aligned.h"
#include "outrace/core/cpu_info.h"
#include "outrace/core/thread.h"

namespace outrace {
namespace {

TEST(Peak, IsPlausible) {
  const Peak& peak = measured_peak();
  EXPECT_GT(peak.gflops_f32, 0.05 * num_threads());
  EXPECT_LT(peak.gflops_f32, 2000.0 * num_threads());  // 2 units x 16 lanes x 2 operations x 6 GHz = 384
  EXPECT_GT(peak.gflops_f64, 0.1 * peak.gflops_f32);
  EXPECT_LT(peak.gflops_f64, 2 * peak.gflops_f32);  // half of it on a quiet machine
  EXPECT_GT(peak.gb_per_s_copy, 0.05);
  EXPECT_LT(peak.gb_per_s_copy, 5000);
  EXPECT_EQ(&measured_peak(), &peak);
}

TEST(Peak, StreamCopyCopies) {
  const Isa before = active_isa();
  for (const Isa isa : {Isa::avx2, Isa::avx512}) {
    if (!cpu_info().supports(isa)) continue;
    set_active_isa(isa);
    const int64_t n = 4096;
    const AlignedArray<float> from = aligned_array<float>(n), to = aligned_array<float>(n);
    std::iota(from.get(), from.get() + n, 0.0f);
    std::fill(to.get(), to.get() + n, -1.0f);
    peak_kernels().stream_copy(from.get(), to.get(), n - 64);
    for (int64_t i = 0; i < n; ++i) ASSERT_EQ(to[i], i < n - 64 ? static_cast<float>(i) : -1.0f) << i;
    EXPECT_EQ(peak_kernels().multiply_add_f64(10) * 2, peak_kernels().multiply_add_f32(10)) << "half as many lanes";
  }
  set_active_isa(before);
}

}  // namespace
}  // namespace outrace
