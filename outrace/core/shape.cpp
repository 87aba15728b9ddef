#include "outrace/core/shape.h"

#include "outrace/core/error.h"

namespace outrace {

Shape::Shape(std::span<const int64_t> dims) {
  if (dims.size() > kMaxRank) fail(ErrorKind::shape, "[shape] at most ", kMaxRank, " axes; got ", dims.size());
  rank_ = static_cast<int>(dims.size());
  bool empty = false;
  for (int i = 0; i < rank_; ++i) {
    if (dims[i] < 0) fail(ErrorKind::shape, "[shape] a size must not be negative; axis ", i, " has ", dims[i]);
    dims_[i] = dims[i];
    empty |= dims[i] == 0;
  }
  numel_ = empty ? 0 : 1;
  for (int i = 0; i < rank_ && !empty; ++i)
    if (__builtin_mul_overflow(numel_, dims_[i], &numel_) || numel_ > kMaxElements)
      fail(ErrorKind::shape, "[shape] more than 2^59 elements: ", str());
}

Shape Shape::with(int axis, int64_t size) const {
  auto dims = dims_;
  dims[axis] = size;
  return Shape(std::span<const int64_t>(dims.data(), rank_));
}

Shape Shape::without(int axis) const {
  std::array<int64_t, kMaxRank> dims{};
  int n = 0;
  for (int i = 0; i < rank_; ++i)
    if (i != axis) dims[n++] = dims_[i];
  return Shape(std::span<const int64_t>(dims.data(), n));
}

Shape Shape::inserted(int axis, int64_t size) const {
  if (rank_ == kMaxRank) fail(ErrorKind::shape, "[shape] at most ", kMaxRank, " axes");
  std::array<int64_t, kMaxRank> dims{};
  for (int i = 0, from = 0; i <= rank_; ++i) dims[i] = i == axis ? size : dims_[from++];
  return Shape(std::span<const int64_t>(dims.data(), rank_ + 1));
}

std::string Shape::str() const {
  std::string out = "[";
  for (int i = 0; i < rank_; ++i) out += (i ? ", " : "") + std::to_string(dims_[i]);
  return out + "]";
}

Strides contiguous_strides(const Shape& shape) {
  Strides s{};
  int64_t step = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    s[i] = step;
    step *= shape[i];
  }
  return s;
}

bool is_contiguous(const Strides& strides, const Shape& shape) {
  const Strides dense = contiguous_strides(shape);
  for (int i = 0; i < shape.rank(); ++i)
    if (shape[i] != 1 && strides[i] != dense[i]) return false;
  return true;
}

bool broadcast_shapes(const Shape& a, const Shape& b, Shape& out) {
  if (a == b) {
    out = a;
    return true;
  }
  const int rank = a.rank() > b.rank() ? a.rank() : b.rank();
  std::array<int64_t, kMaxRank> dims{};
  for (int i = 0; i < rank; ++i) {
    const int64_t x = i < a.rank() ? a.back(i) : 1;
    const int64_t z = i < b.rank() ? b.back(i) : 1;
    if (x != z && x != 1 && z != 1) return false;
    dims[rank - 1 - i] = x == 1 ? z : x;
  }
  out = Shape(std::span<const int64_t>(dims.data(), rank));
  return true;
}

Strides broadcast_strides(const Shape& from, const Shape& to) {
  const Strides dense = contiguous_strides(from);
  Strides s{};
  for (int i = 0; i < from.rank(); ++i) s[to.rank() - 1 - i] = from.back(i) == 1 ? 0 : dense[from.rank() - 1 - i];
  return s;
}

int normalize_axis(int64_t axis, int rank, const char* op) {
  if (axis < -rank || axis >= rank)
    fail(ErrorKind::shape, "[", op, "] axis out of range; got axis ", axis, " for a tensor of ", rank, " axes");
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

}  // namespace outrace
