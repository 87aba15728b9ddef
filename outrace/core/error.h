// The two kinds of error. The user's (shape, dtype, device, file, option) are thrown as Error; ours abort with file and
// line.
#pragma once
#include <cstdint>
#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>

namespace outrace {

enum class ErrorKind : uint8_t { shape, dtype, value, device, file, option, memory, diverged, state };

// Thrown for a mistake the caller can mend. The text is "[op] rule broken; both values" and, where it helps, what to do
// next.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& what) : std::runtime_error(what), kind_(kind) {}
  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

namespace detail {
void append(std::string& out, std::string_view v);
void append(std::string& out, const char* v);
void append(std::string& out, const std::string& v);
void append(std::string& out, bool v);
void append(std::string& out, char v);
void append(std::string& out, int v);
void append(std::string& out, unsigned v);
void append(std::string& out, long v);
void append(std::string& out, unsigned long v);
void append(std::string& out, long long v);
void append(std::string& out, unsigned long long v);
void append(std::string& out, double v);
template <class T>
requires requires(const T& v) { v.str(); }
void append(std::string& out, const T& v) { out += v.str(); }
template <class T>
concept Printable = requires(std::string& out, const T& v) {
  append(out, v);
};
}  // namespace detail

// Joins its arguments into one text. Types with a str() member print themselves. (Arrays are joined by the op of the
// same name, ops/concat.h.)
template <detail::Printable... Args>
std::string cat(const Args&... args) {
  std::string out;
  (detail::append(out, args), ...);
  return out;
}

template <class... Args>
[[noreturn]] void fail(ErrorKind kind, const Args&... args) {
  throw Error(kind, cat(args...));
}

// Prints "file:line: message" and aborts: a fault of the engine, never of its user.
[[noreturn]] void internal_error(const char* condition, const std::string& message,
                                 std::source_location where = std::source_location::current());

}  // namespace outrace

// Internal invariants; always on. The second argument onwards is joined by cat().
#define OUTRACE_ASSERT(condition, ...)                                                      \
  do {                                                                                      \
    if (!(condition)) [[unlikely]]                                                          \
      ::outrace::internal_error(#condition, ::outrace::cat("" __VA_OPT__(, ) __VA_ARGS__)); \
  } while (false)
