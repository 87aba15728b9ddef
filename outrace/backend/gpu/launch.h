// What a program hands to a driver: kernels with their arguments, in order. Plain data.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace outrace::gpu {

// A kernel of a module, owned by the driver that built it.
class Kernel {
 public:
  virtual ~Kernel() = default;
};

// An array is a slot of the address table that a run brings, and bytes behind that address; the others are numbers.
struct Arg {
  enum class Kind : uint8_t { array, i64, i32, f32, f64 };
  Kind kind = Kind::i64;
  int slot = -1;
  int64_t integer = 0;  // array: bytes behind the slot's address
  double real = 0;

  static Arg array(int slot, int64_t offset_bytes = 0) { return {Kind::array, slot, offset_bytes, 0}; }
  static Arg i64(int64_t v) { return {Kind::i64, -1, v, 0}; }
  static Arg i32(int32_t v) { return {Kind::i32, -1, v, 0}; }
  static Arg f32(float v) { return {Kind::f32, -1, 0, v}; }
  static Arg f64(double v) { return {Kind::f64, -1, 0, v}; }
};

// Work that a vendor's library does instead of a kernel (a large matrix product). `queue` is the driver's own: a
// cl_command_queue or a CUstream. `addresses` as in LaunchList::run.
class LibraryCall {
 public:
  virtual ~LibraryCall() = default;
  virtual void enqueue(void* queue, void* const* addresses) = 0;
  virtual std::vector<int> slots() const = 0;  // of the addresses that it reads
};

// groups[1] and groups[2] stay below 65536, groups[0] below 2^31 (CUDA's limits).
struct Launch {
  std::string label;  // of the plan's call, for errors and profiles
  std::shared_ptr<Kernel> kernel;
  std::array<int64_t, 3> groups{1, 1, 1};
  std::array<int, 3> local{1, 1, 1};
  std::vector<Arg> args;
  std::shared_ptr<LibraryCall> library;  // instead of a kernel
};

}  // namespace outrace::gpu
