// label: unit
// The host side of the CUDA backend against a library that stands in for NVIDIA's and runs nothing: which calls are
// made, in which order, with which bytes, and what is said when something is missing or fails.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "expect_error.h"
#include "outrace/backend/cuda/cuda_driver.h"
#include "standin/cuda_standin.h"

namespace outrace {
namespace {

namespace fs = std::filesystem;
using gpu::Arg;
using gpu::Launch;

const std::string kStandin = OUTRACE_CUDA_STANDIN;

standin::State& state() {
  static standin::State* found = [] {
    void* library = dlopen((kStandin + "/libcuda.so.1").c_str(), RTLD_NOW);
    auto get = reinterpret_cast<standin::State* (*)()>(dlsym(library, "cuda_standin"));
    return get();
  }();
  return *found;
}

// A state as at first, and the devices it gives.
struct Cuda : testing::Test {
  Cuda() {
    setenv("OUTRACE_KERNEL_CACHE", "off", 1);
    state() = {};
  }
  void open(int devices = 1) {
    state().devices = devices;
    drivers = cuda::open_drivers(&why, kStandin);
    ASSERT_EQ(drivers.size(), static_cast<size_t>(devices)) << why;
    state().calls.clear();
  }
  gpu::Driver& driver() { return *drivers[0]; }
  Launch launch(const char* name, std::vector<Arg> args) {
    return {.label = cat("op ", name),
            .kernel = driver().build("text")->kernel(name),
            .groups = {7, 2, 1},
            .local = {256, 1, 1},
            .args = std::move(args),
            .library = nullptr};
  }
  std::vector<std::string> functions() {
    std::vector<std::string> out;
    for (const standin::Call& c : state().calls) out.push_back(c.function);
    return out;
  }
  std::vector<standin::Call> calls_of(const std::string& function) {
    std::vector<standin::Call> out;
    for (const standin::Call& c : state().calls)
      if (c.function == function) out.push_back(c);
    return out;
  }

  std::string why;
  std::vector<std::unique_ptr<gpu::Driver>> drivers;
};

void expect_error(ErrorKind kind, const std::string& text, const std::function<void()>& fn) {
  EXPECT_EQ(error_of(fn, kind), text);
}

uint64_t number_of(const void* p) { return reinterpret_cast<uint64_t>(p); }

TEST_F(Cuda, FactsNameTheCardAndItsIndexFollowsTheDriver) {
  open(2);
  const gpu::DeviceFacts& f = drivers[1]->facts();
  EXPECT_EQ(f.name, "Stand-in 1");
  EXPECT_EQ(f.driver, "CUDA 13.0, NVRTC 13.0");
  EXPECT_EQ(f.features, (std::vector<std::string>{"f64", "sm_90", "cuBLASLt-13.0"}));
  EXPECT_EQ(f.units, 132);
}

TEST_F(Cuda, CodeIsMadeForTheBestArchitectureThatRunsOnTheCard) {
  for (const auto& [capability, architecture] : {std::pair{75, "sm_75"}, {86, "sm_80"}, {90, "sm_90"}}) {
    state() = {};
    state().capability = capability;
    drivers = cuda::open_drivers(&why, kStandin);
    ASSERT_EQ(drivers.size(), 1u);
    driver().build("text");
    EXPECT_EQ(calls_of("nvrtcCompileProgram").at(0).what, cat("--gpu-architecture=", architecture));
  }
  state().capability = 120;
  EXPECT_TRUE(cuda::open_drivers(&why, kStandin).empty());
  EXPECT_EQ(why, "libnvrtc makes no code for the card's compute capability 12.0");
}

TEST_F(Cuda, ParametersArePackedInOrder) {
  open();
  char place[64];
  void* addresses[] = {place, nullptr};
  const auto list = driver().prepare({launch("k", {Arg::array(0, 24), Arg::i64(-5), Arg::i32(-2), Arg::f32(0.1f),
                                                   Arg::f64(0.1), Arg::array(1), Arg::i32(9)})});
  list->run(addresses);
  const auto calls = calls_of("cuLaunchKernel");
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].what, "k");
  EXPECT_EQ(calls[0].numbers,
            (std::vector<uint64_t>{7, 2, 1, 256, 1, 1, number_of(place), 24, static_cast<uint64_t>(-5), 0xfffffffe,
                                   std::bit_cast<uint32_t>(0.1f), std::bit_cast<uint64_t>(0.1), 0, 0, 9}));
}

TEST_F(Cuda, ASecondRunIsOneGraphAndMovedArraysUpdateItInPlace) {
  open();
  char a[8], b[8], c[8];
  const auto list =
      driver().prepare({launch("first", {Arg::array(0), Arg::array(1)}), launch("second", {Arg::array(1)}),
                        launch("third", {Arg::array(1), Arg::array(2)})});
  void* addresses[] = {a, b, c};
  list->run(addresses);
  EXPECT_EQ(functions(), (std::vector<std::string>{"nvrtcCompileProgram", "cuModuleLoadData", "cuLaunchKernel",
                                                   "cuLaunchKernel", "cuLaunchKernel"}));
  state().calls.clear();
  list->run(addresses);
  EXPECT_EQ(functions(), (std::vector<std::string>{"cuGraphCreate", "cuGraphAddKernelNode", "cuGraphAddKernelNode",
                                                   "cuGraphAddKernelNode", "cuGraphInstantiate", "cuGraphLaunch"}));
  state().calls.clear();
  list->run(addresses);
  EXPECT_EQ(functions(), (std::vector<std::string>{"cuGraphLaunch"}));
  state().calls.clear();
  char other[8];
  addresses[2] = other;
  list->run(addresses);
  EXPECT_EQ(functions(), (std::vector<std::string>{"cuGraphExecKernelNodeSetParams", "cuGraphLaunch"}));
  EXPECT_EQ(state().calls[0].what, "third");
  EXPECT_EQ(state().calls[0].numbers, (std::vector<uint64_t>{number_of(b), 0, number_of(other), 0}));
  // A driver that refuses gets a new graph.
  state().calls.clear();
  state().update_fails = true;
  addresses[2] = c;
  list->run(addresses);
  EXPECT_EQ(state().count("cuGraphInstantiate"), 1u);
  EXPECT_EQ(functions().back(), "cuGraphLaunch");
  // Timed runs launch one by one and leave no old parameters behind.
  state().update_fails = false;
  addresses[2] = other;
  EXPECT_EQ(list->run_timed(addresses).size(), 3u);
  state().calls.clear();
  list->run(addresses);
  EXPECT_EQ(calls_of("cuGraphAddKernelNode").back().numbers[2], number_of(other));
}

TEST_F(Cuda, GraphsCanBeSwitchedOff) {
  setenv("OUTRACE_CUDA_GRAPH", "0", 1);
  open();
  unsetenv("OUTRACE_CUDA_GRAPH");
  const auto list = driver().prepare({launch("first", {}), launch("second", {})});
  for (int i = 0; i < 3; ++i) list->run(nullptr);
  EXPECT_EQ(state().count("cuLaunchKernel"), 6u);
  EXPECT_EQ(state().count("cuGraphLaunch"), 0u);
}

struct Multiply final : gpu::LibraryCall {
  std::vector<void*> seen;
  int calls = 0;
  void enqueue(void*, void* const* addresses) override {
    ++calls;
    seen.push_back(addresses[0]);
  }
  std::vector<int> slots() const override { return {0}; }
};

TEST_F(Cuda, ALibrarysCallIsRecordedAgainOnlyWhenItsArraysMoved) {
  open();
  char a[8], b[8];
  void* addresses[] = {a, b};
  const auto call = std::make_shared<Multiply>();
  Launch library;
  library.label = "matmul";
  library.library = call;
  const auto list = driver().prepare({library, launch("after", {Arg::array(1)})});
  for (int i = 0; i < 4; ++i) list->run(addresses);
  EXPECT_EQ(call->calls, 2);  // the first run's and the recorded one
  EXPECT_EQ(state().count("cuGraphAddChildGraphNode"), 1u);
  addresses[0] = b;
  list->run(addresses);
  EXPECT_EQ(call->calls, 3);
  EXPECT_EQ(state().count("cuGraphExecChildGraphNodeSetParams"), 1u);
  EXPECT_EQ(state().count("cuGraphExecKernelNodeSetParams"), 0u);
}

TEST_F(Cuda, ALargeUploadRunsBesideTheQueueAndArrivesInOrder) {
  open();
  const std::vector<char> host(9 << 20, 'x');
  char* to = static_cast<char*>(driver().allocate(9 << 20));
  driver().copy_in(to, host.data(), 4 << 20);  // makes the staging memory
  state().calls.clear();
  driver().copy_in(to, host.data(), 9 << 20);
  const auto list = driver().prepare({launch("reads", {Arg::array(0)})});
  void* addresses[] = {to};
  list->run(addresses);
  EXPECT_EQ(std::memcmp(to, host.data(), host.size()), 0);
  const auto uploads = calls_of("cuMemcpyHtoDAsync"), moves = calls_of("cuMemcpyDtoDAsync"),
             waits = calls_of("cuStreamWaitEvent"), kernels = calls_of("cuLaunchKernel");
  ASSERT_EQ(uploads.size(), 3u);
  ASSERT_EQ(moves.size(), 3u);
  EXPECT_NE(uploads[0].stream, kernels[0].stream);
  EXPECT_EQ(moves[0].stream, kernels[0].stream);
  // Of each part: copied, an event recorded behind it, waited for by the kernels' queue, moved there.
  std::vector<std::string> order;
  std::string event;
  for (const standin::Call& c : state().calls) {
    if (c.function == "cuEventRecord" && c.stream == uploads[0].stream) event = c.what;
    if (c.function == "cuStreamWaitEvent" && c.stream == kernels[0].stream) {
      EXPECT_EQ(c.what, event);
    }
    if (c.function == "cuMemcpyHtoDAsync") order.emplace_back("upload");
    if (c.function == "cuMemcpyDtoDAsync") order.emplace_back("move");
    if (c.function == "cuLaunchKernel") order.emplace_back("kernel");
  }
  EXPECT_EQ(order, (std::vector<std::string>{"upload", "move", "upload", "move", "upload", "move", "kernel"}));
  EXPECT_EQ(state().count("cuStreamSynchronize") + state().count("cuEventSynchronize"), 0u);
  // The ring's first place is used again: not before it was read, on either side.
  state().calls.clear();
  driver().copy_in(to, host.data(), 4 << 20);
  EXPECT_EQ(functions(),
            (std::vector<std::string>{"cuEventSynchronize", "cuStreamWaitEvent", "cuMemcpyHtoDAsync", "cuEventRecord",
                                      "cuStreamWaitEvent", "cuMemcpyDtoDAsync", "cuEventRecord"}));
  driver().free(to, 9 << 20);
}

TEST_F(Cuda, CopiesComeBackWholeAndSmallOnesAreOneCall) {
  open();
  std::vector<int32_t> host(3'000'000), back(host.size());
  for (size_t i = 0; i < host.size(); ++i) host[i] = static_cast<int32_t>(i * 7);
  const int64_t bytes = static_cast<int64_t>(host.size() * sizeof(int32_t));
  void* to = driver().allocate(bytes);
  driver().copy_in(to, host.data(), bytes);
  driver().copy_out(back.data(), to, bytes);
  EXPECT_EQ(back, host);
  for (int i = 0; i < 70; ++i) driver().copy_in(to, host.data(), 16);
  state().calls.clear();
  driver().copy_in(to, host.data(), 16);
  EXPECT_EQ(functions(), (std::vector<std::string>{"cuEventSynchronize", "cuMemcpyHtoDAsync", "cuEventRecord"}));
  driver().fill(to, 3, 4);
  driver().copy_out(back.data(), to, 8);
  EXPECT_EQ(back[0], 0x03030303);
  EXPECT_EQ(back[1], host[1]);
  driver().free(to, bytes);
}

TEST_F(Cuda, MemoryThatRunsOutIsSaidWithSizesAndTheDeviceGoesOn) {
  open();
  state().room = 1000;
  void* held = driver().allocate(600);
  expect_error(
      ErrorKind::memory,
      "[memory] cuda:0 (Stand-in 0) has no room for 500 bytes more; 600 are in use here, 1048576 of 68719476736 "
      "are free",
      [&] { static_cast<void>(driver().allocate(500)); });
  // Before that, freed memory was waited for and taken back.
  EXPECT_EQ(functions(),
            (std::vector<std::string>{"cuMemAllocFromPoolAsync", "cuMemAllocFromPoolAsync", "cuStreamSynchronize",
                                      "cuMemPoolTrimTo", "cuMemAllocFromPoolAsync"}));
  driver().free(held, 600);
  void* fits = driver().allocate(900);
  driver().free(fits, 900);
  EXPECT_TRUE(state().live.empty());
}

TEST_F(Cuda, CardsWithoutPoolsAllocateDirectly) {
  state().has_pools = false;
  open();
  driver().free(driver().allocate(100), 100);
  EXPECT_EQ(functions(), (std::vector<std::string>{"cuMemAlloc", "cuMemFree"}));
  EXPECT_TRUE(state().live.empty());
}

TEST_F(Cuda, ALostDeviceNamesTheOpsThatRan) {
  open();
  void* memory = driver().allocate(8);
  const auto list = driver().prepare({launch("gather", {}), launch("sum", {})});
  list->run(nullptr);
  list->run(nullptr);
  state().wait_code = 700;
  const std::string text =
      "[op gather; op sum; op gather, op sum] cuda:0 (Stand-in 0) stopped with CUDA_ERROR_ILLEGAL_ADDRESS; one of "
      "these "
      "ops was running. The device is lost to this process: start it again";
  expect_error(ErrorKind::device, text, [&] { driver().synchronize(); });
  // Everything after says the same; freeing says nothing.
  state().wait_code = 0;
  expect_error(ErrorKind::device, text, [&] { list->run(nullptr); });
  expect_error(ErrorKind::device, text, [&] { static_cast<void>(driver().allocate(8)); });
  driver().free(memory, 8);
}

TEST_F(Cuda, ALaunchThatFailsNamesItsOp) {
  open();
  const auto list = driver().prepare({launch("gather", {})});
  state().launch_code = 1;
  expect_error(ErrorKind::device, "[op gather] cuda:0 (Stand-in 0) says CUDA_ERROR_INVALID_VALUE",
               [&] { list->run(nullptr); });
  state().launch_code = 0;
  list->run(nullptr);
  state().launch_code = 700;
  expect_error(ErrorKind::device,
               "[op gather] cuda:0 (Stand-in 0) stopped with CUDA_ERROR_ILLEGAL_ADDRESS; one of these ops was running. "
               "The device is lost to this process: start it again",
               [&] { list->run(nullptr); });
}

TEST_F(Cuda, ATextThatDoesNotCompileIsShownWithTheLog) {
  open();
  state().compiles = false;
  expect_error(ErrorKind::device,
               "[compile] cuda:0 (Stand-in 0): NVRTC_ERROR_COMPILATION of a kernel's text:\nkernel(1): error: "
               "planted\nthe text",
               [&] { driver().build("the text"); });
}

TEST_F(Cuda, CompiledKernelsAreKeptOnDisk) {
  const fs::path folder = fs::temp_directory_path() / cat("outrace-cuda-cache-", static_cast<int64_t>(getpid()));
  setenv("OUTRACE_KERNEL_CACHE", folder.c_str(), 1);
  for (const size_t compiled : {1u, 0u}) {
    open();
    driver().build("text");
    EXPECT_EQ(state().count("nvrtcCompileProgram"), compiled);
    EXPECT_EQ(state().count("cuModuleLoadData"), 1u);
  }
  state().capability = 80;  // another card's code is another file
  open();
  driver().build("text");
  EXPECT_EQ(state().count("nvrtcCompileProgram"), 1u);
  fs::remove_all(folder);
}

TEST_F(Cuda, CardsCopyToEachOtherInTheOrderOfBothQueues) {
  open(2);
  char* from = static_cast<char*>(drivers[0]->allocate(4));
  char* to = static_cast<char*>(drivers[1]->allocate(4));
  drivers[0]->copy_in(from, "abc", 4);
  state().calls.clear();
  EXPECT_TRUE(drivers[1]->copy_from(*drivers[0], to, from, 4));
  EXPECT_STREQ(to, "abc");
  ASSERT_EQ(functions(), (std::vector<std::string>{"cuEventRecord", "cuStreamWaitEvent", "cuMemcpyPeerAsync",
                                                   "cuEventRecord", "cuStreamWaitEvent"}));
  const auto& calls = state().calls;
  EXPECT_EQ(calls[1].what, calls[0].what);
  EXPECT_EQ(calls[1].stream, calls[2].stream);
  EXPECT_EQ(calls[4].what, calls[3].what);
  EXPECT_EQ(calls[4].stream, calls[0].stream);
}

// ---- what is missing ----

// A folder with links to the stand-in under some of the names it is loaded by.
struct Folder {
  const fs::path path = fs::temp_directory_path() /
                        cat("outrace-cuda-", static_cast<int64_t>(getpid()), "-", static_cast<int64_t>(made++));
  static inline int made = 0;
  explicit Folder(const std::vector<std::string>& names) {
    fs::create_directories(path);
    for (const std::string& n : names) fs::create_symlink(fs::path(kStandin) / "libcuda.so.1", path / n);
  }
  ~Folder() { fs::remove_all(path); }
};

TEST_F(Cuda, WhatIsMissingIsSaidInOneLine) {
  const Folder none({});
  EXPECT_TRUE(cuda::open_drivers(&why, none.path).empty());
  EXPECT_EQ(why, "libcuda.so.1 is not here; it comes with NVIDIA's driver of the card");

  const Folder no_compiler({"libcuda.so.1", "libcublasLt.so.13"});
  EXPECT_TRUE(cuda::open_drivers(&why, no_compiler.path).empty());
  EXPECT_EQ(why,
            "libnvrtc.so.13 (or .12), CUDA's run-time compiler, is not here; install the toolkit or `pip install "
            "nvidia-cuda-nvrtc`, or name its folder in OUTRACE_CUDA_LIBRARIES");

  const Folder old({"libnvrtc.so.13"});
  fs::create_symlink("/lib/x86_64-linux-gnu/libm.so.6", old.path / "libcuda.so.1");
  if (fs::exists(old.path / "libcuda.so.1")) {
    EXPECT_TRUE(cuda::open_drivers(&why, old.path).empty());
    EXPECT_EQ(why, "libcuda.so.1 has no cuInit; a driver for CUDA 12 or later is needed");
  }

  state().init_code = 100;
  setenv("CUDA_VISIBLE_DEVICES", "7", 1);
  EXPECT_TRUE(cuda::open_drivers(&why, kStandin).empty());
  EXPECT_EQ(why, "NVIDIA's driver says CUDA_ERROR_NO_DEVICE (CUDA_VISIBLE_DEVICES is \"7\")");
  state().init_code = 0;
  state().devices = 0;
  EXPECT_TRUE(cuda::open_drivers(&why, kStandin).empty());
  EXPECT_EQ(why, "NVIDIA's driver is here, but no card (CUDA_VISIBLE_DEVICES is \"7\")");
  unsetenv("CUDA_VISIBLE_DEVICES");
}

TEST_F(Cuda, WithoutCublasLtOurOwnKernelsMultiply) {
  const Folder no_blas({"libcuda.so.1", "libnvrtc.so.12"});
  drivers = cuda::open_drivers(&why, no_blas.path);
  ASSERT_EQ(drivers.size(), 1u) << why;
  EXPECT_FALSE(driver().facts().multiplies);
  EXPECT_EQ(driver().facts().features, (std::vector<std::string>{"f64", "sm_90"}));
}

}  // namespace
}  // namespace outrace
