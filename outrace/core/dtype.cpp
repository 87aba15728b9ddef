#include "outrace/core/dtype.h"

#include "outrace/core/error.h"

namespace outrace {

DType parse_dtype(std::string_view text) {
  std::string known;
  for (int i = 0; i < kDTypeCount; ++i) {
    const DType t = static_cast<DType>(i);
    if (text == name_of(t)) return t;
    known += (i ? ", " : "") + std::string(name_of(t));
  }
  fail(ErrorKind::option, "[dtype] unknown element type '", text, "'; known names: ", known);
}

}  // namespace outrace
