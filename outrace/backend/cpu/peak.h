// What this machine can do at best, measured: the roof against which kernels are judged.
#pragma once

namespace outrace {

struct Peak {
  double gflops_f32 = 0;  // fused multiply-adds (2 operations each) on all threads, in the active instruction set
  double gflops_f64 = 0;
  double gb_per_s_copy = 0;  // a copy beyond the caches; 10^9 bytes, those read plus those written, as STREAM counts
};

// Measured on the first call, in under 0.4 s, with num_threads() threads and active_isa() of that moment.
const Peak& measured_peak();

// One copy beyond the caches, counted as gb_per_s_copy is. For ratios on a machine whose memory others use as well:
// taken beside what it is compared to. The first call takes memory for it and keeps it.
double sample_copy_gb_per_s();

}  // namespace outrace
