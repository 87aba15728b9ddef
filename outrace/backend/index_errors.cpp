#include "outrace/backend/index_errors.h"

#include "outrace/core/error.h"

namespace outrace {
namespace {

// "[2, 0]": an element's place in an array.
std::string place(const Shape& shape, int64_t position) {
  const Strides strides = contiguous_strides(shape);
  std::string out = "[";
  for (int i = 0; i < shape.rank(); ++i) out += cat(i ? ", " : "", position / strides[i] % shape[i]);
  return out + "]";
}

}  // namespace

std::string index_error(const char* op, int64_t index, const Shape& shape, int64_t position, int64_t axis,
                        int64_t size) {
  return cat("[", op, "] index ", index, " at position ", place(shape, position), " is out of range: axis ", axis,
             " has ", size, " entries");
}

std::string bag_error(int64_t rows, int64_t bag, int64_t offset, int64_t least) {
  return cat("[embedding_bag] offsets must start with 0, not decrease and not pass the ", rows, " indices; offset ",
             bag, " is ", offset, bag == 0 ? "" : cat(" after ", least));
}

std::string no_bags_error(int64_t rows) { return cat("[embedding_bag] ", rows, " indices need a bag; got no offsets"); }

}  // namespace outrace
