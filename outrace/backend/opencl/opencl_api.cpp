#include "outrace/backend/opencl/opencl_api.h"

#include <dlfcn.h>

#include <utility>

#include "outrace/core/error.h"

namespace outrace::opencl {
namespace {

// The loader that every vendor's package brings or asks for.
constexpr const char* kLibrary = "libOpenCL.so.1";

struct Opened {
  Api api;
  bool whole = false;
  std::string why;
};

Opened open_library() {
  Opened out;
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    out.why = cat(kLibrary,
                  " is not here; install ocl-icd-libopencl1 and a driver of the card (Debian: "
                  "intel-opencl-icd, mesa-opencl-icd; for a try on the CPU: pocl-opencl-icd)");
    return out;
  }
  out.whole = true;
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, name));
    if (function != nullptr) return;
    out.whole = false;
    out.why = cat(kLibrary, " has no ", name, "; OpenCL 1.2 is needed");
  };
  Api& a = out.api;
  find(a.get_platforms, "clGetPlatformIDs");
  find(a.platform_info, "clGetPlatformInfo");
  find(a.get_devices, "clGetDeviceIDs");
  find(a.device_info, "clGetDeviceInfo");
  find(a.create_context, "clCreateContext");
  find(a.create_queue, "clCreateCommandQueue");
  find(a.create_buffer, "clCreateBuffer");
  find(a.release_buffer, "clReleaseMemObject");
  find(a.create_program, "clCreateProgramWithSource");
  find(a.create_from_binary, "clCreateProgramWithBinary");
  find(a.build_program, "clBuildProgram");
  find(a.build_info, "clGetProgramBuildInfo");
  find(a.program_info, "clGetProgramInfo");
  find(a.release_program, "clReleaseProgram");
  find(a.create_kernel, "clCreateKernel");
  find(a.set_argument, "clSetKernelArg");
  find(a.release_kernel, "clReleaseKernel");
  find(a.enqueue_kernel, "clEnqueueNDRangeKernel");
  find(a.enqueue_write, "clEnqueueWriteBuffer");
  find(a.enqueue_read, "clEnqueueReadBuffer");
  find(a.enqueue_copy, "clEnqueueCopyBuffer");
  find(a.enqueue_fill, "clEnqueueFillBuffer");
  find(a.event_info, "clGetEventInfo");
  find(a.release_event, "clReleaseEvent");
  find(a.flush, "clFlush");
  find(a.finish, "clFinish");
  return out;
}

constexpr std::pair<cl_int, const char*> kNames[] = {
    {CL_DEVICE_NOT_FOUND, "CL_DEVICE_NOT_FOUND"},
    {CL_DEVICE_NOT_AVAILABLE, "CL_DEVICE_NOT_AVAILABLE"},
    {CL_COMPILER_NOT_AVAILABLE, "CL_COMPILER_NOT_AVAILABLE"},
    {CL_MEM_OBJECT_ALLOCATION_FAILURE, "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
    {CL_OUT_OF_RESOURCES, "CL_OUT_OF_RESOURCES"},
    {CL_OUT_OF_HOST_MEMORY, "CL_OUT_OF_HOST_MEMORY"},
    {CL_BUILD_PROGRAM_FAILURE, "CL_BUILD_PROGRAM_FAILURE"},
    {CL_INVALID_VALUE, "CL_INVALID_VALUE"},
    {CL_INVALID_MEM_OBJECT, "CL_INVALID_MEM_OBJECT"},
    {CL_INVALID_BUFFER_SIZE, "CL_INVALID_BUFFER_SIZE"},
    {CL_INVALID_BINARY, "CL_INVALID_BINARY"},
    {CL_INVALID_KERNEL_NAME, "CL_INVALID_KERNEL_NAME"},
    {CL_INVALID_KERNEL_ARGS, "CL_INVALID_KERNEL_ARGS"},
    {CL_INVALID_ARG_INDEX, "CL_INVALID_ARG_INDEX"},
    {CL_INVALID_ARG_SIZE, "CL_INVALID_ARG_SIZE"},
    {CL_INVALID_WORK_GROUP_SIZE, "CL_INVALID_WORK_GROUP_SIZE"},
    {CL_INVALID_COMMAND_QUEUE, "CL_INVALID_COMMAND_QUEUE"},
};

}  // namespace

const Api* open_api(std::string* why) {
  static const Opened* opened = new Opened(open_library());
  if (opened->whole) return &opened->api;
  if (why != nullptr) *why = opened->why;
  return nullptr;
}

std::string error_name(cl_int code) {
  for (const auto& [known, name] : kNames)
    if (known == code) return name;
  return cat("error ", code);
}

void check(cl_int code, const char* what, const std::string& device) {
  if (code == CL_SUCCESS) return;
  const bool memory = code == CL_MEM_OBJECT_ALLOCATION_FAILURE || code == CL_OUT_OF_RESOURCES ||
                      code == CL_OUT_OF_HOST_MEMORY || code == CL_INVALID_BUFFER_SIZE;
  fail(memory ? ErrorKind::memory : ErrorKind::device, "[", what, "] ", device, " says ", error_name(code));
}

}  // namespace outrace::opencl
