#include "outrace/ops/attrs.h"

#include <bit>
#include <charconv>
#include <type_traits>

namespace outrace {
namespace {

template <class T>
uint64_t word(const T& v) {
  if constexpr (std::is_same_v<T, double>)
    return std::bit_cast<uint64_t>(v);
  else
    return static_cast<uint64_t>(v);
}

// Calls fn(name, word-sized value) for each field; arrays give one call an element.
template <class A, class Fn>
void each_field(const A& attrs, Fn&& fn) {
  [[maybe_unused]] auto one = [&](const char* name, const auto& v) {
    if constexpr (requires { v.size(); })
      for (const auto& e : v) fn(name, e);
    else
      fn(name, v);
  };
  std::apply([&](const auto&... field) { (one(field.first, attrs.*(field.second)), ...); }, A::fields());
}

}  // namespace

void append_words(const Attrs& attrs, std::vector<uint64_t>& words) {
  words.push_back(attrs.index());
  std::visit([&](const auto& a) { each_field(a, [&](const char*, const auto& v) { words.push_back(word(v)); }); },
             attrs);
}

uint64_t hash_of(const Attrs& attrs) {
  uint64_t h = attrs.index() + 1;
  std::visit(
      [&](const auto& a) {
        each_field(a, [&](const char*, const auto& v) { h = (h ^ word(v)) * 0x9e3779b97f4a7c15u + (h >> 29); });
      },
      attrs);
  return h;
}

std::string to_string(const Attrs& attrs) {
  std::string out;
  const char* last = "";
  std::visit(
      [&](const auto& a) {
        each_field(a, [&](const char* name, const auto& v) {
          if (name != last) out += (out.empty() ? "" : " ") + std::string(name) + "=";
          if (name == last) out += ",";
          last = name;
          char text[40];
          using T = std::remove_cvref_t<decltype(v)>;
          if constexpr (std::is_same_v<T, double>)
            out.append(text, std::to_chars(text, text + sizeof text, v).ptr);
          else
            out.append(text, std::to_chars(text, text + sizeof text, static_cast<int64_t>(v)).ptr);
        });
      },
      attrs);
  return out;
}

}  // namespace outrace
