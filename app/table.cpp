#include "app/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "app/terminal.h"

namespace outrace::app {
namespace {

constexpr size_t kGap = 2;

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  for (size_t end = 0; end != std::string_view::npos;) {
    end = text.find('\n');
    lines.emplace_back(text.substr(0, end));
    if (end != std::string_view::npos) text.remove_prefix(end + 1);
  }
  return lines;
}

std::string trimmed(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

std::string Table::str(int columns) const {
  std::vector<size_t> widths(headers_.size());
  for (size_t c = 0; c < headers_.size(); ++c) {
    for (const std::string& line : lines_of(headers_[c])) widths[c] = std::max(widths[c], line.size());
    for (const auto& row : rows_) widths[c] = std::max(widths[c], row[c].size());
  }
  size_t total = kGap * (widths.size() - 1);
  for (size_t width : widths) total += width;
  return columns > 0 && total > static_cast<size_t>(columns) ? narrow() : wide(widths);
}

std::string Table::wide(const std::vector<size_t>& widths) const {
  const auto line_of = [&](const std::vector<std::string>& cells) {
    std::string line;
    for (size_t c = 0; c < cells.size(); ++c)
      line += c == 0 ? fmt::format("{:<{}}", cells[c], widths[c]) : fmt::format("{:>{}}", cells[c], widths[c] + kGap);
    return trimmed(line);
  };
  std::vector<std::vector<std::string>> headers;  // by column, lines from the top
  size_t height = 0;
  for (const std::string& header : headers_) {
    headers.push_back(lines_of(header));
    height = std::max(height, headers.back().size());
  }
  std::string text;
  for (size_t l = 0; l < height; ++l) {
    std::vector<std::string> cells;
    for (const auto& lines : headers) {  // aligned at the bottom
      const size_t above = height - lines.size();
      cells.push_back(l < above ? "" : lines[l - above]);
    }
    text += bold(line_of(cells)) + "\n";
  }
  for (const auto& row : rows_) text += line_of(row) + "\n";
  return text;
}

std::string Table::narrow() const {
  std::vector<std::string> names = headers_;
  size_t width = 0;
  for (std::string& name : names) {
    std::replace(name.begin(), name.end(), '\n', ' ');
    width = std::max(width, name.size());
  }
  std::string text;
  for (const auto& row : rows_)
    for (size_t c = 0; c < row.size(); ++c)
      text += c == 0 ? bold(row[c]) + "\n" : fmt::format("  {:<{}}  {}\n", names[c], width, row[c]);
  return text;
}

std::string significant(double value, int digits) {
  if (!std::isfinite(value)) return "-";
  const int exponent = value == 0 ? 0 : static_cast<int>(std::floor(std::log10(std::abs(value))));
  return fmt::format("{:.{}f}", value, std::clamp(digits - 1 - exponent, 0, 12));
}

std::string counted(int64_t count, const char* noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string percent(double share, int decimals) {
  return std::isfinite(share) ? fmt::format("{:.{}f} %", 100 * share, decimals) : "-";
}

std::string binary_bytes(double bytes) {
  constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < kUnits.size(); ++unit) bytes /= 1024;
  return fmt::format("{:.{}f} {}", bytes, bytes < 10 && bytes != std::floor(bytes) ? 1 : 0, kUnits[unit]);
}

}  // namespace outrace::app
