// What tests of training on GPUs share.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "outrace/backend/backend.h"
#include "outrace/outrace.h"

namespace outrace {

inline std::vector<Device> gpus() {
  std::vector<Device> found = found_devices();
  std::erase(found, Device());
  return found;
}

inline double largest_of(const std::vector<double>& v) {
  double most = 0;
  for (const double x : v)
    if (std::isfinite(x)) most = std::max(most, std::abs(x));
  return most;
}

// What `pattern` captures in the headers of a folder of the library: the names that a list must have.
inline std::set<std::string> names_in_headers(const std::string& folder, const std::string& pattern) {
  std::set<std::string> names;
  const std::regex wanted(pattern);
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(OUTRACE_SOURCE_DIR) + "/outrace/" + folder)) {
    if (entry.path().extension() != ".h") continue;
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);)
      if (std::smatch m; std::regex_search(line, m, wanted)) names.insert(m[1]);
  }
  return names;
}

}  // namespace outrace
