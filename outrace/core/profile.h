// What each call of the programs that ran took, for `bench --profile` and tests, off unless somebody asks; and the
// bytes that went to other devices and came back, counted always.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace outrace {

struct CallProfile {
  std::string label;   // "matmul+add+relu"
  std::string kernel;  // "own", "reference", ...
  double us = 0;
  double flops = 0, bytes = 0;  // by the plan's count
};

// Whether backends time every call. A relaxed atomic load.
bool profiling();
void set_profiling(bool on);

// Thread-safe. Appends one program run, in the order of its calls.
void record_profile(const std::vector<CallProfile>& calls);
// Hands over what was recorded since the last time.
std::vector<CallProfile> take_profile();

// Bytes between the host and devices with a memory of their own, since the start.
struct Transfers {
  int64_t to_devices = 0, from_devices = 0;
};
Transfers transfers();
void count_transfer(const Transfers& more);  // thread-safe

}  // namespace outrace
