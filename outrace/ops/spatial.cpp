#include "outrace/ops/spatial.h"

#include "outrace/graph/scope.h"
#include "outrace/ops/movement.h"

namespace outrace {

Tensor channels_last(At x) { return permute(x, std::array<int64_t, 4>{0, 2, 3, 1}); }
Tensor channels_first(At x) { return permute(x, std::array<int64_t, 4>{0, 3, 1, 2}); }

void check_pair(const char* op, const char* what, const std::array<int64_t, 2>& values, int64_t least,
                std::source_location where) {
  for (const int64_t v : values)
    if (v < least || v > kMaxElements)
      fail(ErrorKind::value, "[", op, "] ", what, " must be at least ", least, "; got ", Pair(values[0], values[1]),
           call_site(where));
}

}  // namespace outrace
