// label: backend
// Every op case in every dtype on every device found and with every kernel, against float64 from the same numbers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "gpu_support.h"
#include "op_cases.h"
#include "outrace/backend/backend.h"
#include "outrace/backend/cpu/kernels.h"
#include "outrace/backend/gpu/kernel_rows.h"
#include "outrace/core/cpu_info.h"
#include "outrace/graph/autograd.h"
#include "outrace/graph/program_cache.h"

namespace outrace {
namespace {

std::vector<Isa> isas() {
  std::vector<Isa> out;
  for (const Isa isa : {Isa::avx2, Isa::avx512})
    if (cpu_info().supports(isa)) out.push_back(isa);
  return out;
}

struct IsaHold {
  const Isa before = active_isa();
  ~IsaHold() { set_active_isa(before); }
};

// The case's inputs as `dtype` holds them, and the same numbers in float64 on the CPU.
struct Inputs {
  std::vector<Tensor> stored, wide;
  Inputs(const OpCase& c, DType dtype, Device device) {
    for (size_t i = 0; i < c.inputs.size(); ++i) {
      std::vector<double> v = case_values(c, i);
      if (!is_float(dtype))
        for (double& x : v) x = dtype == DType::u8 ? std::abs(std::round(x)) : std::round(x);
      stored.push_back(Tensor::from(v, c.inputs[i]).to(dtype).to(device).eval());
      wide.push_back(Tensor::from(stored.back().to_vector<double>(), c.inputs[i]));
    }
  }
};

void check_floats(const OpCase& c, DType dtype, Device device, const std::vector<double>& reference) {
  const Inputs in(c, dtype, device);
  const std::vector<double> got = c.apply(in.stored).to_vector<double>();
  ASSERT_EQ(got.size(), reference.size());
  // The case says how many roundings can add up; each is half an ulp of a number no larger than this.
  double largest = std::max(std::abs(c.low), std::abs(c.high));
  for (const double r : reference)
    if (std::isfinite(r)) largest = std::max(largest, std::abs(r));
  // Storing in 16 bits rounds each op's result once more than computing it did.
  const double tolerance = (c.tolerance_factor + (size_of(dtype) == 2 ? 4 : 0)) * epsilon_of(dtype) / 2 * largest;
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isfinite(reference[i])) {
      ASSERT_NEAR(got[i], reference[i], tolerance) << i;
    } else {
      ASSERT_EQ(std::isnan(got[i]), std::isnan(reference[i])) << i;
    }
  }
}

std::vector<double> reference_of(const OpCase& c, DType dtype, Device device) {
  return c.apply(Inputs(c, dtype, device).wide).to_vector<double>();
}

// Derivatives for an upstream gradient of ones.
std::vector<std::vector<double>> gradients_of(const OpCase& c, const std::vector<Tensor>& inputs) {
  std::vector<Tensor> x;
  for (const Tensor& t : inputs) x.push_back(t.detach() * 1);
  for (Tensor& t : x) t = t.eval().detach().requires_grad_();
  std::vector<std::vector<double>> out;
  const Tensor y = c.apply(x);
  if (!y.requires_grad()) return out;
  for (const Tensor& g : grad(y, x, {}, ones(y.shape(), {y.dtype(), y.device()})))
    out.push_back(g.defined() ? g.to_vector<double>() : std::vector<double>());
  return out;
}

// As far as the forward check is computed; a derivative reads a few results more, so it may be off some times as much.
void check_gradients(const OpCase& c, DType dtype, Device device) {
  const Inputs in(c, dtype, device);
  const auto got = gradients_of(c, in.stored), reference = gradients_of(c, in.wide);
  ASSERT_EQ(got.size(), reference.size());
  for (size_t k = 0; k < got.size(); ++k) {
    double largest = std::max(std::abs(c.low), std::abs(c.high));
    for (const double r : reference[k]) largest = std::max(largest, std::abs(r));
    const double tolerance = 16 * (c.tolerance_factor + 8) * epsilon_of(dtype) / 2 * largest;
    ASSERT_EQ(got[k].size(), reference[k].size());
    for (size_t i = 0; i < got[k].size(); ++i) ASSERT_NEAR(got[k][i], reference[k][i], tolerance) << k << ", " << i;
  }
}

TEST(Forward, EveryOpInEveryFloatingDTypeWithEveryInstructionSet) {
  const IsaHold hold;
  for (const OpCase& c : op_cases())
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16}) {
      set_active_isa(hold.before);
      ProgramCache::global().clear();
      const std::vector<double> reference = reference_of(c, dtype, Device());
      for (const Isa isa : isas()) {
        SCOPED_TRACE(cat(c.name, " in ", name_of(dtype), " with ", name_of(isa)));
        set_active_isa(isa);
        ProgramCache::global().clear();
        check_floats(c, dtype, Device(), reference);
        if (dtype == DType::f32 || dtype == DType::f64) check_gradients(c, dtype, Device());
        if (testing::Test::HasFatalFailure()) return;
      }
    }
}

TEST(Forward, EveryOpHasAKernelOnGpus) {
  const std::span<const gpu::KernelRow> rows = gpu::kernel_rows();
  for (const OpDef* op : all_ops())
    EXPECT_TRUE(op->kind != OpKind::producer || op == &kRelayout ||  // of packed weights, which GPUs do not have
                std::any_of(rows.begin(), rows.end(), [&](const gpu::KernelRow& row) { return row.op == op; }))
        << op->name;
}

// Cases on GPUs. A text is compiled for each, so an elementwise op is met in its first case, and in some of the others:
// how elements are found is printed apart from what is done with them. Likewise dtypes: all ops in f32 and f64, some
// in the 16-bit floats, which differ in how elements are read and stored alone.
void check_gpus(std::initializer_list<DType> dtypes) {
  const std::vector<OpCase> cases = op_cases();
  for (const Device device : gpus())
    for (const DType dtype : dtypes) {
      std::set<std::string> seen;
      for (size_t i = 0; i < cases.size(); ++i) {
        const OpCase& c = cases[i];
        const bool some = i % 8 == 0, first = seen.insert(c.op).second;
        const bool elementwise = std::any_of(all_ops().begin(), all_ops().end(), [&](const OpDef* op) {
          return op->kind == OpKind::elementwise && op->name == c.op;
        });
        if (!some && (size_of(dtype) == 2 || (elementwise && !first))) continue;
        SCOPED_TRACE(cat(c.name, " in ", name_of(dtype), " on ", device));
        check_floats(c, dtype, device, reference_of(c, dtype, device));
        if (dtype == DType::f32 || (dtype == DType::f64 && some)) check_gradients(c, dtype, device);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
}

// And every row of the GPUs' kernels is reached, but those that hand a call to a vendor's library.
TEST(Forward, EveryOpInF32AndEveryKernelOnGpus) {
  check_gpus({DType::f32});
  for (const Device d : gpus()) {  // what no case has
    EXPECT_EQ(randn({3}, {.device = d}).to_vector<float>().size(), 3u);
    const Tensor a = Tensor::from(std::vector<int64_t>{1, 2, 3, 4}, {4}).to(d);
    EXPECT_EQ(bincount(a).to_vector<int64_t>(), (std::vector<int64_t>{0, 1, 1, 1, 1}));
    EXPECT_EQ(one_hot(a.slice(0, 0, 2), 3).to_vector<int64_t>(), (std::vector<int64_t>{0, 1, 0, 0, 0, 1}));
    EXPECT_EQ(histogram(Tensor::from(std::vector<float>{0, 1, 1, 3}, {4}).to(d), 3, 0, 3).to_vector<int64_t>(),
              (std::vector<int64_t>{1, 2, 1}));
  }
  const std::vector<std::string> names = gpu::reached_kernels();
  const std::set<std::string> reached(names.begin(), names.end());
  for (const gpu::KernelRow& row : gpu::kernel_rows())
    EXPECT_TRUE(gpus().empty() || reached.contains(name_of(row)) || std::string(row.name) == "library")
        << "no case of tests/op_cases*.cpp reaches the kernel " << name_of(row);
}
TEST(Forward, EveryOpInF64OnGpus) { check_gpus({DType::f64}); }
TEST(Forward, OpsIn16BitFloatsOnGpus) { check_gpus({DType::bf16, DType::f16}); }

// Integers are exact; i32 and u8 wrap around where they are stored.
void check_integers(const OpCase& c, DType dtype, Device device) {
  const Inputs in(c, dtype, device);
  const Tensor y = c.apply(in.stored);
  const std::vector<double> got = y.to_vector<double>(), reference = c.apply(in.wide).to_vector<double>();
  ASSERT_EQ(got.size(), reference.size());
  for (size_t i = 0; i < got.size(); ++i) {
    double expected = reference[i];
    if (y.dtype() == DType::u8) expected = std::fmod(std::fmod(expected, 256) + 256, 256);
    ASSERT_EQ(got[i], expected) << i;
  }
}

TEST(Forward, OpsOfIntegersAreExact) {
  int skipped = 0;  // on GPUs the narrow types take part in some cases: they are i64 that was read and stored otherwise
  for (Device device : found_devices())
    for (const OpCase& c : op_cases())
      for (const DType dtype : {DType::i64, DType::i32, DType::u8}) {
        if (!c.integers || (device != Device() && dtype != DType::i64 && ++skipped % 4 != 0)) continue;
        SCOPED_TRACE(cat(c.name, " in ", name_of(dtype), " on ", device));
        check_integers(c, dtype, device);
        if (testing::Test::HasFatalFailure()) return;
      }
}

// Each row of the CPU's kernels, preferred to all others, in every dtype it takes: the results are right, and it was
// reached. A row that no case reaches is an error.
TEST(Forward, EveryKernelOfTheCpuIsReachedAndRight) {
  const std::vector<OpCase> cases = op_cases();
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16}) {
    std::vector<std::vector<double>> references;
    for (const OpCase& c : cases) references.push_back(reference_of(c, dtype, Device()));
    for (const cpu::KernelRow& row : cpu::kernel_rows()) {
      cpu::prefer_kernels(name_of(row));
      ProgramCache::global().clear();
      for (size_t i = 0; i < cases.size(); ++i) {
        SCOPED_TRACE(cat(cases[i].name, " in ", name_of(dtype), " with ", name_of(row)));
        check_floats(cases[i], dtype, Device(), references[i]);
        if (dtype == DType::f32) check_gradients(cases[i], dtype, Device());
        if (testing::Test::HasFatalFailure()) break;
      }
    }
    cpu::prefer_kernels("");
  }
  // What no case has: counts, integers, a weight that is packed for its product, random numbers (their tests are
  // elsewhere).
  EXPECT_EQ(randn({3}).to_vector<float>().size(), 3u);
  Tensor w = Tensor::from(std::vector<float>{1, 2, 3, 4, 5, 6}, {2, 3});
  w.requires_grad_();
  const Tensor one = ones({1, 3});
  EXPECT_EQ(linear(one, w).to_vector<float>(), (std::vector<float>{6, 15}));
  EXPECT_EQ(softmax(w).to_vector<float>(), softmax(w * 1 + 0.0).to_vector<float>());
  const Tensor a = Tensor::from(std::vector<int64_t>{1, 2, 3, 4}, {2, 2});
  EXPECT_EQ(matmul(a, a).to_vector<int64_t>(), (std::vector<int64_t>{7, 10, 15, 22}));
  EXPECT_EQ(histogram(Tensor::from(std::vector<float>{0, 1, 1, 3}, {4}), 3, 0, 3).to_vector<int64_t>(),
            (std::vector<int64_t>{1, 2, 1}));
  EXPECT_EQ(bincount(a.reshape({4})).to_vector<int64_t>(), (std::vector<int64_t>{0, 1, 1, 1, 1}));
  EXPECT_EQ(one_hot(a.slice(0, 0, 1), 3).to_vector<int64_t>(), (std::vector<int64_t>{0, 1, 0, 0, 0, 1}));
  const std::vector<std::string> names = cpu::reached_kernels();
  const std::set<std::string> reached(names.begin(), names.end());
  for (const cpu::KernelRow& row : cpu::kernel_rows())
    EXPECT_TRUE(reached.contains(name_of(row))) << "no case of tests/op_cases*.cpp reaches the kernel " << name_of(row);
}

}  // namespace
}  // namespace outrace
