// Kernel texts to machine code of one card, by NVRTC, kept on disk.
#pragma once
#include <string>
#include <vector>

#include "outrace/backend/cuda/cuda_context.h"

namespace outrace::cuda {

// NVRTC's options for a card of compute capability `capability` (90 = 9.0). Empty: this NVRTC makes nothing for it.
std::string architecture_for(const Nvrtc& nvrtc, int capability);
std::vector<std::string> compiler_options(const std::string& architecture);

class Compiler {
 public:
  Compiler(const Nvrtc& nvrtc, Context& context, std::string architecture);
  CUmodule build(const std::string& source);  // throws Error(device) with the compiler's log

 private:
  std::vector<char> compile(const std::string& source);

  const Nvrtc& nvrtc_;
  Context& context_;
  std::vector<std::string> options_;
  std::string key_;
};

}  // namespace outrace::cuda
