// Flattens a golden JSON file into named arrays.
#include "tests/golden.h"

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

namespace outrace {
namespace {

using nlohmann::json;

// JSON has no infinities and no NaN; they stand as the strings "inf", "-inf" and "nan".
double to_number(const json& value) {
  return value.is_string() ? std::strtod(value.get_ref<const std::string&>().c_str(), nullptr) : value.get<double>();
}

// A list of lists is an array row by row: { {1, 2}, {3, 4} } has shape [2, 2].
void append(const json& value, size_t depth, GoldenArray& out) {
  if (!value.is_array()) {
    out.values.push_back(to_number(value));
    return;
  }
  const auto size = static_cast<int64_t>(value.size());
  if (depth == out.shape.size()) out.shape.push_back(size);
  if (out.shape[depth] != size) throw std::runtime_error("rows of different lengths");
  for (const json& element : value) append(element, depth + 1, out);
}

void flatten(const json& value, const std::string& name, std::map<std::string, GoldenArray>& out) {
  if (value.is_object()) {
    for (const auto& [key, element] : value.items()) flatten(element, name.empty() ? key : name + "/" + key, out);
  } else {
    append(value, 0, out[name]);
  }
}

}  // namespace

Golden::Golden(std::string_view file) : file_(std::string(file) + ".json") {
  std::ifstream in(OUTRACE_GOLDEN_DIR "/" + file_);
  if (!in) throw std::runtime_error("no golden file tests/golden/" + file_);
  flatten(json::parse(in), "", arrays_);
}

const GoldenArray& Golden::array(const std::string& name) const {
  const auto found = arrays_.find(name);
  if (found != arrays_.end()) return found->second;
  std::string message = file_ + " has no '" + name + "'; it has:";
  for (const auto& [key, array] : arrays_) message += " " + key;
  throw std::runtime_error(message);
}

double Golden::number(const std::string& name) const {
  const GoldenArray& found = array(name);
  if (found.values.size() != 1) throw std::runtime_error(file_ + ": '" + name + "' is not one number");
  return found.values[0];
}

std::vector<std::string> Golden::names(const std::string& group) const {
  const std::string prefix = group.empty() ? "" : group + "/";
  std::set<std::string> out;
  for (auto it = arrays_.lower_bound(prefix); it != arrays_.end() && it->first.starts_with(prefix); ++it) {
    const std::string below = it->first.substr(prefix.size());
    out.insert(below.substr(0, below.find('/')));
  }
  return {out.begin(), out.end()};
}

}  // namespace outrace
