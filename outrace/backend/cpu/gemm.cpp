// Our dense product: forms, threads, packing of weights. How a thread works through its part is in gemm_rectangle.h,
// the arithmetic in gemm_simd.cpp.
//
// One loop serves all forms. For packed_grad it computes the transposed product (rows = in, columns = out), so that a
// panel of the gradient is finished where the weight's panel lies; for packed_input it turns the weight's panels while
// it copies them. Each element of C is one chain of FMAs over k = 0, 1, 2 ..., begun anew at each chunk of K, and the
// chunks are added in order. No other size, and no cut made for threads or caches, changes a bit of it.
#include "outrace/backend/cpu/gemm.h"

#include <omp.h>

#include <algorithm>

#include "outrace/backend/cpu/gemm_kernels.h"
#include "outrace/backend/cpu/gemm_rectangle.h"
#include "outrace/core/error.h"
#include "outrace/core/thread.h"

namespace outrace::cpu {
namespace {

// Multiply-adds below which a second thread does not pay: about 5 us on one core. Entering the pool costs about 1 us
// while its threads still spin (128^3: 42.8 us with one thread, 22.3 with two). Low enough that the small products of
// the article's step (64 x 512 x 10) keep the pool awake between the large ones.
constexpr int64_t kParallelWork = 1 << 18;

template <class T>
Product<T> product_of(const GemmCall<T>& call, const GemmPointers<T>& p, int64_t batch) {
  const T* a = p.a + batch * call.a_batch;
  const T* b = p.b + batch * call.b_batch;
  T* c = call.store_c ? p.c + batch * call.c_batch : nullptr;
  Product<T> out;
  if (call.form == GemmForm::packed_grad) {
    out = {call.n, call.m, call.k, b, call.b_col, call.b_row, a, call.a_col, call.a_row, Right::strided, true, c};
  } else {
    const Right right = call.form == GemmForm::packed_weight  ? Right::weight
                        : call.form == GemmForm::packed_input ? Right::turned
                                                              : Right::strided;
    out = {call.m, call.n, call.k, a, call.a_row, call.a_col, b, call.b_row, call.b_col, right, false, c};
  }
  if (call.k == 0) {  // nothing is read, so nothing need be copied
    out.a_row = out.a_col = 0;
    out.right = Right::weight;
  }
  return out;
}

// Parts of `total` as even as possible: where part `index` of `parts` begins.
int64_t cut(int64_t total, int64_t parts, int64_t index) {
  return total / parts * index + std::min(index, total % parts);
}

// How many parts the rows are cut into when `threads` share one product. Bits do not depend on it.
int64_t row_parts(int64_t rows, int64_t panels, int64_t wide, int64_t threads) {
  int64_t best = 1, best_cost = INT64_MAX;
  for (int64_t parts = 1; parts <= threads; ++parts) {
    if (threads % parts != 0) continue;
    const int64_t r = (rows + parts - 1) / parts, c = (panels + threads / parts - 1) / (threads / parts) * wide;
    const int64_t cost =
        r * c + 5 * (r + c);  // copying or fetching an operand's number takes as long as some 5 multiply-adds
    if (cost < best_cost) best_cost = cost, best = parts;
  }
  return best;
}

}  // namespace

int64_t panel_width_f32() { return 2 * gemm_kernels<float>().lanes; }
int64_t panel_width_f64() { return 2 * gemm_kernels<double>().lanes; }

template <class T>
void pack_weight(const T* plain, T* packed, int64_t out, int64_t in) {
  gemm_kernels<T>().pack_weight(plain, packed, out, in);
}

template <class T>
void unpack_weight(const T* packed, T* plain, int64_t out, int64_t in) {
  const int64_t wide = panel_width<T>();
  for (int64_t row = 0; row < out; row += wide) {
    const int64_t width = std::min(wide, out - row);
    for (int64_t j = 0; j < width; ++j)
      for (int64_t i = 0; i < in; ++i) plain[(row + j) * in + i] = packed[row * in + i * width + j];
  }
}

template <class T>
void gemm(const GemmCall<T>& call, const GemmPointers<T>& p) {
  if (call.m == 0 || call.n == 0 || call.batch == 0) return;
  OUTRACE_ASSERT(call.store_c || call.epilogue != nullptr, "a product that goes nowhere");
  const Product<T> first = product_of(call, p, 0);
  const int64_t wide = panel_width<T>(), panels = (first.columns + wide - 1) / wide;
  // A single row costs as much as four: it only fetches the weight.
  const int64_t work = std::max<int64_t>(first.rows, 4) * panels * wide * std::max<int64_t>(first.k, 16) * call.batch;
  const int64_t threads = work < kParallelWork || omp_in_parallel() ? 1 : num_threads();
  const int64_t shared =
      call.batch % threads == 0 || call.batch >= 4 * threads ? 1 : threads;  // threads on one product
  const int64_t row_cut = row_parts(first.rows, panels, wide, shared), panel_cut = shared / row_cut;
  const auto task = [&](int64_t i) {
    const int64_t batch = i / shared, part = i % shared, pr = part / panel_cut, pp = part % panel_cut;
    const Product<T> product = product_of(call, p, batch);
    Rectangle area{cut(first.rows, row_cut, pr), 0, cut(panels, panel_cut, pp), 0};
    area.rows = cut(first.rows, row_cut, pr + 1) - area.row;
    area.panels = cut(panels, panel_cut, pp + 1) - area.panel;
    if (area.rows > 0 && area.panels > 0) RectangleTask<T>(call, p.epilogue_context, product, batch).run(area);
  };
  if (threads == 1)
    for (int64_t i = 0; i < call.batch; ++i) task(i);
  else
    parallel_for(call.batch * shared, task);
}

template void pack_weight(const float*, float*, int64_t, int64_t);
template void pack_weight(const double*, double*, int64_t, int64_t);
template void unpack_weight(const float*, float*, int64_t, int64_t);
template void unpack_weight(const double*, double*, int64_t, int64_t);
template void gemm(const GemmCall<float>&, const GemmPointers<float>&);
template void gemm(const GemmCall<double>&, const GemmPointers<double>&);

}  // namespace outrace::cpu
