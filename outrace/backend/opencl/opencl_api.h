// The functions of OpenCL that the driver calls, found at run time: nothing is linked.
#pragma once
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <string>

namespace outrace::opencl {

struct Api {
  decltype(&clGetPlatformIDs) get_platforms = nullptr;
  decltype(&clGetPlatformInfo) platform_info = nullptr;
  decltype(&clGetDeviceIDs) get_devices = nullptr;
  decltype(&clGetDeviceInfo) device_info = nullptr;
  decltype(&clCreateContext) create_context = nullptr;
  decltype(&clCreateCommandQueue) create_queue = nullptr;
  decltype(&clCreateBuffer) create_buffer = nullptr;
  decltype(&clReleaseMemObject) release_buffer = nullptr;
  decltype(&clCreateProgramWithSource) create_program = nullptr;
  decltype(&clCreateProgramWithBinary) create_from_binary = nullptr;
  decltype(&clBuildProgram) build_program = nullptr;
  decltype(&clGetProgramBuildInfo) build_info = nullptr;
  decltype(&clGetProgramInfo) program_info = nullptr;
  decltype(&clReleaseProgram) release_program = nullptr;
  decltype(&clCreateKernel) create_kernel = nullptr;
  decltype(&clSetKernelArg) set_argument = nullptr;
  decltype(&clReleaseKernel) release_kernel = nullptr;
  decltype(&clEnqueueNDRangeKernel) enqueue_kernel = nullptr;
  decltype(&clEnqueueWriteBuffer) enqueue_write = nullptr;
  decltype(&clEnqueueReadBuffer) enqueue_read = nullptr;
  decltype(&clEnqueueCopyBuffer) enqueue_copy = nullptr;
  decltype(&clEnqueueFillBuffer) enqueue_fill = nullptr;
  decltype(&clGetEventInfo) event_info = nullptr;
  decltype(&clReleaseEvent) release_event = nullptr;
  decltype(&clFlush) flush = nullptr;
  decltype(&clFinish) finish = nullptr;
};

// Null where the library or a function is missing; `why` then says what in one line.
const Api* open_api(std::string* why);
std::string error_name(cl_int code);  // "CL_OUT_OF_RESOURCES"
// Throws Error(device), or Error(memory) where the code says so.
void check(cl_int code, const char* what, const std::string& device);

}  // namespace outrace::opencl
