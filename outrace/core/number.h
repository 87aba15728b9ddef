// A number as one element of any dtype.
#pragma once
#include <cmath>
#include <limits>
#include <type_traits>

#include "outrace/core/half.h"

namespace outrace {

// Rounded to floating types; for integers cut towards 0, at their bounds where it lies beyond them, 0 for NaN; for bool
// whether it is not 0.
template <class T>
T from_number(double value) {
  if constexpr (std::is_same_v<T, bf16> || std::is_same_v<T, f16>) {
    return T(static_cast<float>(value));
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(value);
  } else if constexpr (std::is_same_v<T, bool>) {
    return value != 0;
  } else {
    using Limits = std::numeric_limits<T>;
    if (std::isnan(value)) return 0;
    if (value <= static_cast<double>(Limits::min())) return Limits::min();
    return value >= static_cast<double>(Limits::max()) ? Limits::max() : static_cast<T>(value);
  }
}

}  // namespace outrace
