// The `value` texts of ops.def as C: letters become operands, functions and literals get the compute type's form.
#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <cmath>

#include "outrace/backend/gpu/kernel_text.h"
#include "outrace/core/error.h"

namespace outrace::gpu {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// "0.5" and "1e-05" as they are, "1" as "1.0".
std::string with_point(std::string digits) {
  return digits.find_first_of(".en") == std::string::npos ? digits + ".0" : digits;
}

// Only letters, + - * and parentheses: sums and products, which wrap around for integers.
bool is_arithmetic(std::string_view value) {
  for (size_t i = 0; i < value.size(); ++i) {
    const char c = value[i];
    if (is_word(c) && i + 1 < value.size() && is_word(value[i + 1])) return false;
    if (!is_word(c) && std::string_view("+-*() ").find(c) == std::string_view::npos) return false;
  }
  return true;
}

}  // namespace

std::string_view type_name(DType t) { return t == DType::boolean ? "b8" : name_of(t); }

std::string print_literal(double value, DType compute) {
  if (compute == DType::i64) {
    const int64_t v = static_cast<int64_t>(value);
    return v < 0 ? fmt::format("(-(i64){}-1)", -(v + 1)) : fmt::format("(i64){}", v);
  }
  if (compute == DType::f32) {
    const float v = static_cast<float>(value);
    if (std::isnan(v)) return "F32_NAN";
    if (std::isinf(v)) return v < 0 ? "(-F32_INFINITY)" : "F32_INFINITY";
    const std::string digits = with_point(fmt::format("{:.9g}", v)) + "f";
    return std::signbit(v) ? "(" + digits + ")" : digits;
  }
  if (std::isnan(value)) return "(f64)F32_NAN";
  if (std::isinf(value)) return value < 0 ? "(f64)(-F32_INFINITY)" : "(f64)F32_INFINITY";
  const std::string digits = with_point(fmt::format("{:.17g}", value));
  return std::signbit(value) ? "(" + digits + ")" : digits;
}

std::string print_op(Ew op, DType compute, const std::string& x, const std::string& z, const std::string& w) {
  const EwInfo& info = info_of(op);
  OUTRACE_ASSERT(!(info.real_only && compute == DType::i64), info.name.data());
  const bool wraps = compute == DType::i64 && is_arithmetic(info.value);
  const auto operand = [&](const std::string& r) { return wraps ? "(u64)" + r : r; };
  std::string out;
  const std::string_view text = info.value;
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    size_t end = i + 1;
    if (std::isdigit(static_cast<unsigned char>(c)) != 0) {
      double value = 0;
      const auto [last, code] = std::from_chars(text.data() + i, text.data() + text.size(), value);
      OUTRACE_ASSERT(code == std::errc{}, info.name.data());
      end = static_cast<size_t>(last - text.data());
      out += print_literal(value, compute);
    } else if (is_word(c)) {
      while (end < text.size() && is_word(text[end])) ++end;
      const std::string_view word = text.substr(i, end - i);
      if (word == "x")
        out += operand(x);
      else if (word == "z")
        out += operand(z);
      else if (word == "w")
        out += operand(w);
      else
        out += fmt::format("{}_{}", word, type_name(compute));
    } else {
      out += c;
    }
    i = end;
  }
  if (info.compares) return fmt::format("({}) ? {} : {}", out, print_literal(1, compute), print_literal(0, compute));
  return wraps ? "(i64)(" + out + ")" : out;
}

}  // namespace outrace::gpu
