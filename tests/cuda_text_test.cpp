// label: unit
// Every kernel text that the op cases and a few networks ask for, collected through the stand-in, compiled by NVRTC:
// none fails, and none keeps registers in memory ("spills"). Texts that passed are remembered in the build folder.
// OUTRACE_CUDA_ARCHITECTURES="75 80 86 89 90 100" (or "all", for these) checks more than 75 and 90.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <sstream>

#include "op_cases.h"
#include "outrace/backend/backend.h"
#include "outrace/backend/cuda/cuda_api.h"
#include "outrace/backend/cuda/cuda_compiler.h"
#include "outrace/core/env.h"
#include "outrace/graph/autograd.h"
#include "standin/cuda_standin.h"

namespace outrace {
namespace {

// Texts compiled at once: the dialect in front of them is read once.
constexpr size_t kBatch = 64;

standin::State& state() {
  static standin::State* found = [] {
    void* library = dlopen(OUTRACE_CUDA_STANDIN "/libcuda.so.1", RTLD_NOW);
    return reinterpret_cast<standin::State* (*)()>(dlsym(library, "cuda_standin"))();
  }();
  return *found;
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

// ---- collecting ----

const Device kCuda{DeviceType::cuda};

void run_case(const OpCase& c, DType dtype) {
  std::vector<Tensor> in;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    in.push_back(Tensor::from(case_values(c, i), c.inputs[i]).to(dtype).to(kCuda).eval());
    if (is_float(dtype)) in.back().requires_grad_();
  }
  const Tensor y = c.apply(in);
  static_cast<void>(y.to_vector<double>());
  if (!y.requires_grad()) return;
  for (const Tensor& g : grad(y, in, {}, ones(y.shape(), {y.dtype(), y.device()})))
    if (g.defined()) static_cast<void>(g.to_vector<double>());
}

// A step of training: the optimizer's update behind products and reductions.
void train(int64_t inputs, int64_t hidden, bool captured) {
  nn::Sequential net(std::make_shared<nn::Linear>(inputs, hidden), std::make_shared<nn::GELU>(),
                     std::make_shared<nn::LayerNorm>(Shape{hidden}), std::make_shared<nn::Dropout>(0.5),
                     std::make_shared<nn::Linear>(hidden, 10));
  net.to(kCuda);
  optim::Adam optimizer(net.parameters(), {.lr = 1e-3});
  const Tensor x = randn({256, inputs}, {.device = kCuda}),
               y = randint(0, 10, {256}, {.dtype = DType::i64, .device = kCuda});
  for (int i = 0; i < (captured ? 3 : 2); ++i) {
    optimizer.zero_grad();
    cross_entropy(net(x), y).backward();
    optimizer.step();
  }
}

// Ops that no GPU kernel serves yet end in an error that says so; forward_test is what insists on them.
void attempt(const std::function<void()>& fn) {
  try {
    fn();
  } catch (const Error& e) {
    if (std::string_view(e.what()).find("has no kernel for") == std::string_view::npos) ADD_FAILURE() << e.what();
  }
  state().calls.clear();
}

// Distinct texts; of two that differ in nothing but which of the 16-bit floats they store, one.
std::vector<std::string> collect() {
  setenv("OUTRACE_CUDA_LIBRARIES", OUTRACE_CUDA_STANDIN, 1);
  setenv("OUTRACE_KERNEL_CACHE", "off", 1);
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16, DType::i64, DType::i32, DType::u8})
    for (const OpCase& c : op_cases())
      if (is_float(dtype) || c.integers) attempt([&] { run_case(c, dtype); });
  attempt([] { train(64, 32, false); });
  attempt([] { train(1024, 512, true); });
  for (const DType t : {DType::f32, DType::f64, DType::bf16, DType::f16})
    for (const auto& draw : std::vector<std::function<Tensor(CreateOptions)>>{
             [](CreateOptions o) { return randn({9}, o); }, [](CreateOptions o) { return uniform({9}, -1, 1, o); }})
      attempt([&] { static_cast<void>(draw({.dtype = t, .device = kCuda}).eval()); });
  unsetenv("OUTRACE_CUDA_LIBRARIES");
  std::set<std::string> known;
  std::vector<std::string> out;
  for (const std::string& text : state().texts)
    if (known.insert(replaced(text, "bf16", "f16")).second) out.push_back(text);
  return out;
}

// ---- compiling ----

struct Compiled {
  bool fine = false;
  std::string log;
};

Compiled compile(const cuda::Nvrtc& nvrtc, const std::string& text, const std::string& architecture) {
  nvrtcProgram program = nullptr;
  nvrtc.create(&program, text.c_str(), "kernels", 0, nullptr, nullptr);
  std::vector<std::string> options = cuda::compiler_options(architecture);
  options.emplace_back("--ptxas-options=-v");
  std::vector<const char*> pointers;
  for (const std::string& o : options) pointers.push_back(o.c_str());
  Compiled out;
  out.fine = nvrtc.compile(program, static_cast<int>(pointers.size()), pointers.data()) == NVRTC_SUCCESS;
  size_t bytes = 0;
  nvrtc.log_size(program, &bytes);
  out.log.resize(bytes);
  nvrtc.log(program, out.log.data());
  nvrtc.destroy(&program);
  return out;
}

size_t common_prefix(const std::string& a, const std::string& b) {
  const auto [at, _] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return static_cast<size_t>(at - a.begin());
}

// Texts that begin with the same `shared` bytes as one, each in a namespace of its own. The kernels lose their C names.
std::string joined(const std::vector<std::string>& texts, size_t shared) {
  std::string out = texts[0].substr(0, shared);
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::string rest = texts[i].substr(shared);
    out += cat("namespace text_", static_cast<int64_t>(i), " {\n", rest, "\n}\n");
    std::set<std::string> names;
    constexpr std::string_view kDefine = "#define ";
    for (size_t at = 0; (at = rest.find(kDefine, at)) != std::string::npos;) {
      at += kDefine.size();
      names.insert(rest.substr(at, rest.find_first_of("( \n", at) - at));
    }
    for (const std::string& n : names) out += "#undef " + n + "\n";
  }
  return replaced(std::move(out), "extern \"C\" ", "");
}

// A division rounded as IEEE asks (of doubles, and of floats in its slow path) is a call of a routine, around which
// ptxas keeps some of what lives across it in memory: 4 to 12 bytes in reductions of a quotient and in layer norm on
// sm_90. More than that would be a kernel's own numbers.
constexpr int kAroundCalls = 16;

// Kernels that spill, by ptxas's report.
std::string spills(const std::string& log) {
  std::string out, function;
  std::istringstream lines(log);
  for (std::string l; std::getline(lines, l);) {
    if (l.find("Function properties") != std::string::npos) function = l;
    int stores = 0;
    const size_t at = l.find("frame, ");
    const bool reports = at != std::string::npos && std::sscanf(l.c_str() + at, "frame, %d bytes spill", &stores) == 1;
    if (reports && stores > kAroundCalls) out += function + ": " + l + "\n";
  }
  return out;
}

// Which texts passed before, by hash.
class Passed {
 public:
  Passed(const cuda::Nvrtc& nvrtc, const std::string& architecture) {
    int major = 0, minor = 0;
    nvrtc.version(&major, &minor);
    file_ = cat(OUTRACE_PASSED_TEXTS, "-", major, ".", minor, "-", architecture);
    std::ifstream in(file_);
    for (std::string hash; in >> hash;) known_.insert(hash);
  }
  static std::string hash(const std::string& text) { return std::to_string(std::hash<std::string>()(text)); }
  bool has(const std::string& text) const { return known_.contains(hash(text)); }
  void add(const std::vector<std::string>& texts) {
    std::ofstream out(file_, std::ios::app);
    for (const std::string& t : texts) out << hash(t) << "\n";
  }

 private:
  std::string file_;
  std::set<std::string> known_;
};

void check_batch(const cuda::Nvrtc& nvrtc, const std::vector<std::string>& texts, size_t shared,
                 const std::string& architecture, Passed& passed) {
  const Compiled all = compile(nvrtc, joined(texts, shared), architecture);
  if (all.fine && spills(all.log).empty()) return passed.add(texts);
  for (const std::string& text : texts) {
    const Compiled one = compile(nvrtc, text, architecture);
    if (!one.fine) FAIL() << architecture << ": " << one.log << text;
    if (!spills(one.log).empty()) FAIL() << architecture << ": " << spills(one.log) << text;
  }
  if (!all.fine) FAIL() << architecture << ": only together: " << all.log;
  passed.add(texts);
}

void check_architecture(const std::string& architecture) {
  const std::vector<std::string> texts = collect();
  ASSERT_GT(texts.size(), 500u);
  cuda::Nvrtc nvrtc;
  std::string why;
  if (!cuda::open_nvrtc("", nvrtc, &why)) GTEST_SKIP() << why;
  Passed passed(nvrtc, architecture);
  std::map<std::string, std::vector<std::string>> groups;  // by what stands in front of the dialect
  for (const std::string& t : texts)
    if (!passed.has(t)) groups[t.substr(0, t.find("//"))].push_back(t);
  size_t compiled = 0;
  for (const auto& [_, group] : groups) {
    size_t shared = group[0].size();
    for (const std::string& t : group) shared = std::min(shared, common_prefix(group[0], t));
    shared = group[0].rfind('\n', shared - 1) + 1;
    if (group.size() == 1) shared = 0;
    for (size_t from = 0; from < group.size(); from += kBatch) {
      const std::vector<std::string> batch(
          group.begin() + static_cast<std::ptrdiff_t>(from),
          group.begin() + static_cast<std::ptrdiff_t>(std::min(group.size(), from + kBatch)));
      check_batch(nvrtc, batch, shared, architecture, passed);
      if (testing::Test::HasFatalFailure()) return;
      compiled += batch.size();
    }
  }
  std::printf("%zu texts, %zu of them compiled now\n", texts.size(), compiled);
}

TEST(CudaText, CompilesForSm75WithoutSpills) { check_architecture("sm_75"); }
TEST(CudaText, CompilesForSm90WithoutSpills) { check_architecture("sm_90"); }

TEST(CudaText, CompilesForWhateverIsAskedFor) {
  std::string list = env_string("OUTRACE_CUDA_ARCHITECTURES");
  if (list.empty()) GTEST_SKIP() << "OUTRACE_CUDA_ARCHITECTURES is not set";
  if (list == "all") list = "75 80 86 89 90 100";
  std::istringstream words(list);
  for (std::string a; words >> a;) {
    check_architecture("sm_" + a);
    if (testing::Test::HasFatalFailure()) return;
  }
}

// The check itself: a text that is wrong and one that must spill are found.
TEST(CudaText, PlantedFaultsAreFound) {
  cuda::Nvrtc nvrtc;
  std::string why;
  if (!cuda::open_nvrtc("", nvrtc, &why)) GTEST_SKIP() << why;
  EXPECT_FALSE(compile(nvrtc, "__global__ void k(float *x) { y = 1; }", "sm_90").fine);
  const std::string crowded =
      "__global__ void __launch_bounds__(1024, 2) k(float *x) { float v[64];\n"
      "#pragma unroll\nfor (int i = 0; i < 64; ++i) v[i] = x[i * 1024 + threadIdx.x]; __syncthreads();\n"
      "#pragma unroll\nfor (int i = 0; i < 64; ++i) x[(63 - i) * 1024 + threadIdx.x] = v[i] * v[(i * 7) % 64]; }";
  const Compiled c = compile(nvrtc, crowded, "sm_90");
  EXPECT_TRUE(c.fine) << c.log;
  EXPECT_FALSE(spills(c.log).empty()) << c.log;
}

}  // namespace
}  // namespace outrace
