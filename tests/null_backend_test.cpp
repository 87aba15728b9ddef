// label: null
// The null device records what it is told and computes nothing.
#include "outrace/backend/null/null_backend.h"

#include <gtest/gtest.h>

#include "outrace/backend/cpu/cpu_backend.h"
#include "tests/plan_builder.h"

namespace outrace {
namespace {

TEST(NullBackend, RecordsCallsMemoryAndCopies) {
  const Device device(DeviceType::null, 1);
  Backend& backend = backend_for(device);
  EXPECT_EQ(&backend, &NullBackend::get());
  PlanBuilder b;
  b.device = device;
  const int x = b.input(DType::f32, {64, 100}), w = b.input(DType::f32, {512, 100}),
            y = b.output(DType::f32, {64, 512});
  b.matmul(b.matrix(x), b.matrix(w, true), 64, 512, 100, DType::f32, y).label = "matmul+add+relu";
  TileProgram p = tile_program(DType::f32, {100});
  store(p, load_constant(p, DType::f32, 1), DType::f32, y);
  b.elementwise(p, "fill");
  clear_null_log();
  void* a = backend.allocate(device, int64_t{1} << 40);  // no memory stands behind it
  void* c = backend.allocate({DeviceType::null, 0}, 16);
  EXPECT_NE(a, c);
  float host[4] = {1, 2, 3, 4};
  backend.copy_in(device, a, host, sizeof host);
  const std::unique_ptr<Program> program = backend.compile(b.plan);
  program->run({});
  backend.relayout(device, a, Layout::panel, c, Layout::plain, DType::f32, {512, 100});
  backend.copy_out(device, host, a, sizeof host);
  backend.free(device, a, int64_t{1} << 40);
  backend.free({DeviceType::null, 0}, c, 16);
  backend.synchronize(device);
  EXPECT_EQ(null_log(),
            (std::vector<std::string>{"null:1 allocate 1099511627776", "null:0 allocate 16", "null:1 copy_in 16",
                                      "null:1 call matmul+add+relu [64, 512]", "null:1 call fill [100]",
                                      "null:1 relayout [512, 100]", "null:1 copy_out 16", "null:1 free 1099511627776",
                                      "null:0 free 16"}));
  for (const float x_i : host) EXPECT_EQ(x_i, 0);
  clear_null_log();
  EXPECT_TRUE(null_log().empty());
}

TEST(NullBackend, PacksWhatTheCpuPacks) {
  for (int t = 0; t < kDTypeCount; ++t)
    EXPECT_EQ(NullBackend::get().packs_weights(static_cast<DType>(t)),
              CpuBackend::get().packs_weights(static_cast<DType>(t)));
}

}  // namespace
}  // namespace outrace
