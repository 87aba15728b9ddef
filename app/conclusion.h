// What the times of a sweep say about small networks, in sentences made from the numbers.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "app/fit.h"
#include "app/network.h"

namespace outrace::app {

struct Point {
  Device device;
  int64_t size;  // the width or the batch
  Sizes sizes;
  double ms;  // a step
};

std::vector<Point> of_device(const std::vector<Point>& points, Device device);
StepCost cost_of(const std::vector<Point>& points);

// Of one device, points from small to large, at least two: how time follows arithmetic, and where it stops to.
std::string conclusion(const std::vector<Point>& points, const std::string& what);
// From which size on a device beats the CPU; both measured at the same sizes.
std::string crossing(const std::vector<Point>& cpu, const std::vector<Point>& other, const std::string& what);

}  // namespace outrace::app
