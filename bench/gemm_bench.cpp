// The dense product beside oneDNN's sgemm, one thread (by CPU time) and two (by the clock). Counter: GFLOP/s. On a busy
// machine read the largest of several runs:
//   gemm_bench --benchmark_repetitions=20 --benchmark_report_aggregates_only=true
#include <benchmark/benchmark.h>

#include <algorithm>
#include <string>
#include <vector>

#include "outrace/backend/cpu/gemm.h"
#include "outrace/core/aligned.h"
#include "outrace/core/thread.h"

namespace {

using namespace outrace;
using cpu::GemmBlock;
using cpu::GemmCall;
using cpu::GemmForm;

enum class Kernel { ours, ours_with_epilogue, dnnl };

struct Case {
  const char* name;
  GemmForm form;
  int64_t m, n, k;
  bool a_turned = false, b_turned = false;
};

constexpr Case kCases[] = {
    // The step of Linear 1000-512 / ReLU / 512-10 with batch 64; then the same products plain.
    {"hidden_forward", GemmForm::packed_weight, 64, 512, 1000},
    {"hidden_grad", GemmForm::packed_grad, 512, 1000, 64, true},
    {"hidden_input", GemmForm::packed_input, 64, 1000, 512},
    {"output_forward", GemmForm::packed_weight, 64, 10, 512},
    {"output_grad", GemmForm::packed_grad, 10, 512, 64, true},
    {"output_input", GemmForm::packed_input, 64, 512, 10},
    {"hidden_forward_plain", GemmForm::plain, 64, 512, 1000, false, true},
    {"hidden_grad_plain", GemmForm::plain, 512, 1000, 64, true, false},
    {"hidden_input_plain", GemmForm::plain, 64, 1000, 512},
    // Inference, a tiny network, large squares.
    {"batch_1", GemmForm::packed_weight, 1, 512, 1000},
    {"tiny_forward", GemmForm::packed_weight, 32, 32, 16},
    {"tiny_grad", GemmForm::packed_grad, 32, 16, 32, true},
    {"square_128", GemmForm::plain, 128, 128, 128},
    {"square_1000", GemmForm::plain, 1000, 1000, 1000},
    {"square_1024", GemmForm::plain, 1024, 1024, 1024},
    {"square_1024_nt", GemmForm::plain, 1024, 1024, 1024, false, true},
    {"square_1024_tn", GemmForm::plain, 1024, 1024, 1024, true, false},
};

// Stands for the tile program: reads the tile once, writes ReLU of it.
void relu(const void* context, const GemmBlock<float>& block) {
  float* out = static_cast<float*>(const_cast<void*>(context));
  for (int64_t r = 0; r < block.rows; ++r)
    for (int64_t i = 0; i < block.length; ++i)
      out[block.index + r * block.index_stride + i] = std::max(block.tile[r * block.tile_stride + i], 0.0f);
}

void run(benchmark::State& state, const Case& c, Kernel kernel, int threads) {
  set_num_threads(threads);
  const auto a = aligned_array<float>(c.m * c.k), b = aligned_array<float>(c.k * c.n),
             out = aligned_array<float>(c.m * c.n);
  std::fill_n(a.get(), c.m * c.k, 0.5f);
  std::fill_n(b.get(), c.k * c.n, 0.25f);
  std::fill_n(out.get(), c.m * c.n, 0.0f);
  GemmCall<float> call{.form = c.form, .m = c.m, .n = c.n, .k = c.k};
  call.a_row = c.a_turned ? 1 : c.k, call.a_col = c.a_turned ? c.m : 1;
  call.b_row = c.b_turned ? 1 : c.n, call.b_col = c.b_turned ? c.k : 1;
  if (kernel == Kernel::ours_with_epilogue) call.epilogue = &relu, call.store_c = false;
  const cpu::GemmPointers<float> pointers{a.get(), b.get(), out.get(), out.get()};
  for (auto _ : state) {
    if (kernel == Kernel::dnnl)
      cpu::dnnl_gemm(call, pointers);
    else
      cpu::gemm(call, pointers);
    benchmark::ClobberMemory();
  }
  const double flops = 2.0 * static_cast<double>(c.m * c.n * c.k);
  state.counters["GFLOP/s"] = benchmark::Counter(flops * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
}

}  // namespace

int main(int argc, char** argv) {
  const auto largest = [](const std::vector<double>& v) { return *std::max_element(v.begin(), v.end()); };
  for (const Case& c : kCases)
    for (const int threads : {1, 2})
      for (const Kernel kernel : {Kernel::ours, Kernel::ours_with_epilogue, Kernel::dnnl}) {
        if (kernel == Kernel::dnnl && c.form != GemmForm::plain) continue;
        const char* suffix[] = {"", "_relu", "_dnnl"};
        const std::string name =
            std::string(c.name) + suffix[static_cast<int>(kernel)] + "/threads:" + std::to_string(threads);
        auto* registered = benchmark::RegisterBenchmark(
            name.c_str(), [&c, kernel, threads](benchmark::State& state) { run(state, c, kernel, threads); });
        registered->ComputeStatistics("max", largest);
        if (threads > 1) registered->UseRealTime();
      }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
