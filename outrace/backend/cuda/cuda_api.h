// The functions of NVIDIA's driver and compiler that this backend calls, found at run time.
#pragma once
#include <cuda.h>
#include <nvrtc.h>

#include <string>

namespace outrace::cuda {

// clang-format off
#define OUTRACE_CUDA_FUNCTIONS(X)                                                                          \
  X(init, cuInit) X(driver_version, cuDriverGetVersion) X(error_name, cuGetErrorName)                      \
  X(device_count, cuDeviceGetCount) X(device_get, cuDeviceGet) X(device_name, cuDeviceGetName)             \
  X(device_attribute, cuDeviceGetAttribute) X(device_memory, cuDeviceTotalMem)                             \
  X(retain_context, cuDevicePrimaryCtxRetain) X(set_context, cuCtxSetCurrent)                              \
  X(create_stream, cuStreamCreate) X(synchronize, cuStreamSynchronize) X(wait_event, cuStreamWaitEvent)    \
  X(begin_capture, cuStreamBeginCapture) X(end_capture, cuStreamEndCapture)                                \
  X(create_event, cuEventCreate) X(record_event, cuEventRecord) X(synchronize_event, cuEventSynchronize)   \
  X(elapsed, cuEventElapsedTime)                                                                           \
  X(create_pool, cuMemPoolCreate) X(set_pool, cuMemPoolSetAttribute) X(trim_pool, cuMemPoolTrimTo)         \
  X(allocate_async, cuMemAllocFromPoolAsync) X(free_async, cuMemFreeAsync)                                 \
  X(allocate, cuMemAlloc) X(free, cuMemFree) X(free_memory, cuMemGetInfo) X(allocate_host, cuMemHostAlloc) \
  X(copy_in, cuMemcpyHtoDAsync) X(copy_out, cuMemcpyDtoHAsync) X(copy, cuMemcpyDtoDAsync)                  \
  X(copy_peer, cuMemcpyPeerAsync) X(fill, cuMemsetD8Async)                                                 \
  X(load_module, cuModuleLoadData) X(get_function, cuModuleGetFunction) X(launch, cuLaunchKernel)          \
  X(create_graph, cuGraphCreate) X(destroy_graph, cuGraphDestroy) X(add_kernel, cuGraphAddKernelNode)      \
  X(add_child, cuGraphAddChildGraphNode) X(instantiate, cuGraphInstantiateWithFlags)                       \
  X(set_kernel, cuGraphExecKernelNodeSetParams) X(set_child, cuGraphExecChildGraphNodeSetParams)           \
  X(launch_graph, cuGraphLaunch) X(destroy_exec, cuGraphExecDestroy)
#define OUTRACE_NVRTC_FUNCTIONS(X)                                                                         \
  X(version, nvrtcVersion) X(error_text, nvrtcGetErrorString)                                              \
  X(arch_count, nvrtcGetNumSupportedArchs) X(archs, nvrtcGetSupportedArchs)                                \
  X(create, nvrtcCreateProgram) X(compile, nvrtcCompileProgram) X(destroy, nvrtcDestroyProgram)            \
  X(log_size, nvrtcGetProgramLogSize) X(log, nvrtcGetProgramLog)                                           \
  X(cubin_size, nvrtcGetCUBINSize) X(cubin, nvrtcGetCUBIN)
// clang-format on
#define OUTRACE_MEMBER(member, function) decltype(&function) member = nullptr;

struct Api {
  OUTRACE_CUDA_FUNCTIONS(OUTRACE_MEMBER)
};

struct Nvrtc {
  OUTRACE_NVRTC_FUNCTIONS(OUTRACE_MEMBER)
};

// False where the library or a function is missing; `why` then says what, in one line. `only`: as for open_library().
bool open_api(const std::string& only, Api& api, std::string* why);
bool open_nvrtc(const std::string& only, Nvrtc& nvrtc, std::string* why);

std::string error_name(const Api& api, CUresult code);  // "CUDA_ERROR_OUT_OF_MEMORY"

}  // namespace outrace::cuda
