// label: unit
// Networks trained on "cuda:0" through a library that stands in for NVIDIA's: what a step asks of the driver.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include "expect_error.h"
#include "outrace/backend/backend.h"
#include "outrace/outrace.h"
#include "standin/cuda_standin.h"

namespace outrace {
namespace {

standin::State& state() {
  static standin::State* found = [] {
    void* library = dlopen(OUTRACE_CUDA_STANDIN "/libcuda.so.1", RTLD_NOW);
    return reinterpret_cast<standin::State* (*)()>(dlsym(library, "cuda_standin"))();
  }();
  return *found;
}

// Before the first question about devices.
struct CudaStep : testing::Test {
  const Device device{DeviceType::cuda};
  CudaStep() {
    setenv("OUTRACE_CUDA_LIBRARIES", OUTRACE_CUDA_STANDIN, 1);
    setenv("OUTRACE_KERNEL_CACHE", "off", 1);
    state() = {};
    state().devices = 2;
  }
};

struct SimpleNet : nn::Module {
  nn::Linear fc1{1000, 512};
  nn::ReLU relu;
  nn::Linear fc2{512, 10};
  SimpleNet() {
    register_module("fc1", fc1);
    register_module("fc2", fc2);
  }
  Tensor forward(const Tensor& x) override { return fc2(relu(fc1(x))); }
};

TEST_F(CudaStep, TheArticlesStepIsOneGraphOfAtMostTenNodes) {
  ASSERT_EQ(found_devices().at(1), device);
  const Tensor inputs = randn({8, 64, 1000}).to(device).eval(), labels = randint(0, 10, {8, 64}).to(device).eval();
  SimpleNet model;
  model.to(device);
  nn::CrossEntropyLoss criterion;
  optim::Adam optimizer(model.parameters(), {.lr = 0.001});
  const auto step = [&](int64_t i) {
    optimizer.zero_grad();
    const Tensor loss = criterion(model(inputs[i]), labels[i]);
    loss.backward();
    optimizer.step();
  };
  for (int i = 0; i < 4; ++i) step(i);
  for (int i = 4; i < 8; ++i) {
    state().calls.clear();
    step(i);
    ASSERT_EQ(state().count("cuGraphLaunch"), 1u);
    for (const standin::Call& c : state().calls) {
      if (c.function == "cuGraphLaunch") {
        EXPECT_LE(c.numbers[0], 10u);
      }
      EXPECT_FALSE(c.function == "cuLaunchKernel" || c.function == "cuStreamSynchronize" ||
                   c.function == "cuEventSynchronize" || c.function == "cuGraphInstantiate" ||
                   c.function == "cuMemcpyDtoHAsync" || c.function == "nvrtcCompileProgram")
          << c.function;
    }
    // The step's scalars, and nothing else, come from the host.
    EXPECT_LE(state().count("cuMemcpyHtoDAsync"), 1u);
  }
}

TEST_F(CudaStep, MemoryThatIsFreedIsFreedInTheQueue) {
  const size_t before = state().live.size();
  {
    const Tensor x = zeros({1000}).to(device).eval(), y = (x + 1).eval();
    EXPECT_GT(state().live.size(), before);
  }
  state().calls.clear();
  const Tensor z = (zeros({1000}).to(device) + 1).eval();
  EXPECT_EQ(z.to_vector<float>().size(), 1000u);
}

// A large product with what the library can do behind it is one call of it, the result in its place.
TEST_F(CudaStep, LargeProductsAreTheLibrarysWithBiasAndRelu) {
  const auto last = [] {
    for (size_t i = state().calls.size(); i-- > 0;)
      if (state().calls[i].function == "cublasLtMatmul") return state().calls[i].numbers;
    return std::vector<uint64_t>();
  };
  const auto on = [&](const Shape& s, DType t = DType::f32) { return zeros(s, {.dtype = t}).to(device).eval(); };
  const Tensor x = on({256, 384}), w = on({512, 384}), v = on({384, 512}), bias = on({512});
  enum { tail, compute, rows, columns, depth, left, right };
  constexpr uint64_t kPlain = 1, kRelu = 2, kBias = 4, kGelu = 32, kF32 = 68;

  static_cast<void>(matmul(x, v).eval());
  auto n = last();
  ASSERT_EQ(n.size(), 10u);
  // The transposed product: 512 rows, 256 columns; both matrices as they lie.
  EXPECT_EQ(std::vector<uint64_t>(n.begin(), n.begin() + 7),
            (std::vector<uint64_t>{kPlain, kF32, 512, 256, 384, 0, 0}));
  // What follows is alone in its program: no handle to the product is alive.
  const auto after = [&](Tensor (*op)(At)) {
    Tensor y = linear(x, w, bias);
    y = op(At(y));
    static_cast<void>(y.eval());
  };
  after(relu);
  n = last();
  EXPECT_EQ(std::vector<uint64_t>(n.begin(), n.begin() + 7),
            (std::vector<uint64_t>{kBias | kRelu, kF32, 512, 256, 384, 1, 0}));
  after(gelu_tanh);
  EXPECT_EQ(last()[tail], kBias | kGelu);
  // GELU by erf is another function, so it follows in a kernel of ours.
  state().calls.clear();
  after(gelu);
  EXPECT_EQ(last()[tail], kPlain);
  std::vector<std::string> kernels;
  for (const standin::Call& c : state().calls)
    if (c.function == "cuLaunchKernel") kernels.push_back(c.what);
  EXPECT_EQ(kernels, std::vector<std::string>{"finish"});
  for (const DType t : {DType::f64, DType::bf16, DType::f16}) {
    static_cast<void>(matmul(on({256, 384}, t), on({384, 512}, t)).eval());
    EXPECT_EQ(last()[compute], t == DType::f64 ? 70u : kF32) << name_of(t);
  }
  // A batch, one matrix for all, and a slice that begins in the middle of a row.
  static_cast<void>(matmul(on({4, 256, 384}), v).eval());
  static_cast<void>(matmul(on({256, 400}).slice(1, 3, 387), v).eval());
  EXPECT_EQ(last()[depth], 384u);
}

// How matrices lie, with which steps, and what is added: by the result.
TEST_F(CudaStep, TheLibraryIsToldHowMatricesLie) {
  state().multiplies = true;
  const auto expect_same = [&](const char* what, const std::vector<Tensor>& in,
                               const std::function<Tensor(const std::vector<Tensor>&)>& fn) {
    std::vector<Tensor> there;
    for (const Tensor& t : in) there.push_back(t.to(device).eval());
    const size_t before = state().count("cublasLtMatmul");
    const std::vector<float> got = fn(there).to_vector<float>(), expected = fn(in).to_vector<float>();
    EXPECT_EQ(state().count("cublasLtMatmul"), before + 1) << what;
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected[i], 1e-3) << what << ", " << i;
  };
  using In = std::vector<Tensor>;
  const Tensor x = randn({256, 264}).eval(), v = randn({264, 272}).eval(), w = randn({272, 264}).eval();
  const Tensor bias = randn({272}).eval();
  expect_same("rows", {x, v}, [](const In& t) { return matmul(t[0], t[1]); });
  expect_same("right transposed", {x, w}, [](const In& t) { return matmul(t[0], t[1].t()); });
  expect_same("left transposed", {v, w.t().eval()}, [](const In& t) { return matmul(t[0].t(), t[1]); });
  expect_same("both transposed", {v, x}, [](const In& t) { return matmul(t[0].t(), t[1].t()); });
  expect_same("bias", {x, w, bias}, [](const In& t) {
    Tensor y = linear(t[0], t[1], t[2]);
    return y = relu(y);
  });
  expect_same("gelu", {x, w, bias}, [](const In& t) {
    Tensor y = linear(t[0], t[1], t[2]);
    return y = gelu_tanh(y);
  });
  expect_same("no bias", {x, w}, [](const In& t) {
    Tensor y = matmul(t[0], t[1].t());
    return y = relu(y);
  });
  const Tensor a = randn({3, 200, 200}).eval(), b = randn({3, 200, 200}).eval();
  expect_same("batch", {a, b}, [](const In& t) { return matmul(t[0], t[1]); });
  expect_same("batch, transposed", {a, b}, [](const In& t) { return matmul(t[0].transpose(1, 2), t[1]); });
  const Tensor one = randn({200, 200}).eval();
  expect_same("one for all", {one, b}, [](const In& t) { return matmul(t[0], t[1]); });
}

TEST_F(CudaStep, ProductsFallBackWhereTheLibraryHasNoWay) {
  const auto on = [&](const Shape& s) { return zeros(s).to(device).eval(); };
  const Tensor x = on({300, 384}), w = on({512, 384}), bias = on({512});
  const auto kernels = [&] {
    std::vector<std::string> out;
    for (const standin::Call& c : state().calls)
      if (c.function == "cuLaunchKernel" || c.function == "cublasLtMatmul") out.push_back(c.what);
    return out;
  };
  state().has_tails = false;  // the library's plain product, then ours
  state().calls.clear();
  {
    Tensor t = linear(x, w, bias);
    t = relu(t);
    static_cast<void>(t.eval());
  }
  EXPECT_EQ(kernels(), (std::vector<std::string>{"", "finish"}));
  state().has_algorithms = false;  // ours alone
  state().calls.clear();
  const Tensor y = on({301, 384});
  state().calls.clear();
  Tensor t = linear(y, w, bias);
  t = relu(t);
  static_cast<void>(t.eval());
  EXPECT_EQ(kernels(), std::vector<std::string>{"matmul"});
  state().has_algorithms = state().has_tails = true;
}

TEST_F(CudaStep, CopiesBetweenCardsDoNotPassTheHost) {
  const Tensor x = zeros({1000}).to(device).eval();
  const Device second(DeviceType::cuda, 1);
  state().calls.clear();
  const Tensor y = x.to(second).eval();
  EXPECT_EQ(state().count("cuMemcpyPeerAsync"), 1u);
  EXPECT_EQ(state().count("cuMemcpyDtoHAsync") + state().count("cuMemcpyHtoDAsync"), 0u);
  expect_has(error_of([] { static_cast<void>(zeros({1}).to(Device(DeviceType::cuda, 5)).eval()); }, ErrorKind::device),
             "cuda:5 does not exist; there are 2 devices of this kind");
}

// The last one, as the device stays lost.
TEST_F(CudaStep, ALostDeviceNamesTheNetworksOps) {
  const Tensor x = zeros({64, 10}).to(device).eval();
  const Tensor y = exp(x).eval();
  state().wait_code = 700;
  const std::string text = error_of([&] { static_cast<void>(y.to_vector<float>()); }, ErrorKind::device);
  expect_has(text, "exp] cuda:0 (Stand-in 0) stopped with CUDA_ERROR_ILLEGAL_ADDRESS");
}

}  // namespace
}  // namespace outrace
