// What is wrong with indices from data, in the same words on every device.
#pragma once
#include <string>

#include "outrace/core/shape.h"

namespace outrace {

// "[gather] index 9 at position [2, 0] is out of range: axis 1 has 4 entries".
std::string index_error(const char* op, int64_t index, const Shape& shape, int64_t position, int64_t axis,
                        int64_t size);

// Offsets of embedding_bag: number `bag` is `offset`, the one before it `least`.
std::string bag_error(int64_t rows, int64_t bag, int64_t offset, int64_t least);
std::string no_bags_error(int64_t rows);

}  // namespace outrace
