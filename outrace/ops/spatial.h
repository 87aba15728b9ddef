// What options of convolution and pooling are written in: numbers for the height and the width of an image.
#pragma once
#include <array>
#include <cstdint>

#include "outrace/graph/tensor.h"

namespace outrace {

// One number for both, or {height, width}.
struct Pair {
  int64_t h = 0, w = 0;
  Pair(int64_t both) : h(both), w(both) {}
  Pair(int64_t height, int64_t width) : h(height), w(width) {}
  std::array<int64_t, 2> array() const { return {h, w}; }
  std::string str() const { return h == w ? cat(h) : cat("{", h, ", ", w, "}"); }
  friend bool operator==(const Pair&, const Pair&) = default;
};

// Rows and columns around an image: one number for all four sides, {height, width} for both sides of each, or {top,
// bottom, left, right}.
struct Padding {
  int64_t top = 0, bottom = 0, left = 0, right = 0;
  // As many that the output has ceil(size / stride) entries; an odd one goes to the bottom or right, as in TensorFlow
  // (and in PyTorch, whose "same" allows no stride).
  bool is_same = false;

  Padding(int64_t all) : Padding(all, all) {}
  Padding(int64_t h, int64_t w) : Padding(h, h, w, w) {}
  Padding(int64_t t, int64_t b, int64_t l, int64_t r) : top(t), bottom(b), left(l), right(r) {}
  Padding(const Pair& p) : Padding(p.h, p.w) {}
  static Padding same() {
    Padding p(0);
    p.is_same = true;
    return p;
  }
  std::array<int64_t, 2> before() const { return {top, left}; }
  std::array<int64_t, 2> after() const { return {bottom, right}; }
  std::string str() const {
    if (is_same) return "same";
    return top == bottom && left == right ? Pair(top, left).str()
                                          : cat("{", top, ", ", bottom, ", ", left, ", ", right, "}");
  }
};

// [N, C, H, W] as [N, H, W, C], the order in which kernels of images walk memory, and back.
Tensor channels_last(At x);
Tensor channels_first(At x);

// Throws Error(value) naming `op` and `what` unless both are at least `least`.
void check_pair(const char* op, const char* what, const std::array<int64_t, 2>& values, int64_t least,
                std::source_location where);

}  // namespace outrace
