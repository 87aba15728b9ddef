// `outrace bench ops`: single ops on large arrays, each beside the machine's roof.
#pragma once
#include <cstdint>
#include <string>

#include "app/command.h"
#include "outrace/core/device.h"

namespace outrace::app {

struct OpsOptions {
  Device device;
  int64_t size = 4096;               // arrays are [size, size]
  int64_t parameters = 100'000'000;  // of adam
  std::string filter;                // only ops whose name contains it
  uint64_t seed = 1;
};

int bench_ops(const Common& common, const OpsOptions& options);
std::string op_bench_names();  // "add, exp, ..."

}  // namespace outrace::app
