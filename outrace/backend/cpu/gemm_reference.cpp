// The dense product as it is defined: one thread, sums in double, any form. What the fast kernels are tested against.
#include <algorithm>
#include <vector>

#include "outrace/backend/cpu/gemm.h"
#include "outrace/backend/cpu/gemm_kernels.h"

namespace outrace::cpu {
namespace {

// Where element (row, column) of a packed weight of `in` columns lies.
struct PackedIndex {
  int64_t out, in, wide;
  int64_t operator()(int64_t row, int64_t column) const {
    const int64_t first = row / wide * wide;
    return first * in + column * std::min(wide, out - first) + row - first;
  }
};

}  // namespace

template <class T>
void gemm_reference(const GemmCall<T>& call, const GemmPointers<T>& p) {
  const bool packed_c = call.form == GemmForm::packed_grad;
  const PackedIndex weight{call.n, call.k, panel_width<T>()}, input{call.k, call.n, panel_width<T>()},
      grad{call.m, call.n, panel_width<T>()};
  std::vector<T> result(static_cast<size_t>(call.m * call.n));
  for (int64_t batch = 0; batch < call.batch; ++batch) {
    const T* a = p.a + batch * call.a_batch;
    const T* b = p.b + batch * call.b_batch;
    for (int64_t m = 0; m < call.m; ++m)
      for (int64_t n = 0; n < call.n; ++n) {
        double sum = 0;
        for (int64_t k = 0; k < call.k; ++k) {
          int64_t at = k * call.b_row + n * call.b_col;
          if (call.form == GemmForm::packed_weight) at = weight(n, k);
          if (call.form == GemmForm::packed_input) at = input(k, n);
          sum += static_cast<double>(a[m * call.a_row + k * call.a_col]) * static_cast<double>(b[at]);
        }
        result[static_cast<size_t>(packed_c ? grad(m, n) : m * call.n + n)] = static_cast<T>(sum);
      }
    const int64_t count = call.m * call.n;
    T* c = call.store_c ? p.c + batch * call.c_batch : result.data();
    if (call.store_c) std::copy(result.begin(), result.end(), c);
    if (call.epilogue == nullptr) continue;
    const int64_t row_length = packed_c ? count : call.n;
    for (int64_t start = 0; start < count; start += row_length)
      for (int64_t i = 0; i < row_length; i += kGemmBlock) {
        const int64_t length = std::min(kGemmBlock, row_length - i);
        call.epilogue(p.epilogue_context, {c + start + i, length, start + i, length, 1, length, batch});
      }
  }
}

template void gemm_reference(const GemmCall<float>&, const GemmPointers<float>&);
template void gemm_reference(const GemmCall<double>&, const GemmPointers<double>&);

}  // namespace outrace::cpu
