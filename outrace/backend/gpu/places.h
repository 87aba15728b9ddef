// What kernels that move elements share: printed places, unsigned types of a size, indices.
#pragma once
#include <vector>

#include "outrace/backend/gpu/axes.h"
#include "outrace/backend/gpu/kernel_rows.h"

namespace outrace::gpu {

// Prints NAME(i): where element i of `space` (row-major) lies in an array of these strides, which are not negative.
// NAME_PARAMS, at the end of the kernel's signature, begins with a comma; its arguments are appended to `args`.
void print_places(KernelText& text, std::string_view name, const Shape& space, const Strides& strides,
                  std::vector<Arg>& args);

// Elements that kernels only move are unsigned numbers of their size, so that dtypes share texts: "u32".
const char* moved_type(int64_t bytes);
// The widest of 8, 4, 2 and 1 bytes that divides every one of `bytes`.
int64_t widest_unit(std::initializer_list<int64_t> bytes);
// A number's bits in a dtype, in the low bytes.
int64_t bits_of(double value, DType dtype);

// A division by `d` as DIVIDE() takes it: {d, magic}.
void append_divisor(int64_t d, std::vector<Arg>& args);

inline bool is_index(DType t) { return t == DType::i64 || t == DType::i32; }
constexpr const char* kIndexTypes = "indices are i64 or i32";

// {status, number} of an index out of range: operand `index` of the call, into `axis` of `size` entries.
void append_index_error(const Call& call, size_t index, int64_t axis, int64_t size, CallBuilder& b,
                        std::vector<Arg>& args);
// Checks the call's indices where no other kernel reads all of them.
void launch_index_check(const Call& call, size_t index, int64_t axis, int64_t size, CallBuilder& b);

// An element a work-item.
inline Grid moved_grid(int64_t count) { return {.groups = {groups_for(count), 1, 1}}; }
constexpr int64_t kMovedSlack = kGroup;  // element numbers that items behind the end compute

}  // namespace outrace::gpu
