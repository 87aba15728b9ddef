// The argument reduction of sin, cos and tan for huge numbers, which vectors leave to plain code.
#pragma once
#include <cstdint>

namespace outrace::cpu {

// x = quarter * pi/2 + high + low (modulo 2 pi), |high + low| <= pi/4. x is finite, |x| >= 1.
struct ReducedAngle {
  double high, low;
  int quarter;  // 0 to 3
};
ReducedAngle reduce_angle(double x);

}  // namespace outrace::cpu
