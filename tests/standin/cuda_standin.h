// A library in place of libcuda, libnvrtc and libcublasLt that runs nothing: it notes each call, keeps a device's
// memory in the host's, and fails on request. Copies and fills are done at once; kernels are not.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace outrace::standin {

struct Call {
  std::string function;           // "cuGraphLaunch"
  const void* stream = nullptr;   // where it has one
  std::string what;               // a kernel's name, an event, a text's architecture
  std::vector<uint64_t> numbers;  // of a kernel: its parameters; of a copy or an allocation: bytes
};

struct State {
  std::vector<Call> calls;
  std::vector<std::string> texts;   // given to the compiler
  std::map<uint64_t, size_t> live;  // allocations of devices: bytes
  int devices = 1;
  int capability = 90;
  bool has_pools = true;
  // Faults. Codes are CUresult; 0 is none.
  int init_code = 0, launch_code = 0, wait_code = 0;
  int64_t room = int64_t{1} << 40;  // bytes that all allocations together may have
  bool has_algorithms = true, has_tails = true;
  bool multiplies = false;  // products in f32 are computed
  bool compiles = true;
  bool update_fails = false;

  size_t count(const std::string& function) const {
    size_t n = 0;
    for (const Call& c : calls) n += c.function == function ? 1 : 0;
    return n;
  }
};

}  // namespace outrace::standin

extern "C" outrace::standin::State* cuda_standin();
