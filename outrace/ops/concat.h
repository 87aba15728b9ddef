// Arrays joined, cut, repeated and overwritten in parts.
#pragma once
#include <vector>

#include "outrace/graph/tensor.h"

namespace outrace {

// The arrays one behind the other along `axis`; all other sizes equal. Of several dtypes the widest is taken (promote).
// Throws Error(shape) for no arrays or shapes that do not fit; a size of 0 along `axis` adds nothing.
Tensor cat(const std::vector<Tensor>& parts, int64_t axis = 0,
           std::source_location where = std::source_location::current());
// The same along a new axis; all shapes equal.
Tensor stack(const std::vector<Tensor>& parts, int64_t axis = 0,
             std::source_location where = std::source_location::current());

// Pieces of `size` entries (the last may be shorter), or of these sizes (they must add up to the axis's). Views.
std::vector<Tensor> split(At x, int64_t size, int64_t axis = 0);
std::vector<Tensor> split(At x, const std::vector<int64_t>& sizes, int64_t axis = 0);
// At most `count` pieces of equal size; the last may be shorter.
std::vector<Tensor> chunk(At x, int64_t count, int64_t axis = 0);
// The entries of an axis, without that axis.
std::vector<Tensor> unbind(At x, int64_t axis = 0);

// Entry i moves to i + shift, those that leave at one end come back at the other.
Tensor roll(At x, int64_t shift, int64_t axis);
Tensor roll(At x, const std::vector<int64_t>& shifts, const std::vector<int64_t>& axes);

// The whole array `times[i]` times along axis i; `times` may name leading axes that x does not have.
// tile: `times` may also be shorter than x's axes, which then stay as they are.
Tensor repeat(At x, const std::vector<int64_t>& times);
Tensor tile(At x, const std::vector<int64_t>& times);
// Each entry of `axis` `times` times, or entry i times[i] times, one behind the other.
Tensor repeat_interleave(At x, int64_t times, int64_t axis);
Tensor repeat_interleave(At x, const std::vector<int64_t>& times, int64_t axis);

// x with entries start .. stop - 1 of `axis` replaced by `value`, which is broadcast and cast. x itself does not
// change: tensors are values, and everything on the right is read before anything is written, so that slice_assign(x,
// 0, 1, 4, x.slice(0, 0, 3)) of [1, 2, 3, 4] is [1, 1, 2, 3].
Tensor slice_assign(At x, int64_t axis, int64_t start, int64_t stop, const Tensor& value);
// x with entry `position` of `axis` replaced by `value`.
Tensor select_assign(At x, int64_t axis, int64_t position, const Tensor& value);

}  // namespace outrace
