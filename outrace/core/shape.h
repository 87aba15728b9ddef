// Sizes of a tensor's axes, outermost first. At most 8 axes, held in place: recording an op allocates nothing for its
// shape.
#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace outrace {

constexpr int kMaxRank = 8;
constexpr int64_t kMaxElements = int64_t{1} << 59;  // so that the bytes of any dtype fit in 64 bits

class Shape {
 public:
  Shape() = default;  // 0-dim: one element
  Shape(std::initializer_list<int64_t> dims) : Shape(std::span<const int64_t>(dims.begin(), dims.size())) {}
  // Throws Error(shape) on a negative size, more than kMaxRank axes or a product beyond kMaxElements.
  explicit Shape(std::span<const int64_t> dims);

  int rank() const { return rank_; }
  int64_t numel() const { return numel_; }
  int64_t operator[](int axis) const { return dims_[axis]; }
  int64_t back(int from_end = 0) const { return dims_[rank_ - 1 - from_end]; }
  std::span<const int64_t> dims() const { return {dims_.data(), static_cast<size_t>(rank_)}; }
  const int64_t* begin() const { return dims_.data(); }
  const int64_t* end() const { return dims_.data() + rank_; }

  Shape with(int axis, int64_t size) const;  // the same with one size replaced
  Shape without(int axis) const;             // the same with one axis removed
  Shape inserted(int axis, int64_t size) const;

  friend bool operator==(const Shape& a, const Shape& b) {
    if (a.rank_ != b.rank_) return false;
    for (int i = 0; i < a.rank_; ++i)
      if (a.dims_[i] != b.dims_[i]) return false;
    return true;
  }

  std::string str() const;  // "[64, 1000]"

 private:
  std::array<int64_t, kMaxRank> dims_{};
  int64_t numel_ = 1;
  int rank_ = 0;
};

// Element distances of each axis; 0 repeats one element along that axis.
using Strides = std::array<int64_t, kMaxRank>;

Strides contiguous_strides(const Shape& shape);
// Whether these strides walk `shape` row by row without gaps; those of axes of one element do not matter.
bool is_contiguous(const Strides& strides, const Shape& shape);

// NumPy's rule: aligned at the last axis, sizes equal or 1. Returns false when they do not fit.
bool broadcast_shapes(const Shape& a, const Shape& b, Shape& out);

// Strides with which a contiguous tensor of shape `from` is read as `to` (0 along repeated axes).
Strides broadcast_strides(const Shape& from, const Shape& to);

// Maps -rank..rank-1 to 0..rank-1; throws Error(shape) naming `op` otherwise.
int normalize_axis(int64_t axis, int rank, const char* op);

}  // namespace outrace
