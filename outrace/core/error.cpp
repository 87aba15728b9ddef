#include "outrace/core/error.h"

#include <charconv>
#include <cstdio>
#include <cstdlib>

namespace outrace {
namespace detail {
namespace {
template <class T>
void append_number(std::string& out, T v) {
  char buffer[40];
  auto [end, code] = std::to_chars(buffer, buffer + sizeof buffer, v);
  out.append(buffer, end);
}
}  // namespace

void append(std::string& out, std::string_view v) { out += v; }
void append(std::string& out, const char* v) { out += v; }
void append(std::string& out, const std::string& v) { out += v; }
void append(std::string& out, bool v) { out += v ? "true" : "false"; }
void append(std::string& out, char v) { out += v; }
void append(std::string& out, int v) { append_number(out, v); }
void append(std::string& out, unsigned v) { append_number(out, v); }
void append(std::string& out, long v) { append_number(out, v); }
void append(std::string& out, unsigned long v) { append_number(out, v); }
void append(std::string& out, long long v) { append_number(out, v); }
void append(std::string& out, unsigned long long v) { append_number(out, v); }
void append(std::string& out, double v) { append_number(out, v); }
}  // namespace detail

void internal_error(const char* condition, const std::string& message, std::source_location where) {
  std::fprintf(stderr, "%s:%u: outrace internal error: %s%s%s\nThis is a fault of outrace, not of your program.\n",
               where.file_name(), static_cast<unsigned>(where.line()), condition, message.empty() ? "" : ": ",
               message.c_str());
  std::abort();
}

}  // namespace outrace
