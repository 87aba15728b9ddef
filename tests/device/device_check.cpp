// What tools/device-check runs on a machine with a GPU: parts that measure or compare, each with a budget of seconds. A
// part writes OUT/PART.json and prints its lines of the summary (Markdown).
// usage: device_check PART DEVICE SECONDS OUT      PART: parity, steps, gemm, memory, small
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>

#include "app/network.h"
#include "op_cases.h"
#include "outrace/backend/backend.h"
#include "outrace/core/profile.h"
#include "outrace/graph/autograd.h"
#include "outrace/outrace.h"

namespace outrace {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

struct Check {
  Device device;
  Clock::time_point end;
  bool is_cpu = false;  // PoCL and such: small sizes
  int shard = 0, shards = 1;
  std::function<void(const Json&)> save = {};  // what there is so far; time may run out
  bool is_over() const { return Clock::now() >= end; }
};

void wait_for(Device d) { backend_for(d).synchronize(d); }

// Seconds that one call of `fn` takes, the best of five samples of at least 20 ms each, or fewer when time is up.
double seconds_of(const Check& check, const std::function<void()>& fn) {
  const auto sample = [&](int64_t times) {
    const auto start = Clock::now();
    for (int64_t i = 0; i < times; ++i) fn();
    wait_for(check.device);
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  for (int i = 0; i < 3; ++i) fn();
  wait_for(check.device);
  int64_t times = 1;
  double took = sample(times);
  while (took < 0.02 && times < 10'000) took = sample(times *= 2);
  double best = took / static_cast<double>(times);
  for (int i = 0; i < 4 && !check.is_over(); ++i) best = std::min(best, sample(times) / static_cast<double>(times));
  return best;
}

// ---- parity: each op case against float64 on the CPU, forward and backward, within tests/forward_test's bounds ----

struct Outcome {
  std::vector<double> values;
  std::vector<std::vector<double>> gradients;
};

Outcome outcome_of(const OpCase& c, const std::vector<std::vector<double>>& numbers, DType dtype, Device device,
                   bool backward) {
  std::vector<Tensor> in;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    in.push_back(Tensor::from(numbers[i], c.inputs[i]).to(dtype).to(device).eval());
    if (backward) in.back().requires_grad_();
  }
  const Tensor y = c.apply(in);
  Outcome out;
  out.values = y.to_vector<double>();
  if (!backward || !y.requires_grad()) return out;
  for (const Tensor& g : grad(y, in, {}, ones(y.shape(), {y.dtype(), y.device()})))
    out.gradients.push_back(g.defined() ? g.to_vector<double>() : std::vector<double>());
  return out;
}

double largest_of(const OpCase& c, const std::vector<double>& values) {
  double largest = std::max(std::abs(c.low), std::abs(c.high));
  for (const double v : values)
    if (std::isfinite(v)) largest = std::max(largest, std::abs(v));
  return largest;
}

// The largest error in units of the bound: above 1 is a fault.
double worst_of(const std::vector<double>& got, const std::vector<double>& reference, double bound) {
  if (got.size() != reference.size()) return HUGE_VAL;
  double worst = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    if (!std::isfinite(reference[i])) {
      if (std::isnan(got[i]) != std::isnan(reference[i])) return HUGE_VAL;
      continue;
    }
    const double error = std::abs(got[i] - reference[i]) / bound;
    worst = std::isnan(error) ? HUGE_VAL : std::max(worst, error);
  }
  return worst;
}

double compare(const OpCase& c, DType dtype, Device device) {
  std::vector<std::vector<double>> numbers;  // as dtype holds them
  for (size_t i = 0; i < c.inputs.size(); ++i)
    numbers.push_back(Tensor::from(case_values(c, i), c.inputs[i]).to(dtype).to_vector<double>());
  const bool backward = dtype == DType::f32 || dtype == DType::f64;
  const Outcome got = outcome_of(c, numbers, dtype, device, backward);
  const Outcome reference = outcome_of(c, numbers, DType::f64, Device(), backward);
  const double unit = epsilon_of(dtype) / 2;
  double worst =
      worst_of(got.values, reference.values,
               (c.tolerance_factor + (size_of(dtype) == 2 ? 4 : 0)) * unit * largest_of(c, reference.values));
  for (size_t k = 0; k < got.gradients.size(); ++k)
    worst = std::max(worst, worst_of(got.gradients[k], reference.gradients[k],
                                     16 * (c.tolerance_factor + 8) * unit * largest_of(c, reference.gradients[k])));
  return worst;
}

// What a vendor's fused product might get wrong: NaN must pass a ReLU.
bool relu_keeps_nan(Device device) {
  Tensor y = linear(full({256, 512}, NAN).to(device).eval(), full({256, 512}, 1).to(device).eval());
  y = relu(y);
  return std::isnan(y.to_vector<float>()[0]);
}

// A product large enough for the library against the CPU's, bias and activation fused.
double large_product(DType dtype, Device device) {
  manual_seed(1);
  const Tensor x = (randn({300, 520}) / 8).to(dtype).eval(), w = (randn({260, 520}) / 8).to(dtype).eval();
  const Tensor bias = randn({260}).to(dtype).eval();
  const auto product = [&](Device d, DType t) {
    Tensor y = linear(x.to(t).to(d), w.to(t).to(d), bias.to(t).to(d));
    y = relu(y);
    return y.to_vector<double>();
  };
  return worst_of(product(device, dtype), product(Device(), DType::f64), 40 * epsilon_of(dtype));
}

// Every shards-th case from the shard's number on.
Json parity_shard(const Check& check) {
  Json out = {{"compared", 0},
              {"not_reached", 0},
              {"worst_in_bounds", 0.0},
              {"faults", Json::array()},
              {"missing", Json::array()}};
  int number = 0;
  check.save(out);
  auto saved = Clock::now();
  const auto judge = [&](const std::string& name, const std::function<double()>& fn) {
    if (number++ % check.shards != check.shard) return;
    if (Clock::now() > saved + std::chrono::milliseconds(500)) {
      check.save(out);
      saved = Clock::now();
    }
    if (check.is_over()) {
      out["not_reached"] = out["not_reached"].get<int>() + 1;
      return;
    }
    try {
      const double error = fn();
      out["compared"] = out["compared"].get<int>() + 1;
      if (std::isfinite(error)) out["worst_in_bounds"] = std::max(out["worst_in_bounds"].get<double>(), error);
      if (!(error <= 1))
        out["faults"].push_back({{"case", name}, {"error_in_bounds", std::isfinite(error) ? error : 1e300}});
    } catch (const std::exception& e) {
      const std::string what = e.what();
      if (what.find("has no kernel for") != std::string::npos)
        out["missing"].push_back(name);
      else
        out["faults"].push_back({{"case", name}, {"what", what.substr(0, 400)}});
    }
  };
  judge("relu of NaN behind a product", [&] { return relu_keeps_nan(check.device) ? 0.0 : HUGE_VAL; });
  const std::vector<OpCase> cases = op_cases();
  for (const DType dtype : {DType::f32, DType::bf16, DType::f64, DType::f16}) {
    judge(cat("large product in ", name_of(dtype)), [&] { return large_product(dtype, check.device); });
    for (const OpCase& c : cases)
      judge(cat(c.name, " in ", name_of(dtype)), [&] { return compare(c, dtype, check.device); });
  }
  return out;
}

// Most of the time is the compiler's, so a card's cases are shared out among processes. Each opens the device itself:
// an opened one does not outlive a fork.
Json parity(Check check, const std::string& out) {
  const int cores = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  check.shards = check.device.type == DeviceType::cuda ? std::clamp(cores, 1, 8) : 1;
  const auto file = [&](int shard) { return cat(out, "/parity-", shard, ".part"); };
  std::vector<pid_t> children;
  for (check.shard = 0; check.shard < check.shards; ++check.shard) {
    const pid_t child = fork();
    if (child == 0) {
      const std::string to = file(check.shard);
      check.save = [&](const Json& results) {  // whole or not at all
        std::ofstream(to + ".new") << results;
        std::rename((to + ".new").c_str(), to.c_str());
      };
      check.save(parity_shard(check));
      _exit(0);
    }
    children.push_back(child);
  }
  Json all = {{"compared", 0},
              {"not_reached", 0},
              {"worst_in_bounds", 0.0},
              {"faults", Json::array()},
              {"missing", Json::array()}};
  for (int shard = 0; shard < check.shards; ++shard) {
    // A case that takes too long (a compiler can) does not take the others' results along.
    const pid_t child = children[static_cast<size_t>(shard)];
    int status = 0;
    while (waitpid(child, &status, WNOHANG) == 0) {
      if (Clock::now() > check.end + std::chrono::seconds(4)) {
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
        break;
      }
      usleep(10'000);
    }
    std::ifstream in(file(shard));
    const Json part = Json::parse(in, nullptr, false);
    std::remove(file(shard).c_str());
    if (part.is_discarded()) {
      all["faults"].push_back({{"case", cat("process ", shard)}, {"what", cat("ended with status ", status)}});
      continue;
    }
    for (const char* count : {"compared", "not_reached"}) all[count] = all[count].get<int>() + part[count].get<int>();
    all["worst_in_bounds"] = std::max(all["worst_in_bounds"].get<double>(), part["worst_in_bounds"].get<double>());
    for (const char* list : {"faults", "missing"})
      for (const Json& j : part[list]) all[list].push_back(j);
  }
  std::printf(
      "%d cases compared, %zu beyond their bound, %zu without a kernel, %d not reached in time; the largest "
      "error is %.2f of its bound.\n",
      all["compared"].get<int>(), all["faults"].size(), all["missing"].size(), all["not_reached"].get<int>(),
      all["worst_in_bounds"].get<double>());
  for (const Json& f : all["faults"]) std::printf("- FAULT %s\n", f.dump().c_str());
  return all;
}

// ---- steps: the article's network, and a smaller one ----

Json steps(const Check& check) {
  Json out = Json::object();
  for (const auto& [name, sizes] :
       {std::pair{"seed", app::Sizes{1000, 512, 10, 64}}, {"tiny", app::Sizes{16, 32, 4, 32}}}) {
    manual_seed(1);
    const app::Batches batches(sizes, 16, INT64_MAX, DType::f32, check.device);
    app::Training training(sizes, {.device = check.device, .loop = app::Loop::captured});
    int64_t i = 0;
    Tensor loss;
    const auto step = [&] {
      loss = training.step(batches.inputs[i % 16], batches.labels[i % 16]);
      ++i;
    };
    const double seconds = seconds_of(check, step);
    set_profiling(true);
    step();
    wait_for(check.device);
    set_profiling(false);
    Json calls = Json::array();
    for (const CallProfile& c : take_profile()) calls.push_back({{"op", c.label}, {"kernel", c.kernel}, {"us", c.us}});
    std::printf("- %s: %.1f us a step, %zu calls, %.1f GFLOP/s, loss %.4f\n", name, seconds * 1e6, calls.size(),
                sizes.flops() / seconds * 1e-9, loss.item());
    out[name] = {
        {"us", seconds * 1e6}, {"gflops", sizes.flops() / seconds * 1e-9}, {"loss", loss.item()}, {"calls", calls}};
  }
  return out;
}

// ---- gemm ----

Json gemm(const Check& check) {
  Json out = Json::array();
  const std::vector<int64_t> sizes = check.is_cpu ? std::vector<int64_t>{128} : std::vector<int64_t>{512, 2048, 8192};
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16, DType::f64})
    for (const int64_t n : sizes) {
      if (check.is_over() || (dtype == DType::f64 && n > 2048)) continue;
      const Tensor a = randn({n, n}).to(dtype).to(check.device).eval(),
                   b = randn({n, n}).to(dtype).to(check.device).eval();
      const double seconds = seconds_of(check, [&] { static_cast<void>(matmul(a, b).eval()); });
      const double tflops = 2.0 * static_cast<double>(n * n) * static_cast<double>(n) / seconds * 1e-12;
      std::printf("- %s %lld: %.3f TFLOP/s\n", std::string(name_of(dtype)).c_str(), static_cast<long long>(n), tflops);
      out.push_back({{"dtype", name_of(dtype)}, {"n", n}, {"tflops", tflops}});
      check.save(out);
    }
  return out;
}

// ---- memory: kernels bound by it, against a copy on the device ----

Json memory(const Check& check) {
  const int64_t rows = check.is_cpu ? 64 : 16384, columns = 4096;
  const int64_t bytes = rows * columns * 4;
  const Tensor x = (randn({rows, 1}) + zeros({1, columns})).to(check.device).eval();
  const Tensor y = (x * 2).eval(), row = randn({columns}).to(check.device).eval();
  Backend& backend = backend_for(check.device);
  const Tensor target = (x + 1).eval();
  Json out = Json::object();
  double copied = 0;
  const auto measure = [&](const char* name, double passes, const std::function<void()>& fn) {
    if (check.is_over()) return;
    try {
      const double rate = passes * static_cast<double>(bytes) / seconds_of(check, fn) * 1e-9;
      if (copied == 0) copied = rate;
      std::printf("- %s: %.1f GB/s, %.0f%% of a copy\n", name, rate, 100 * rate / copied);
      out[name] = {{"gb_per_s", rate}, {"of_copy", rate / copied}};
      check.save(out);
    } catch (const Error& e) {
      std::printf("- %s: %s\n", name, e.what());
    }
  };
  void* buffer = backend.allocate(check.device, 2 * bytes);
  measure("copy", 2, [&] {
    backend.relayout(check.device, buffer, Layout::plain, static_cast<char*>(buffer) + bytes, Layout::plain, DType::f32,
                     Shape{rows, columns});
  });
  measure("x + 1", 2, [&] { static_cast<void>((x + 1).eval()); });
  measure("x * y + x", 3, [&] {
    Tensor t = x * y;
    t = t + x;
    static_cast<void>(t.eval());
  });
  measure("x + row", 2, [&] { static_cast<void>((x + row).eval()); });
  measure("gelu", 2, [&] { static_cast<void>(gelu(x).eval()); });
  measure("sum", 1, [&] { static_cast<void>(sum(x).eval()); });
  measure("sum of rows", 1, [&] { static_cast<void>(sum(x, {.axes = {1}}).eval()); });
  measure("sum of columns", 1, [&] { static_cast<void>(sum(x, {.axes = {0}}).eval()); });
  measure("softmax", 2, [&] { static_cast<void>(softmax(x).eval()); });
  measure("transpose", 2, [&] { static_cast<void>((x.t() + 1).eval()); });
  backend.free(check.device, buffer, 2 * bytes);
  return out;
}

// A few steps that touch most kinds of kernels, for compute-sanitizer.
Json small(const Check& check) {
  app::Training training({33, 17, 5, 9}, {.device = check.device});
  const app::Batches batches({33, 17, 5, 9}, 3, INT64_MAX, DType::f32, check.device);
  Tensor loss;
  for (int64_t i = 0; i < 3; ++i) loss = training.step(batches.inputs[i], batches.labels[i]);
  std::printf("three steps, loss %.4f\n", loss.item());
  return {{"loss", loss.item()}};
}

int run(const std::string& part, const std::string& device, double seconds, const std::string& out) {
  Check check{Device(device), Clock::now() + std::chrono::milliseconds(static_cast<int64_t>(seconds * 1e3))};
  check.save = [&](const Json& results) {
    const DeviceInfo info = backend_for(check.device).info(check.device);
    std::ofstream(out + "/" + part + ".json") << Json{{"device", info.name}, {"results", results}}.dump(1) << "\n";
  };
  if (part == "parity") return check.save(parity(check, out)), 0;
  const DeviceInfo info = backend_for(check.device).info(check.device);
  check.is_cpu = check.device.type == DeviceType::cpu || std::ranges::count(info.features, "cpu") > 0;
  const std::pair<const char*, Json (*)(const Check&)> parts[] = {
      {"steps", steps}, {"gemm", gemm}, {"memory", memory}, {"small", small}};
  for (const auto& [name, fn] : parts)
    if (part == name) return check.save(fn(check)), 0;
  std::cerr << "unknown part " << part << "\n";
  return 2;
}

}  // namespace
}  // namespace outrace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::cerr << "usage: device_check PART DEVICE SECONDS OUT\n";
    return 2;
  }
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // what was said stays said when time is up
  try {
    return outrace::run(argv[1], argv[2], std::stod(argv[3]), argv[4]);
  } catch (const std::exception& e) {
    std::printf("FAULT %s\n", e.what());
    return 1;
  }
}
