#include "standin/cuda_standin.h"

#include <cublasLt.h>
#include <cuda.h>
#include <nvrtc.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace {

using outrace::standin::Call;
using outrace::standin::State;

struct Function {
  std::string name;
};
struct Node {
  std::string name;  // of a kernel; "library" for a child
};
struct Graph {
  std::vector<std::unique_ptr<Node>> nodes;
};
struct Exec {
  size_t nodes;
};
struct Stream {
  bool capturing = false;
  size_t captured = 0;
};
struct Event {
  int number;
};
struct Program {
  std::string text, log;
};

State state;
int events = 0;

CUresult note(const char* function, const void* stream = nullptr, std::string what = "",
              std::vector<uint64_t> numbers = {}) {
  state.calls.push_back({function, stream, std::move(what), std::move(numbers)});
  return CUDA_SUCCESS;
}

std::vector<uint64_t> parameters(void** params) {
  std::vector<uint64_t> out;
  for (; params != nullptr && *params != nullptr; ++params) {
    uint64_t cell = 0;
    std::memcpy(&cell, *params, sizeof cell);
    out.push_back(cell);
  }
  return out;
}

std::string event_name(CUevent e) { return "event " + std::to_string(reinterpret_cast<Event*>(e)->number); }

CUresult allocate(CUdeviceptr* out, size_t bytes) {
  size_t used = 0;
  for (const auto& [address, size] : state.live) used += size;
  if (static_cast<int64_t>(used + bytes) > state.room) return CUDA_ERROR_OUT_OF_MEMORY;
  *out = reinterpret_cast<CUdeviceptr>(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
  std::memset(reinterpret_cast<void*>(*out), 0, bytes);
  state.live[*out] = bytes;
  return CUDA_SUCCESS;
}

CUresult release(CUdeviceptr p) {
  if (state.live.erase(p) == 0) return CUDA_ERROR_INVALID_VALUE;
  std::free(reinterpret_cast<void*>(p));
  return CUDA_SUCCESS;
}

}  // namespace

#pragma GCC visibility push(default)
State* cuda_standin() { return &state; }

// ---- the driver ----

CUresult cuInit(unsigned) { return static_cast<CUresult>(state.init_code); }
CUresult cuDriverGetVersion(int* v) { return *v = 13000, CUDA_SUCCESS; }
CUresult cuGetErrorName(CUresult code, const char** name) {
  switch (code) {
    case CUDA_ERROR_OUT_OF_MEMORY: *name = "CUDA_ERROR_OUT_OF_MEMORY"; break;
    case CUDA_ERROR_NO_DEVICE: *name = "CUDA_ERROR_NO_DEVICE"; break;
    case CUDA_ERROR_ILLEGAL_ADDRESS: *name = "CUDA_ERROR_ILLEGAL_ADDRESS"; break;
    case CUDA_ERROR_INVALID_VALUE: *name = "CUDA_ERROR_INVALID_VALUE"; break;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetCount(int* n) { return *n = state.devices, CUDA_SUCCESS; }
CUresult cuDeviceGet(CUdevice* d, int i) { return *d = i, CUDA_SUCCESS; }
CUresult cuDeviceGetName(char* name, int bytes, CUdevice d) {
  std::strncpy(name, ("Stand-in " + std::to_string(d)).c_str(), static_cast<size_t>(bytes));
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int* v, CUdevice_attribute what, CUdevice) {
  switch (what) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *v = state.capability / 10; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *v = state.capability % 10; break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *v = 132; break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK: *v = 48 << 10; break;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *v = 1024; break;
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED: *v = state.has_pools ? 1 : 0; break;
    default: *v = 0;
  }
  return CUDA_SUCCESS;
}
CUresult cuDeviceTotalMem(size_t* bytes, CUdevice) { return *bytes = size_t{1} << 36, CUDA_SUCCESS; }
CUresult cuDevicePrimaryCtxRetain(CUcontext* c, CUdevice d) {
  return *c = reinterpret_cast<CUcontext>(static_cast<uintptr_t>(d) + 1), CUDA_SUCCESS;
}
CUresult cuCtxSetCurrent(CUcontext) { return CUDA_SUCCESS; }
CUresult cuStreamCreate(CUstream* s, unsigned) {
  return *s = reinterpret_cast<CUstream>(new Stream), note("cuStreamCreate", *s);
}
CUresult cuStreamSynchronize(CUstream s) {
  note("cuStreamSynchronize", s);
  return static_cast<CUresult>(state.wait_code);
}
CUresult cuStreamWaitEvent(CUstream s, CUevent e, unsigned) { return note("cuStreamWaitEvent", s, event_name(e)); }
CUresult cuStreamBeginCapture(CUstream s, CUstreamCaptureMode) {
  *reinterpret_cast<Stream*>(s) = {.capturing = true, .captured = 0};
  return note("cuStreamBeginCapture", s);
}
CUresult cuStreamEndCapture(CUstream s, CUgraph* out) {
  auto* stream = reinterpret_cast<Stream*>(s);
  auto* graph = new Graph;
  for (size_t i = 0; i < stream->captured; ++i) graph->nodes.push_back(std::make_unique<Node>());
  stream->capturing = false;
  *out = reinterpret_cast<CUgraph>(graph);
  return note("cuStreamEndCapture", s);
}
CUresult cuEventCreate(CUevent* e, unsigned) {
  return *e = reinterpret_cast<CUevent>(new Event{events++}), CUDA_SUCCESS;
}
CUresult cuEventRecord(CUevent e, CUstream s) { return note("cuEventRecord", s, event_name(e)); }
CUresult cuEventSynchronize(CUevent e) {
  note("cuEventSynchronize", nullptr, event_name(e));
  return static_cast<CUresult>(state.wait_code);
}
CUresult cuEventElapsedTime(float* ms, CUevent, CUevent) { return *ms = 0.001f, CUDA_SUCCESS; }
CUresult cuMemPoolCreate(CUmemoryPool* p, const CUmemPoolProps*) {
  return *p = reinterpret_cast<CUmemoryPool>(&state), note("cuMemPoolCreate");
}
CUresult cuMemPoolSetAttribute(CUmemoryPool, CUmemPool_attribute, void*) { return CUDA_SUCCESS; }
CUresult cuMemPoolTrimTo(CUmemoryPool, size_t) { return note("cuMemPoolTrimTo"); }
CUresult cuMemAllocFromPoolAsync(CUdeviceptr* p, size_t bytes, CUmemoryPool, CUstream s) {
  note("cuMemAllocFromPoolAsync", s, "", {bytes});
  return allocate(p, bytes);
}
CUresult cuMemFreeAsync(CUdeviceptr p, CUstream s) {
  note("cuMemFreeAsync", s);
  return release(p);
}
CUresult cuMemAlloc(CUdeviceptr* p, size_t bytes) {
  note("cuMemAlloc", nullptr, "", {bytes});
  return allocate(p, bytes);
}
CUresult cuMemFree(CUdeviceptr p) {
  note("cuMemFree");
  return release(p);
}
CUresult cuMemGetInfo(size_t* free, size_t* total) {
  *total = size_t{1} << 36;
  *free = size_t{1} << 20;
  return CUDA_SUCCESS;
}
CUresult cuMemHostAlloc(void** p, size_t bytes, unsigned) {
  return *p = std::malloc(bytes), note("cuMemHostAlloc", nullptr, "", {bytes});
}
CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, size_t bytes, CUstream s) {
  std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  return note("cuMemcpyHtoDAsync", s, "", {bytes});
}
CUresult cuMemcpyDtoHAsync(void* to, CUdeviceptr from, size_t bytes, CUstream s) {
  std::memcpy(to, reinterpret_cast<void*>(from), bytes);
  return note("cuMemcpyDtoHAsync", s, "", {bytes});
}
CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream s) {
  std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes);
  return note("cuMemcpyDtoDAsync", s, "", {bytes});
}
CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, size_t bytes, CUstream s) {
  std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes);
  return note("cuMemcpyPeerAsync", s, "", {bytes});
}
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char byte, size_t bytes, CUstream s) {
  std::memset(reinterpret_cast<void*>(to), byte, bytes);
  return note("cuMemsetD8Async", s, "", {bytes});
}
CUresult cuModuleLoadData(CUmodule* m, const void* image) {
  return *m = reinterpret_cast<CUmodule>(const_cast<void*>(image)), note("cuModuleLoadData");
}
CUresult cuModuleGetFunction(CUfunction* f, CUmodule, const char* name) {
  return *f = reinterpret_cast<CUfunction>(new Function{name}), CUDA_SUCCESS;
}
CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                        unsigned, CUstream s, void** params, void**) {
  std::vector<uint64_t> numbers{gx, gy, gz, bx, by, bz};
  for (const uint64_t n : parameters(params)) numbers.push_back(n);
  note("cuLaunchKernel", s, reinterpret_cast<Function*>(f)->name, std::move(numbers));
  return static_cast<CUresult>(state.launch_code);
}
CUresult cuGraphCreate(CUgraph* g, unsigned) {
  return *g = reinterpret_cast<CUgraph>(new Graph), note("cuGraphCreate");
}
CUresult cuGraphDestroy(CUgraph g) {
  delete reinterpret_cast<Graph*>(g);
  return note("cuGraphDestroy");
}
CUresult cuGraphAddKernelNode(CUgraphNode* node, CUgraph g, const CUgraphNode* before, size_t count,
                              const CUDA_KERNEL_NODE_PARAMS* p) {
  auto& nodes = reinterpret_cast<Graph*>(g)->nodes;
  // In order: each node has the one before it as its only dependency.
  if (count != (nodes.empty() ? 0 : 1)) return CUDA_ERROR_INVALID_VALUE;
  if (count == 1 && *before != reinterpret_cast<CUgraphNode>(nodes.back().get())) return CUDA_ERROR_INVALID_VALUE;
  nodes.push_back(std::make_unique<Node>(Node{reinterpret_cast<Function*>(p->func)->name}));
  *node = reinterpret_cast<CUgraphNode>(nodes.back().get());
  return note("cuGraphAddKernelNode", nullptr, nodes.back()->name, parameters(p->kernelParams));
}
CUresult cuGraphAddChildGraphNode(CUgraphNode* node, CUgraph g, const CUgraphNode*, size_t, CUgraph child) {
  auto& nodes = reinterpret_cast<Graph*>(g)->nodes;
  nodes.push_back(std::make_unique<Node>(Node{"library"}));
  *node = reinterpret_cast<CUgraphNode>(nodes.back().get());
  return note("cuGraphAddChildGraphNode", nullptr, "library", {reinterpret_cast<Graph*>(child)->nodes.size()});
}
CUresult cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph g, unsigned long long) {
  const size_t nodes = reinterpret_cast<Graph*>(g)->nodes.size();
  *exec = reinterpret_cast<CUgraphExec>(new Exec{nodes});
  return note("cuGraphInstantiate", nullptr, "", {nodes});
}
CUresult cuGraphExecKernelNodeSetParams(CUgraphExec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* p) {
  note("cuGraphExecKernelNodeSetParams", nullptr, reinterpret_cast<Node*>(node)->name, parameters(p->kernelParams));
  return state.update_fails ? CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE : CUDA_SUCCESS;
}
CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec, CUgraphNode, CUgraph) {
  note("cuGraphExecChildGraphNodeSetParams");
  return state.update_fails ? CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE : CUDA_SUCCESS;
}
CUresult cuGraphLaunch(CUgraphExec exec, CUstream s) {
  note("cuGraphLaunch", s, "", {reinterpret_cast<Exec*>(exec)->nodes});
  return static_cast<CUresult>(state.launch_code);
}
CUresult cuGraphExecDestroy(CUgraphExec exec) {
  delete reinterpret_cast<Exec*>(exec);
  return note("cuGraphExecDestroy");
}

// ---- the compiler: its machine code is the text ----

nvrtcResult nvrtcVersion(int* major, int* minor) { return *major = 13, *minor = 0, NVRTC_SUCCESS; }
const char* nvrtcGetErrorString(nvrtcResult) { return "NVRTC_ERROR_COMPILATION"; }
nvrtcResult nvrtcGetNumSupportedArchs(int* n) { return *n = 3, NVRTC_SUCCESS; }
nvrtcResult nvrtcGetSupportedArchs(int* archs) { return archs[0] = 75, archs[1] = 80, archs[2] = 90, NVRTC_SUCCESS; }
nvrtcResult nvrtcCreateProgram(nvrtcProgram* p, const char* text, const char*, int, const char* const*,
                               const char* const*) {
  *p = reinterpret_cast<nvrtcProgram>(new Program{text, ""});
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcCompileProgram(nvrtcProgram p, int, const char* const* options) {
  auto* program = reinterpret_cast<Program*>(p);
  state.texts.push_back(program->text);
  note("nvrtcCompileProgram", nullptr, options[0]);
  if (state.compiles) return NVRTC_SUCCESS;
  program->log = "kernel(1): error: planted";
  return NVRTC_ERROR_COMPILATION;
}
nvrtcResult nvrtcDestroyProgram(nvrtcProgram* p) { return delete reinterpret_cast<Program*>(*p), NVRTC_SUCCESS; }
nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram p, size_t* n) {
  return *n = reinterpret_cast<Program*>(p)->log.size() + 1, NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetProgramLog(nvrtcProgram p, char* log) {
  return std::strcpy(log, reinterpret_cast<Program*>(p)->log.c_str()), NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetCUBINSize(nvrtcProgram p, size_t* n) {
  return *n = reinterpret_cast<Program*>(p)->text.size() + 1, NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetCUBIN(nvrtcProgram p, char* out) {
  return std::strcpy(out, reinterpret_cast<Program*>(p)->text.c_str()), NVRTC_SUCCESS;
}

// ---- products ----

namespace {
// What a description says, by attribute.
struct Described {
  std::map<int, uint64_t> values;
};
uint64_t number(const void* from, size_t bytes) {
  uint64_t out = 0;
  std::memcpy(&out, from, std::min(bytes, sizeof out));
  return out;
}
}  // namespace

cublasStatus_t cublasLtCreate(cublasLtHandle_t* h) {
  return *h = reinterpret_cast<cublasLtHandle_t>(&state), CUBLAS_STATUS_SUCCESS;
}
size_t cublasLtGetVersion() { return 130001; }
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* d, cublasComputeType_t compute, cudaDataType_t) {
  auto* made = new Described;
  made->values[CUBLASLT_MATMUL_DESC_COMPUTE_TYPE] = compute;
  return *d = reinterpret_cast<cublasLtMatmulDesc_t>(made), CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t what,
                                              const void* value, size_t bytes) {
  reinterpret_cast<Described*>(d)->values[what] = number(value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t d) {
  return delete reinterpret_cast<Described*>(d), CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* l, cudaDataType type, uint64_t rows, uint64_t columns,
                                          int64_t ld) {
  auto* made = new Described;
  made->values[CUBLASLT_MATRIX_LAYOUT_TYPE] = type;
  made->values[CUBLASLT_MATRIX_LAYOUT_ROWS] = rows;
  made->values[CUBLASLT_MATRIX_LAYOUT_COLS] = columns;
  made->values[CUBLASLT_MATRIX_LAYOUT_LD] = static_cast<uint64_t>(ld);
  if (static_cast<uint64_t>(ld) < rows) return CUBLAS_STATUS_INVALID_VALUE;
  return *l = reinterpret_cast<cublasLtMatrixLayout_t>(made), CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t l, cublasLtMatrixLayoutAttribute_t what,
                                                const void* value, size_t bytes) {
  reinterpret_cast<Described*>(l)->values[what] = number(value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t l) {
  return delete reinterpret_cast<Described*>(l), CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* p) {
  return *p = reinterpret_cast<cublasLtMatmulPreference_t>(new Described), CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t,
                                                    const void*, size_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t p) {
  return delete reinterpret_cast<Described*>(p), CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t d, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t, int, cublasLtMatmulHeuristicResult_t* out,
                                              int* found) {
  *found = 0;
  const uint64_t tail = reinterpret_cast<Described*>(d)->values[CUBLASLT_MATMUL_DESC_EPILOGUE];
  if (!state.has_algorithms || (!state.has_tails && tail != CUBLASLT_EPILOGUE_DEFAULT))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  *found = 1;
  *out = {};
  out->workspaceSize = 4096;
  return CUBLAS_STATUS_SUCCESS;
}
// In f32 the product is computed, so that layouts, steps and tails can be checked by their results; other types are
// only noted. Numbers: epilogue, compute type, rows, columns, depth, transposes, addresses of both matrices and the
// result.
namespace {
void multiply_f32(std::map<int, uint64_t>& desc, const float* a, std::map<int, uint64_t>& la, const float* b,
                  std::map<int, uint64_t>& lb, float* c, std::map<int, uint64_t>& lc, int64_t depth) {
  const auto signed_of = [](std::map<int, uint64_t>& m, int key) { return static_cast<int64_t>(m[key]); };
  const int64_t rows = signed_of(lc, CUBLASLT_MATRIX_LAYOUT_ROWS), columns = signed_of(lc, CUBLASLT_MATRIX_LAYOUT_COLS);
  const int64_t batch = std::max<int64_t>(1, signed_of(lc, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT));
  const bool ta = desc[CUBLASLT_MATMUL_DESC_TRANSA] != CUBLAS_OP_N,
             tb = desc[CUBLASLT_MATMUL_DESC_TRANSB] != CUBLAS_OP_N;
  const int64_t lda = signed_of(la, CUBLASLT_MATRIX_LAYOUT_LD), ldb = signed_of(lb, CUBLASLT_MATRIX_LAYOUT_LD);
  const int64_t ldc = signed_of(lc, CUBLASLT_MATRIX_LAYOUT_LD);
  const uint64_t tail = desc[CUBLASLT_MATMUL_DESC_EPILOGUE];
  const auto* bias = reinterpret_cast<const float*>(desc[CUBLASLT_MATMUL_DESC_BIAS_POINTER]);
  for (int64_t s = 0; s < batch; ++s) {
    const float* x = a + s * signed_of(la, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
    const float* y = b + s * signed_of(lb, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
    float* z = c + s * signed_of(lc, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
    for (int64_t j = 0; j < columns; ++j)
      for (int64_t i = 0; i < rows; ++i) {
        double sum = (tail & CUBLASLT_EPILOGUE_BIAS) != 0 ? bias[i] : 0;
        for (int64_t k = 0; k < depth; ++k)
          sum += static_cast<double>(ta ? x[i * lda + k] : x[k * lda + i]) * (tb ? y[k * ldb + j] : y[j * ldb + k]);
        if ((tail & CUBLASLT_EPILOGUE_RELU) != 0 && sum < 0) sum = 0;
        if ((tail & CUBLASLT_EPILOGUE_GELU) != 0)
          sum *= 0.5 * (1 + std::tanh(0.7978845608028654 * (sum + 0.044715 * sum * sum * sum)));
        z[j * ldc + i] = static_cast<float>(sum);
      }
  }
}
}  // namespace

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t d, const void*, const void* a,
                              cublasLtMatrixLayout_t la, const void* b, cublasLtMatrixLayout_t lb, const void*,
                              const void*, cublasLtMatrixLayout_t, void* c, cublasLtMatrixLayout_t lc,
                              const cublasLtMatmulAlgo_t*, void* workspace, size_t bytes, cudaStream_t s) {
  if (bytes > 0 && workspace == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  auto& desc = reinterpret_cast<Described*>(d)->values;
  auto& left = reinterpret_cast<Described*>(la)->values;
  auto& right = reinterpret_cast<Described*>(lb)->values;
  auto& result = reinterpret_cast<Described*>(lc)->values;
  const bool transposed = desc[CUBLASLT_MATMUL_DESC_TRANSA] != CUBLAS_OP_N;
  const uint64_t depth = left[transposed ? CUBLASLT_MATRIX_LAYOUT_ROWS : CUBLASLT_MATRIX_LAYOUT_COLS];
  auto* stream = reinterpret_cast<Stream*>(s);
  if (stream->capturing) ++stream->captured;
  note("cublasLtMatmul", s, "",
       {desc[CUBLASLT_MATMUL_DESC_EPILOGUE], desc[CUBLASLT_MATMUL_DESC_COMPUTE_TYPE],
        result[CUBLASLT_MATRIX_LAYOUT_ROWS], result[CUBLASLT_MATRIX_LAYOUT_COLS], depth,
        desc[CUBLASLT_MATMUL_DESC_TRANSA], desc[CUBLASLT_MATMUL_DESC_TRANSB], reinterpret_cast<uint64_t>(a),
        reinterpret_cast<uint64_t>(b), reinterpret_cast<uint64_t>(c)});
  if (state.multiplies && left[CUBLASLT_MATRIX_LAYOUT_TYPE] == CUDA_R_32F && !stream->capturing)
    multiply_f32(desc, static_cast<const float*>(a), left, static_cast<const float*>(b), right, static_cast<float*>(c),
                 result, static_cast<int64_t>(depth));
  return CUBLAS_STATUS_SUCCESS;
}
