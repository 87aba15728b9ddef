// oneDNN's sgemm for large plain products. It shares a product out among all threads and may split the sum among them,
// so we cut C into blocks by its size alone and give each block to one thread.
#include <omp.h>
#include <oneapi/dnnl/dnnl.h>

#include <algorithm>

#include "outrace/backend/cpu/gemm.h"
#include "outrace/core/error.h"
#include "outrace/core/thread.h"

namespace outrace::cpu {
namespace {

// Blocks of C: 64 or more of them keep threads evenly busy, while each still has enough arithmetic for its copies of A
// and B.
constexpr int64_t kBlockRows = 256, kBlockColumns = 512;

// Outside a parallel region oneDNN would start one of its own.
class OneThread {
 public:
  OneThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneThread() { omp_set_num_threads(before_); }
  OneThread(const OneThread&) = delete;

 private:
  int before_;
};

struct Operand {
  char transposed;
  int64_t stride;
};

// Row-major or its transpose; a dimension of size 1 fits any stride.
bool as_operand(int64_t rows, int64_t columns, int64_t row, int64_t col, Operand& out) {
  if ((col == 1 || columns == 1) && (row >= columns || rows == 1)) {
    out = {'N', std::max(row, columns)};
    return true;
  }
  if ((row == 1 || rows == 1) && (col >= rows || columns == 1)) {
    out = {'T', std::max(col, rows)};
    return true;
  }
  return false;
}

}  // namespace

const char* dnnl_gemm_why_not(const GemmCall<float>& call) {
  Operand unused;
  if (call.form != GemmForm::plain) return "oneDNN's sgemm reads plain matrices only";
  if (call.epilogue != nullptr) return "oneDNN's sgemm has no hook for an epilogue";
  if (!call.store_c) return "oneDNN's sgemm stores its result";
  if (!as_operand(call.m, call.k, call.a_row, call.a_col, unused)) return "oneDNN's sgemm wants A with one stride of 1";
  if (!as_operand(call.k, call.n, call.b_row, call.b_col, unused)) return "oneDNN's sgemm wants B with one stride of 1";
  return nullptr;
}

void dnnl_gemm(const GemmCall<float>& call, const GemmPointers<float>& p) {
  if (call.m == 0 || call.n == 0 || call.batch == 0) return;
  if (call.k == 0) {
    for (int64_t i = 0; i < call.batch; ++i) std::fill_n(p.c + i * call.c_batch, call.m * call.n, 0.0f);
    return;
  }
  Operand a, b;
  OUTRACE_ASSERT(as_operand(call.m, call.k, call.a_row, call.a_col, a) &&
                 as_operand(call.k, call.n, call.b_row, call.b_col, b));
  const int64_t row_blocks = (call.m + kBlockRows - 1) / kBlockRows,
                column_blocks = (call.n + kBlockColumns - 1) / kBlockColumns;
  parallel_for(call.batch * row_blocks * column_blocks, [&](int64_t task) {
    const OneThread guard;
    const int64_t batch = task / (row_blocks * column_blocks), block = task % (row_blocks * column_blocks);
    const int64_t m = block / column_blocks * kBlockRows, n = block % column_blocks * kBlockColumns;
    const dnnl_status_t status = dnnl_sgemm(
        a.transposed, b.transposed, std::min(kBlockRows, call.m - m), std::min(kBlockColumns, call.n - n), call.k, 1.0f,
        p.a + batch * call.a_batch + m * call.a_row, a.stride, p.b + batch * call.b_batch + n * call.b_col, b.stride,
        0.0f, p.c + batch * call.c_batch + m * call.n + n, call.n);
    OUTRACE_ASSERT(status == dnnl_success, "dnnl_sgemm: ", static_cast<int>(status));
  });
}

}  // namespace outrace::cpu
