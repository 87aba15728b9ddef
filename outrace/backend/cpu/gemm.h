// Dense products on the CPU: C[M, N] = A[M, K] * B[K, N], handed tile by tile to an epilogue while the tile is in
// cache. Letters: M rows of C, N columns of C, K the summed axis, W the panel width of a packed weight.
//
// A packed weight: the parameter [out, in] of a linear layer is kept as panels along `out`:
//   panel p holds rows p*W .. of the plain matrix as [in][w], w = W or what is left for the last panel; panels lie back
//   to back, so the packed form has exactly out*in elements and elementwise updates run over it as over a plain vector.
#pragma once
#include <cstdint>

namespace outrace::cpu {

enum class GemmForm : uint8_t {
  plain,          // A, B by strides, C row-major
  packed_weight,  // y[M, N] = x[M, K] * weight^T: B is a packed weight [out = N, in = K]; A by strides, C row-major
  packed_input,   // dx[M, N] = dy[M, K] * weight: B is a packed weight [out = K, in = N]; A by strides, C row-major
  packed_grad,    // dW[M, N] = dy^T * x: A (= dy^T) and B (= x) by strides; C is a packed weight [out = M, in = N]
};

// A finished block of C: `rows` segments of `length` elements. Segment r lies at tile + r * tile_stride and is
// elements index + r * index_stride ... of C as it is stored (row-major or packed). Each element of C is handed out
// once.
template <class T>
struct GemmBlock {
  T* tile;
  int64_t tile_stride;
  int64_t index, index_stride;
  int64_t rows, length;
  int64_t batch;  // which product of a batched call
};

template <class T>
struct GemmCall {
  GemmForm form = GemmForm::plain;
  int64_t m = 0, n = 0, k = 0;
  int64_t batch = 1;
  int64_t a_row = 0, a_col = 0, a_batch = 0;  // element strides
  int64_t b_row = 0, b_col = 0, b_batch = 0;  // unused for a packed weight
  int64_t c_batch = 0;
  // Null when C is stored and nothing follows. Called from several threads; scratch is per thread.
  void (*epilogue)(const void* context, const GemmBlock<T>& block) = nullptr;
  bool store_c = true;  // false: C is never written to memory, the epilogue's tile is scratch
};

// Pointers of one execution; c may be null when store_c is false.
template <class T>
struct GemmPointers {
  const T* a;
  const T* b;
  T* c;
  const void* epilogue_context;
};

// Panel width of packed weights for the active instruction set.
int64_t panel_width_f32();
int64_t panel_width_f64();
template <class T>
int64_t panel_width();
template <>
inline int64_t panel_width<float>() {
  return panel_width_f32();
}
template <>
inline int64_t panel_width<double>() {
  return panel_width_f64();
}

// plain [out, in] row-major -> packed and back.
template <class T>
void pack_weight(const T* plain, T* packed, int64_t out, int64_t in);
template <class T>
void unpack_weight(const T* packed, T* plain, int64_t out, int64_t in);

// Our own kernel. Order of summation depends on (m, n, k, form) and instruction set only, never on threads or on
// epilogue, and plain / packed_weight / packed_grad of the same product agree bit for bit.
template <class T>
void gemm(const GemmCall<T>& call, const GemmPointers<T>& p);

// The reference: one thread, sums in double.
template <class T>
void gemm_reference(const GemmCall<T>& call, const GemmPointers<T>& p);

// oneDNN's sgemm, cut by us into blocks of C that each run on one thread, so that bits do not depend on the thread
// count. Only plain f32 calls without epilogue; why_not says so.
const char* dnnl_gemm_why_not(const GemmCall<float>& call);
void dnnl_gemm(const GemmCall<float>& call, const GemmPointers<float>& p);

}  // namespace outrace::cpu
