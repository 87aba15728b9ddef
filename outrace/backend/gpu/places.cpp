#include "outrace/backend/gpu/places.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "outrace/backend/index_errors.h"
#include "outrace/core/number.h"

namespace outrace::gpu {
namespace {

// Neighbours that one stride walks are one axis; axes of one entry are none.
std::vector<Axis> joined(const Shape& space, const Strides& strides) {
  std::vector<Axis> axes;
  for (int i = 0; i < space.rank(); ++i) {
    if (space[i] == 1) continue;
    if (!axes.empty() && axes.back().stride == strides[i] * space[i])
      axes.back() = {axes.back().size * space[i], strides[i]};
    else
      axes.push_back({space[i], strides[i]});
  }
  return axes;
}

}  // namespace

void print_places(KernelText& text, std::string_view name, const Shape& space, const Strides& strides,
                  std::vector<Arg>& args) {
  const std::vector<Axis> axes = joined(space, strides);
  std::string params, numbers, body;
  int count = 0;
  const auto number = [&](int64_t value) {
    const std::string n = fmt::format("{}{}", name, count++);
    params += ", i64 " + n;
    numbers += ", " + n;
    args.push_back(Arg::i64(value));
    return n;
  };
  if (axes.size() > 1) body = "INDEX rest = i, at = 0; ";
  for (size_t k = axes.size(); k-- > 1;) {
    const std::string d = number(axes[k].size), magic = number(magic_of(axes[k].size));
    body += fmt::format("{{ const INDEX q = DIVIDE(rest, (INDEX){}, {}); ", d, magic);
    if (axes[k].stride != 0)
      body += fmt::format("at += (rest - q * (INDEX){}) * (INDEX){}; ", d, number(axes[k].stride));
    body += "rest = q; } ";
  }
  const int64_t outer = axes.empty() ? 0 : axes[0].stride;
  const std::string first = axes.size() > 1 ? "rest" : "i";
  const std::string last = outer == 0   ? "(INDEX)0"
                           : outer == 1 ? first
                                        : fmt::format("{} * (INDEX){}", first, number(outer));
  text.add(
      fmt::format("#define {0}_PARAMS {1}\nINLINE INDEX {0}_function(INDEX i{1}) {{ {2}return {3}{4}; }}\n"
                  "#define {0}_ARGS {5}\n#define {0}(i) {0}_function(i{5})\n",
                  name, params, body, axes.size() > 1 ? "at + " : "", last, numbers));
}

const char* moved_type(int64_t bytes) { return bytes == 1 ? "u8" : bytes == 2 ? "u16" : bytes == 4 ? "u32" : "u64"; }

int64_t widest_unit(std::initializer_list<int64_t> bytes) {
  int64_t unit = 8;
  for (const int64_t n : bytes)
    while (n % unit != 0) unit /= 2;
  return unit;
}

int64_t bits_of(double value, DType dtype) {
  int64_t bits = 0;
  visit_dtype(dtype, [&](auto zero) {
    using T = decltype(zero);
    const T v = from_number<T>(value);
    std::memcpy(&bits, &v, sizeof v);
  });
  return bits;
}

void append_divisor(int64_t d, std::vector<Arg>& args) {
  args.push_back(Arg::i64(d));
  args.push_back(Arg::i64(magic_of(d)));
}

void append_index_error(const Call& call, size_t index, int64_t axis, int64_t size, CallBuilder& b,
                        std::vector<Arg>& args) {
  args.push_back(b.status_buffer());
  args.push_back(b.error([op = call.op->name, shape = call.operand_shapes[index], axis, size](
                             int64_t value, int64_t at) { return index_error(op, value, shape, at, axis, size); }));
}

void launch_index_check(const Call& call, size_t index, int64_t axis, int64_t size, CallBuilder& b) {
  const int64_t count = call.operand_shapes[index].numel();
  if (count == 0) return;
  KernelText text("index_check.cl");
  text.define("I", stored(call.operands[index], b.plan())).index(count + kGroup);
  std::vector<Arg> args{b.array(call.operands[index])};
  append_index_error(call, index, axis, size, b, args);
  args.push_back(Arg::i64(count));
  args.push_back(Arg::i64(size));
  b.launch(text, "check_indices", {.groups = {groups_for(count), 1, 1}}, std::move(args));
}

}  // namespace outrace::gpu
