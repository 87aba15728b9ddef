// Which module is being called, and from which line: for error texts. Kept per thread.
#pragma once
#include <source_location>
#include <string>

namespace outrace {

// While one lives, errors of ops name `path` ("encoder.fc1") and the line that called the module.
class ModuleScope {
 public:
  ModuleScope(const std::string& path, std::source_location where);
  ~ModuleScope();
  ModuleScope(const ModuleScope&) = delete;
  ModuleScope& operator=(const ModuleScope&) = delete;
};

// "\n  in module fc1, called at net.cpp:12"; without a module the line that called the op.
std::string call_site(std::source_location where);

}  // namespace outrace
