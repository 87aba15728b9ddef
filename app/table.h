// An aligned table, and numbers as people read them.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace outrace::app {

// The first column is aligned left, the others right. A header may have several lines.
class Table {
 public:
  explicit Table(std::vector<std::string> headers) : headers_(std::move(headers)) {}
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  // Where the table is wider than `columns` (0: no limit), each row becomes a block of lines "header  value".
  std::string str(int columns) const;

 private:
  std::string wide(const std::vector<size_t>& widths) const;
  std::string narrow() const;
  std::vector<std::string> headers_;
  std::vector<std::vector<std::string>> rows_;
};

// With at least `digits` significant digits and no exponent: 0.0106, 0.812, 12.3, 78800. Not finite: "-".
std::string significant(double value, int digits = 3);
std::string counted(int64_t count, const char* noun);  // "1 sample", "7 samples"
std::string percent(double share, int decimals = 0);   // "71 %"
std::string binary_bytes(double bytes);                // "32 KiB"

}  // namespace outrace::app
