// What tests/oclgrind.sh runs under oclgrind, which reports what kernels do wrong on standard error.
//   oclgrind_ops platform       prints the only platform's name
//   oclgrind_ops ops I N        part I of N of the op list, at the small sizes of its cases
//   oclgrind_ops paths          sizes and values that take kernels the cases do not reach
//   oclgrind_ops race|overrun   a kernel with that fault, to be reported
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "op_cases.h"
#include "outrace/backend/backend.h"
#include "outrace/backend/gpu/kernel_rows.h"
#include "outrace/backend/opencl/opencl_api.h"
#include "outrace/backend/opencl/opencl_driver.h"
#include "outrace/graph/autograd.h"
#include "outrace/ops/random.h"

namespace outrace {
namespace {

int platform() {
  std::string why;
  const opencl::Api* api = opencl::open_api(&why);
  cl_uint count = 0;
  if (api == nullptr || api->get_platforms(0, nullptr, &count) != CL_SUCCESS || count != 1) {
    std::printf("%u platforms %s\n", count, why.c_str());
    return 1;
  }
  cl_platform_id id = nullptr;
  char name[256] = "";
  api->get_platforms(1, &id, nullptr);
  api->platform_info(id, CL_PLATFORM_NAME, sizeof name, name, nullptr);
  std::printf("%s\n", name);
  return 0;
}

// Items write their own element and read their neighbour's, without a barrier; or one more element than there is.
constexpr const char* kRace = R"(
__kernel void planted(__global int *y, long skip) {
  __local int shared[64];
  const int i = get_local_id(0);
  shared[i] = i;
  y[i] = shared[(i + 1) % 64];
})";
constexpr const char* kOverrun = R"(
__kernel void planted(__global int *y, long skip) { y[get_global_id(0) + 1] = 7; })";

int planted(const char* source) {
  auto drivers = opencl::open_drivers(nullptr);
  if (drivers.empty()) return 1;
  gpu::Driver& driver = *drivers[0];
  void* y = driver.allocate(64 * sizeof(int));
  gpu::Launch launch;
  launch.label = "planted";
  launch.kernel = driver.build(source)->kernel("planted");
  launch.local = {64, 1, 1};
  launch.args = {gpu::Arg::array(0)};
  driver.prepare({launch})->run(&y);
  driver.synchronize();
  return 0;
}

using Values = std::vector<std::vector<double>>;

// The case's result, and the derivatives for an upstream gradient of ones.
Values results_of(const OpCase& c, DType dtype, Device device, bool derivatives) {
  std::vector<Tensor> x;
  for (size_t i = 0; i < c.inputs.size(); ++i)
    x.push_back(Tensor::from(case_values(c, i), c.inputs[i]).to(dtype).eval().to(device).eval());
  if (derivatives)
    for (Tensor& t : x) t.requires_grad_();
  const Tensor y = c.apply(x);
  std::vector<Tensor> all{y};
  if (derivatives && y.requires_grad())
    for (const Tensor& g : grad(y, x, {}, ones(y.shape(), {y.dtype(), y.device()})))
      if (g.defined()) all.push_back(g);
  Values out;
  for (const Tensor& t : all) out.push_back(t.to_vector<double>());
  return out;
}

bool lacks_kernel(const Error& e) {
  const std::string text = e.what();
  const size_t at = text.find(" has no kernel for ");
  if (at == std::string::npos) return false;
  const std::string op = text.substr(at + 19, text.find(' ', at + 19) - at - 19);
  for (const gpu::KernelRow& row : gpu::kernel_rows())
    if (row.op != nullptr && op == row.op->name) return false;
  std::printf("no kernel yet: %s\n", op.c_str());
  return true;
}

// Not a test of numbers, which others are: far off or not.
bool near(const OpCase& c, DType dtype, const Values& a, const Values& b) {
  for (size_t k = 0; k < a.size(); ++k)
    for (size_t i = 0; i < a[k].size(); ++i) {
      const double tolerance = (c.tolerance_factor + 16) * 64 * epsilon_of(dtype) * (1 + std::abs(b[k][i]));
      if (std::abs(a[k][i] - b[k][i]) > tolerance) {
        std::printf("%s: %g for %g in result %zu, element %zu\n", c.name.c_str(), a[k][i], b[k][i], k, i);
        return false;
      }
    }
  return true;
}

// Ran and failed; what a device lacks is no failure of this list.
struct Count {
  int ran = 0, failed = 0;
  int end() const {
    std::printf("%d ran, %d failed\n", ran, failed);
    return failed != 0 || ran == 0;
  }
};

template <class Check>
void count(Count& n, const std::string& name, const Check& check) {
  ++n.ran;
  try {
    if (!check()) ++n.failed;
  } catch (const Error& e) {
    if (lacks_kernel(e)) return;
    std::printf("%s: %s\n", name.c_str(), e.what());
    ++n.failed;
  }
}

// Every case of the op list with its derivatives: in f32, every seventh in bf16, f64 or i64 as well.
int ops(int part, int parts) {
  const Device device(DeviceType::opencl, 0);
  const std::vector<OpCase> cases = op_cases();
  Count n;
  for (size_t i = 0; i < cases.size(); ++i) {
    if (static_cast<int>(i) % parts != part) continue;
    const OpCase& c = cases[i];
    std::vector<DType> types{DType::f32};
    if (i % 7 < 2) types.push_back(i % 7 == 0 ? DType::bf16 : DType::f64);
    if (c.integers && i % 2 == 0) types.push_back(i % 4 == 0 ? DType::i64 : DType::u8);
    for (const DType t : types)
      count(n, c.name, [&] {
        const bool derivatives = is_float(t) && size_of(t) >= 4;
        return near(c, t, results_of(c, t, device, derivatives), results_of(c, t, Device(), derivatives));
      });
  }
  return n.end();
}

// Numbers 0 to 4, and indices below `size`.
Tensor whole(const Shape& s, Device d) {
  std::vector<double> v;
  for (int64_t i = 0; i < s.numel(); ++i) v.push_back(static_cast<double>(i * 7 % 5));
  return Tensor::from(v, s).to(DType::f32).to(d).eval();
}
Tensor below(int64_t size, const Shape& s, Device d) {
  std::vector<int64_t> v;
  for (int64_t i = 0; i < s.numel(); ++i) v.push_back(i * 13 % size);
  return Tensor::from(v, s).to(d).eval();
}

// A layer norm and its derivatives, one behind the other.
Tensor norms(Device d, const Shape& s) {
  const auto leaf = [](const Tensor& t) { return t.eval().detach().requires_grad_(); };
  const Tensor x = leaf(whole(s, d)), w = leaf(whole({s[1]}, d) * 0.25 + 1), c = leaf(whole({s[1]}, d));
  const Tensor y = layer_norm(x, {s[1]}, w, c), upstream = (y * 0 + whole(s, d) * (1.0 / 64)).detach().eval();
  std::vector<Tensor> all{y.detach().reshape({s.numel()})};
  for (const Tensor& g : grad(y, {x, w, c}, {}, upstream)) all.push_back(g.reshape({g.numel()}));
  return cat(all);
}

using Function = Tensor (*)(Device);
constexpr std::pair<const char*, Function> kPaths[] = {
    {"few terms, sorted in one tile",
     [](Device d) {
       return index_add(whole({9, 3}, d), 0, below(9, {40}, d), whole({40, 3}, d));
     }},
    {"terms sorted in passes",
     [](Device d) {
       return index_add(whole({20, 2}, d), 0, below(20, {2100}, d), whole({2100, 2}, d));
     }},
    {"terms added by groups",
     [](Device d) { return index_add(whole({2}, d), 0, below(2, {600}, d), whole({600}, d)); }},
    {"elements added",
     [](Device d) {
       return scatter_add(whole({3, 8}, d), 1, below(8, {2, 50}, d), whole({2, 50}, d));
     }},
    {"lines of elements added",
     [](Device d) {
       return scatter_add(whole({300, 3}, d), 1, below(3, {290, 40}, d), whole({290, 40}, d));
     }},
    {"long rows selected",
     [](Device d) {
       return index_select(whole({4, 300}, d), 0, below(4, {3}, d));
     }},
    {"marks", [](Device d) { return one_hot(below(5, {300}, d), 5, DType::f32); }},
    {"twenty joined",
     [](Device d) {
       std::vector<Tensor> parts;
       for (int k = 0; k < 20; ++k) parts.push_back(whole({3, 1 + k % 3}, d));
       return cat(parts, 1);
     }},
    {"long rows",
     [](Device d) {
       return softmax(whole({3, 300}, d));
     }},
    {"long sums",
     [](Device d) {
       return sum(whole({3, 700}, d), {.axes = {1}});
     }},
    {"tall sums",
     [](Device d) {
       return sum(whole({700, 3}, d), {.axes = {0}});
     }},
    {"one sum", [](Device d) { return sum(whole({9000}, d)); }},
    {"a product of several tiles",
     [](Device d) {
       return matmul(whole({70, 40}, d), whole({40, 70}, d));
     }},
    {"random numbers",
     [](Device d) {
       manual_seed(1);
       return randn({1001}, {.device = d});
     }},
    {"targets",
     [](Device d) {
       return cross_entropy(whole({3, 70}, d), below(70, {3}, d));
     }},
    {"extremes of rows",
     [](Device d) {
       return argmax(whole({3, 300}, d), 1);
     }},
    {"extremes of a long row",
     [](Device d) {
       return argmin(whole({1, 9000}, d), 1);
     }},
    {"extremes of columns",
     [](Device d) {
       return argmax(whole({700, 3}, d), 0);
     }},
    {"scans of rows",
     [](Device d) {
       return cumsum(whole({3, 300}, d), 1);
     }},
    {"scans of a long row",
     [](Device d) {
       return cumsum(whole({1, 5000}, d), 1, {.reverse = true});
     }},
    {"scans of columns",
     [](Device d) {
       return cumprod(whole({700, 3}, d) * 0.25 + 0.5, 0);
     }},
    {"extremes so far",
     [](Device d) {
       return cummax(whole({2, 2500}, d), 1).indices;
     }},
    {"ranks",
     [](Device d) {
       return argsort(whole({5, 100}, d), 1);
     }},
    {"a sorted tile",
     [](Device d) {
       return argsort(whole({2, 300}, d), 1, true);
     }},
    {"merged tiles",
     [](Device d) {
       return argsort(whole({1, 5000}, d), 1);
     }},
    {"the first few",
     [](Device d) {
       return topk(whole({1, 5000}, d), 3, {1, true, false}).indices;
     }},
    {"counts", [](Device d) { return histogram(whole({900}, d), 7, 0, 4); }},
    {"counts in many bins", [](Device d) { return bincount(below(5000, {900}, d)); }},
    // Eight, 32 and 256 items a line, idle lines in the last group, parts.
    {"variances of short rows",
     [](Device d) {
       return var(whole({37, 20}, d), {.axes = {1}});
     }},
    {"variances of rows",
     [](Device d) {
       return var(whole({11, 700}, d), {.axes = {1}});
     }},
    {"variances of long rows",
     [](Device d) {
       return var(whole({2, 9000}, d), {.axes = {1}});
     }},
    {"variances of columns",
     [](Device d) {
       return var(whole({700, 3}, d), {.axes = {0}});
     }},
    {"norms of short rows",
     [](Device d) {
       return norms(d, {37, 20});
     }},
    {"norms of rows",
     [](Device d) {
       return norms(d, {11, 700});
     }},
    {"norms of long rows",
     [](Device d) {
       return norms(d, {2, 9000});
     }},
    {"norms of rows in groups",
     [](Device d) {
       return norms(d, {2, 1100});
     }},
};

// Indices and classes out of range: reported, and neither read nor written.
constexpr std::pair<const char*, Function> kRefused[] = {
    {"[gather] index", [](Device d) { return gather(whole({5}, d), 0, below(9, {9}, d)); }},
    {"[index_select] index",
     [](Device d) {
       return index_select(whole({5, 2}, d), 0, below(9, {9}, d));
     }},
    {"[index_select] index",
     [](Device d) {
       return index_select(whole({5, 300}, d), 0, below(9, {9}, d));
     }},
    {"[embedding] index",
     [](Device d) {
       return embedding(whole({5, 2}, d), below(9, {9}, d) - 3);
     }},
    {"[scatter] index", [](Device d) { return scatter(whole({5}, d), 0, below(9, {9}, d), whole({9}, d)); }},
    {"[index_add] index", [](Device d) { return index_add(whole({5}, d), 0, below(9, {9}, d), whole({9}, d)); }},
    {"[index_add] index", [](Device d) { return index_add(whole({5}, d), 0, below(9, {90}, d), whole({90}, d)); }},
    {"[scatter_add] index",
     [](Device d) {
       return scatter_add(whole({5, 1}, d), 0, below(9, {90, 1}, d), whole({90, 1}, d));
     }},
    {"[one_hot] index", [](Device d) { return one_hot(below(9, {9}, d), 5, DType::f32); }},
    {"[embedding_bag] offsets",
     [](Device d) {
       return embedding_bag(whole({5, 2}, d), below(5, {9}, d), below(13, {3}, d) + 1, BagMode::sum);
     }},
    {"[cross_entropy] a target",
     [](Device d) {
       return cross_entropy(whole({9, 5}, d), below(9, {9}, d));
     }},
};

int paths() {
  const Device device(DeviceType::opencl, 0);
  Count n;
  const OpCase exact{.op = "", .name = "", .inputs = {}, .apply = {}};
  for (const auto& [name, f] : kPaths)
    count(n, name, [&, f = f] {
      return near(exact, DType::f32, {f(device).to_vector<double>()}, {f(Device()).to_vector<double>()});
    });
  for (const auto& [text, f] : kRefused) {
    std::string words = "no error";
    try {
      static_cast<void>(f(device).to_vector<double>());
    } catch (const Error& e) {
      words = e.what();
    }
    count(n, text, [&, text = text] {
      if (words.starts_with(text)) return true;
      std::printf("%s for %s\n", words.c_str(), text);
      return false;
    });
  }
  return n.end();
}

}  // namespace
}  // namespace outrace

int main(int count, char** words) {
  const auto is = [&](const char* word, int needed) { return count == needed && std::strcmp(words[1], word) == 0; };
  if (is("platform", 2)) return outrace::platform();
  if (is("paths", 2)) return outrace::paths();
  if (is("race", 2)) return outrace::planted(outrace::kRace);
  if (is("overrun", 2)) return outrace::planted(outrace::kOverrun);
  if (is("ops", 4)) return outrace::ops(std::atoi(words[2]), std::atoi(words[3]));
  return 2;
}
