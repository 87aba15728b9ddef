// label: null
// Parts of the command that compute or lay out text: the fit behind a sweep's conclusion, tables, numbers for people.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "app/conclusion.h"
#include "app/fit.h"
#include "app/table.h"

namespace outrace::app {
namespace {

TEST(Fit, finds_the_parts_of_an_exact_line) {
  const std::vector<TimedSize> points = {{1e6, 0.02 + 0.005}, {8e6, 0.02 + 0.04}, {64e6, 0.02 + 0.32}};
  const StepCost cost = fit_step_cost(points);
  EXPECT_NEAR(cost.fixed_ms, 0.02, 1e-12);
  EXPECT_NEAR(cost.ms_per_flop, 5e-9, 1e-18);
  EXPECT_NEAR(cost.fixed_share(4e6), 0.5, 1e-9);
}

TEST(Fit, neither_part_is_negative) {
  const std::vector<TimedSize> convex = {{1e6, 0.001}, {2e6, 0.004}, {4e6, 0.016}};  // a line would cut below 0
  EXPECT_EQ(fit_step_cost(convex).fixed_ms, 0);
  EXPECT_GT(fit_step_cost(convex).ms_per_flop, 0);
  const std::vector<TimedSize> falling = {{1e6, 0.3}, {2e6, 0.2}, {4e6, 0.1}};
  EXPECT_EQ(fit_step_cost(falling).ms_per_flop, 0);
  EXPECT_EQ(fit_step_cost(falling).fixed_share(1e6), 1);
}

TEST(Fit, one_point_is_all_arithmetic) {
  const std::vector<TimedSize> point = {{1e6, 0.5}};
  EXPECT_EQ(fit_step_cost(point).fixed_ms, 0);
  EXPECT_NEAR(fit_step_cost(point).ms_per_flop, 5e-7, 1e-18);
}

std::vector<Point> points_of(Device device, double fixed_ms, double ms_per_gflop) {
  std::vector<Point> points;
  for (const int64_t width : {32, 64, 128, 256, 512}) {
    const Sizes sizes{.inputs = 1000, .hidden = width};
    points.push_back({device, width, sizes, fixed_ms + sizes.flops() * 1e-9 * ms_per_gflop});
  }
  return points;
}

// Width 32 is 8.3 MFLOP, each next twice that: at 10 ms a GFLOP the arithmetic takes 0.083, 0.166, 0.33 ms ...
TEST(Conclusion, names_the_size_below_which_time_is_mostly_fixed) {
  const Device cpu(DeviceType::cpu);
  EXPECT_EQ(conclusion(points_of(cpu, 0.2, 10), "width"),
            "cpu: from width 512 down to 32 the arithmetic shrinks 16-fold, the time 5.4-fold. A step costs 0.20 ms "
            "however small it is, and 10 ms for each GFLOP. At width 64 and below that fixed part is most of the time "
            "(71 % at 32): there, less arithmetic saves little time.");
  EXPECT_TRUE(conclusion(points_of(cpu, 0.1, 10), "width")
                  .ends_with("At width 32 that fixed part is most of the time "
                             "(55 %): there, less arithmetic saves little time."));
  EXPECT_TRUE(conclusion(points_of(cpu, 0.02, 10), "width")
                  .ends_with("is 19 % of the time at width 32: down to there, less arithmetic saves time."));
  EXPECT_TRUE(conclusion(points_of(cpu, 0, 10), "width")
                  .ends_with("the time 16-fold. No cost shows that is there "
                             "however small the network is."));
}

TEST(Conclusion, names_the_size_from_which_a_device_beats_the_cpu) {
  const std::vector<Point> cpu = points_of(Device("cpu"), 0.01, 10);
  EXPECT_EQ(crossing(cpu, points_of(Device("cuda"), 0.2, 1), "width"),
            "cuda:0 is faster than the CPU from width 128 on.");
  EXPECT_EQ(crossing(cpu, points_of(Device("cuda"), 0.001, 1), "width"),
            "cuda:0 is faster than the CPU from width 32 on.");
  EXPECT_EQ(crossing(cpu, points_of(Device("opencl:1"), 0.01, 20), "width"),
            "opencl:1 is not faster than the CPU at the largest size here.");
}

TEST(Table, aligns_headers_of_several_lines_and_cells) {
  Table table({"device", "ms a\nstep"});
  table.add({"cpu", "0.812"});
  table.add({"opencl:0", "12.3"});
  EXPECT_EQ(table.str(0),
            "           ms a\n"
            "device     step\n"
            "cpu       0.812\n"
            "opencl:0   12.3\n");
  EXPECT_EQ(table.str(15), table.str(0)) << "as wide as it is";
}

TEST(Table, becomes_blocks_where_it_is_too_wide) {
  Table table({"device", "ms a\nstep", "GFLOP/s"});
  table.add({"cpu", "0.812", "164"});
  table.add({"cuda:0", "0.1", "1330"});
  EXPECT_EQ(table.str(15),
            "cpu\n  ms a step  0.812\n  GFLOP/s    164\n"
            "cuda:0\n  ms a step  0.1\n  GFLOP/s    1330\n");
}

TEST(Table, numbers_for_people) {
  EXPECT_EQ(significant(0.0105912), "0.0106");
  EXPECT_EQ(significant(0.8123), "0.812");
  EXPECT_EQ(significant(12.345), "12.3");
  EXPECT_EQ(significant(78812.4), "78812");
  EXPECT_EQ(significant(0), "0.00");
  EXPECT_EQ(significant(std::nan("")), "-");
  EXPECT_EQ(percent(0.7149), "71 %");
  EXPECT_EQ(percent(0.7149, 1), "71.5 %");
  EXPECT_EQ(percent(std::nan("")), "-");
  EXPECT_EQ(binary_bytes(32768), "32 KiB");
  EXPECT_EQ(binary_bytes(1.5 * 1024 * 1024), "1.5 MiB");
  EXPECT_EQ(binary_bytes(25769803776.0), "24 GiB");
  EXPECT_EQ(counted(1, "sample"), "1 sample");
  EXPECT_EQ(counted(2, "sample"), "2 samples");
}

}  // namespace
}  // namespace outrace::app
