#include "outrace/backend/cuda/cuda_compiler.h"

#include "outrace/backend/gpu/binary_cache.h"
#include "outrace/core/error.h"

namespace outrace::cuda {

// Machine code runs on cards of the same first digit and a second digit that is no smaller.
std::string architecture_for(const Nvrtc& nvrtc, int capability) {
  int count = 0;
  if (nvrtc.arch_count(&count) != NVRTC_SUCCESS || count == 0) return "";
  std::vector<int> known(static_cast<size_t>(count));
  nvrtc.archs(known.data());
  int best = 0;
  for (const int a : known)
    if (a / 10 == capability / 10 && a <= capability && a > best) best = a;
  return best > 0 ? cat("sm_", best) : "";
}

std::vector<std::string> compiler_options(const std::string& architecture) {
  // No fast math, no contraction: the same roundings as on other devices.
  return {"--gpu-architecture=" + architecture,
          "--std=c++17",
          "--fmad=false",
          "--ftz=false",
          "--prec-div=true",
          "--prec-sqrt=true",
          "--disable-warnings"};
}

Compiler::Compiler(const Nvrtc& nvrtc, Context& context, std::string architecture)
    : nvrtc_(nvrtc), context_(context), options_(compiler_options(architecture)) {
  int major = 0, minor = 0;
  nvrtc_.version(&major, &minor);
  key_ = cat("NVRTC ", major, ".", minor);
  for (const std::string& o : options_) key_ += " " + o;
}

CUmodule Compiler::build(const std::string& source) {
  const std::string key = cat(source, "\n", key_);
  CUmodule module = nullptr;
  if (const auto binary = gpu::load_binary(key);
      binary && context_.api.load_module(&module, binary->data()) == CUDA_SUCCESS)
    return module;
  const std::vector<char> binary = compile(source);
  context_.check(context_.api.load_module(&module, binary.data()), "compile");
  gpu::save_binary(key, binary);
  return module;
}

std::vector<char> Compiler::compile(const std::string& source) {
  nvrtcProgram program = nullptr;
  const auto check = [&](nvrtcResult code) {
    if (code != NVRTC_SUCCESS) fail(ErrorKind::device, "[compile] ", context_.name, ": ", nvrtc_.error_text(code));
  };
  check(nvrtc_.create(&program, source.c_str(), "kernel", 0, nullptr, nullptr));
  std::vector<const char*> options;
  for (const std::string& o : options_) options.push_back(o.c_str());
  if (const nvrtcResult code = nvrtc_.compile(program, static_cast<int>(options.size()), options.data());
      code != NVRTC_SUCCESS) {
    size_t bytes = 0;
    nvrtc_.log_size(program, &bytes);
    std::string log(bytes, '\0');
    nvrtc_.log(program, log.data());
    nvrtc_.destroy(&program);
    fail(ErrorKind::device, "[compile] ", context_.name, ": ", nvrtc_.error_text(code), " of a kernel's text:\n",
         log.substr(0, log.find('\0')), "\n", source);
  }
  size_t bytes = 0;
  nvrtc_.cubin_size(program, &bytes);
  std::vector<char> binary(bytes);
  const nvrtcResult code = nvrtc_.cubin(program, binary.data());
  nvrtc_.destroy(&program);
  check(code);
  return binary;
}

}  // namespace outrace::cuda
