#include "app/bench_ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "app/signals.h"
#include "app/table.h"
#include "app/terminal.h"
#include "app/timing.h"
#include "outrace/backend/backend.h"
#include "outrace/backend/cpu/peak.h"
#include "outrace/core/cpu_info.h"
#include "outrace/core/thread.h"
#include "outrace/core/version.h"
#include "outrace/outrace.h"

namespace outrace::app {
namespace {

constexpr int kFewestSamples = 5, kMostSamples = 40;
constexpr double kMeasuredMs = 400;                   // an op
constexpr int64_t kCopiedBytes = int64_t{256} << 20;  // for a device's roof: beyond every cache

// What an op works on; each array is made when it is first asked for, on the host, so that no device needs a kernel
// for that.
class Arrays {
 public:
  explicit Arrays(const OpsOptions& options)
      : size(options.size), parameters(options.parameters), device(options.device) {}
  const Tensor& x() { return make(x_, {size, size}); }
  const Tensor& z() { return make(z_, {size, size}); }
  const Tensor& row() { return make(row_, {size}); }
  Tensor indices() const { return randint(0, size, {size}).to(device).eval(); }
  const int64_t size, parameters;
  const Device device;

 private:
  const Tensor& make(Tensor& t, const Shape& shape) const {
    if (!t.defined()) t = randn(shape).to(device).eval();
    return t;
  }
  Tensor x_, z_, row_;
};

// What a device's memory does at best: the host's streaming copy, or the device's own through its driver.
class Roof {
 public:
  explicit Roof(Device device) : device_(device), backend_(backend_for(device)) {
    if (device_.type == DeviceType::cpu) return;
    for (void*& array : arrays_) array = backend_.allocate(device_, kCopiedBytes);
  }
  Roof(const Roof&) = delete;
  ~Roof() {
    for (void* array : arrays_)
      if (array != nullptr) backend_.free(device_, array, kCopiedBytes);
  }
  double sample_copy_gb_per_s() const {
    if (device_.type == DeviceType::cpu) return outrace::sample_copy_gb_per_s();
    backend_.synchronize(device_);
    const Stopwatch watch;
    backend_.relayout(device_, arrays_[1], Layout::plain, arrays_[0], Layout::plain, DType::u8, {kCopiedBytes});
    backend_.synchronize(device_);
    return 2.0 * kCopiedBytes / watch.ms() * 1e-6;
  }
  // 0: not known of this device.
  double gflops() const { return device_.type == DeviceType::cpu ? measured_peak().gflops_f32 : 0; }

 private:
  const Device device_;
  Backend& backend_;
  void* arrays_[2] = {};
};

struct OpBench {
  const char* name;
  double arrays;  // [size, size] arrays of f32 that are read or written at least; 0: arithmetic decides
  // Prepares what is not measured; the result is one run.
  std::function<std::function<void()>(Arrays&)> prepare;
  double flops_a_size_cubed = 0;
  double bytes_a_parameter = 0;  // besides those arrays
};

std::function<void()> each(std::function<Tensor()> fn) {
  return [fn = std::move(fn)] { fn().eval(); };
}

template <class Fn>
OpBench unary(const char* name, double arrays, Fn fn) {
  return {name, arrays, [fn](Arrays& a) {
            const Tensor x = a.x();
            return each([x, fn] { return fn(x); });
          }};
}

template <class Fn>
OpBench binary(const char* name, double arrays, Fn fn) {
  return {name, arrays, [fn](Arrays& a) {
            const Tensor x = a.x(), z = a.z();
            return each([x, z, fn] { return fn(x, z); });
          }};
}

// Adam alone, on a gradient that lies in memory.
std::function<void()> adam(Arrays& arrays) {
  struct State {
    explicit State(const Arrays& a)
        : p(zeros({a.parameters}, {.device = a.device}).requires_grad_()),
          g(full({a.parameters}, 1e-3, {.device = a.device}).eval()) {}
    Tensor p, g;
    optim::Adam optimizer{{p}};
  };
  return [s = std::make_shared<State>(arrays)] {
    s->optimizer.zero_grad();
    sum(s->p * s->g).backward();
    s->optimizer.step();
  };
}

std::vector<OpBench> benches() {
  return {
      unary("copy", 2, [](const Tensor& x) { return x + 0.0; }),
      binary("add", 3, [](const Tensor& x, const Tensor& z) { return x + z; }),
      binary("chain of 4", 3, [](const Tensor& x, const Tensor& z) { return relu(x * z + x) * 0.5; }),
      unary("exp", 2, [](const Tensor& x) { return exp(x); }),
      unary("tanh", 2, [](const Tensor& x) { return tanh(x); }),
      unary("sigmoid", 2, [](const Tensor& x) { return sigmoid(x); }),
      unary("gelu", 2, [](const Tensor& x) { return gelu(x); }),
      unary("sum", 1, [](const Tensor& x) { return sum(x); }),
      unary("sum of rows", 1, [](const Tensor& x) { return sum(x, {{1}}); }),
      unary("sum of columns", 1, [](const Tensor& x) { return sum(x, {{0}}); }),
      unary("max of rows", 1, [](const Tensor& x) { return max(x, {{1}}); }),
      unary("prod of rows", 1, [](const Tensor& x) { return prod(x, {{1}}); }),
      unary("argmax of rows", 1, [](const Tensor& x) { return argmax(x, 1); }),
      unary("var of rows", 1, [](const Tensor& x) { return var(x, {{1}}); }),
      unary("logsumexp of rows", 1, [](const Tensor& x) { return logsumexp(x, {{1}}); }),
      unary("cumsum of rows", 2, [](const Tensor& x) { return cumsum(x, 1); }),
      unary("sort of rows", 0, [](const Tensor& x) { return sort(x, 1).values; }),
      unary("softmax", 2, [](const Tensor& x) { return softmax(x); }),
      unary("log_softmax", 2, [](const Tensor& x) { return log_softmax(x); }),
      {"layer_norm", 2,
       [](Arrays& a) {
         const Tensor x = a.x(), w = a.row(), b = a.row();
         return each([x, w, b] { return layer_norm(x, {x.shape().back()}, w, b); });
       }},
      {"layer_norm backward", 3,
       [](Arrays& a) {
         Tensor x = a.x().detach() * 1;
         Tensor w = a.row() * 1, b = a.row() + 1;
         for (Tensor* t : {&x, &w, &b}) *t = t->eval().detach().requires_grad_();
         return std::function<void()>([x, w, b, g = a.z()] {
           for (const Tensor& t : grad(layer_norm(x, {x.shape().back()}, w, b), {x, w, b}, {}, g)) t.eval();
         });
       }},
      {"rms_norm", 2,
       [](Arrays& a) {
         const Tensor x = a.x(), w = a.row();
         return each([x, w] { return rms_norm(x, {x.shape().back()}, w); });
       }},
      {"cross_entropy", 1,
       [](Arrays& a) {
         const Tensor x = a.x(), t = a.indices();
         return each([x, t] { return cross_entropy(x, t); });
       }},
      binary("cat", 4,
             [](const Tensor& x, const Tensor& z) {
               return cat(std::vector<Tensor>{x, z});
             }),
      {"embedding", 2,
       [](Arrays& a) {
         const Tensor x = a.x(), i = a.indices();
         return each([x, i] { return embedding(x, i); });
       }},
      unary("transpose", 2, [](const Tensor& x) { return x.t() + 0.0; }),
      {"matmul", 0,
       [](Arrays& a) {
         const Tensor x = a.x(), z = a.z();
         return each([x, z] { return matmul(x, z); });
       },
       2},
      {"adam", 0, adam, 0, 7.0 * sizeof(float)},
  };
}

struct OpFigure {
  std::string name = {};
  double ms = 0, gb_per_s = 0, gflops = 0, copy_gb_per_s = 0, share = 0;
  int64_t samples = 0;
  std::string missing = {};  // why the device does not do it
};

// The best of some samples of the op, and of copies right before and after them: what others do to the memory meanwhile
// hits both. Not between them: a copy would empty the caches, in which the op's arrays may lie.
OpFigure measure(const OpBench& op, Arrays& arrays, const Roof& roof) {
  OpFigure f{.name = op.name};
  const auto run = [&arrays, once = op.prepare(arrays)] {
    once();
    backend_for(arrays.device).synchronize(arrays.device);
  };
  const auto copy = [&f, &roof] {
    for (int i = 0; i < 3; ++i) f.copy_gb_per_s = std::max(f.copy_gb_per_s, roof.sample_copy_gb_per_s());
  };
  copy();
  run();
  const Stopwatch all;
  for (; f.samples < kFewestSamples || (all.ms() < kMeasuredMs && f.samples < kMostSamples); ++f.samples) {
    if (stop_signal() != 0) return f;
    const Stopwatch watch;
    run();
    f.ms = f.samples == 0 ? watch.ms() : std::min(f.ms, watch.ms());
  }
  copy();
  const double n = static_cast<double>(arrays.size);
  const double bytes =
      op.arrays * n * n * sizeof(float) + op.bytes_a_parameter * static_cast<double>(arrays.parameters);
  f.gb_per_s = bytes / f.ms * 1e-6;
  f.gflops = op.flops_a_size_cubed * n * n * n / f.ms * 1e-6;
  f.share = std::max(f.copy_gb_per_s > 0 ? f.gb_per_s / f.copy_gb_per_s : 0,
                     roof.gflops() > 0 ? f.gflops / roof.gflops() : 0);
  return f;
}

// An op that the device has no kernel for says so and is not the end.
OpFigure figure_of(const OpBench& op, Arrays& arrays, const Roof& roof) {
  try {
    return measure(op, arrays, roof);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::device) throw;
    return {.name = op.name, .missing = e.what()};
  }
}

nlohmann::ordered_json json_of(const OpFigure& f) {
  if (!f.missing.empty()) return {{"op", f.name}, {"missing", f.missing}};
  return {{"op", f.name},
          {"ms", f.ms},
          {"gb_per_s", f.gb_per_s},
          {"gflops", f.gflops},
          {"copy_gb_per_s", f.copy_gb_per_s},
          {"roof_share", f.share},
          {"samples", f.samples}};
}

std::string text_of(const std::vector<OpFigure>& figures, const OpsOptions& options, const Roof& roof) {
  Table table({"op", "ms", "GB/s", "copy\nbeside", "GFLOP/s", "share\nof roof"});
  std::string missing;
  for (const OpFigure& f : figures) {
    if (!f.missing.empty()) {
      missing += fmt::format("{}: {}\n", f.name, f.missing);
      continue;
    }
    table.add({f.name, significant(f.ms), f.gb_per_s > 0 ? significant(f.gb_per_s) : "",
               f.gb_per_s > 0 ? significant(f.copy_gb_per_s) : "", f.gflops > 0 ? significant(f.gflops) : "",
               f.share > 0 ? percent(f.share) : ""});
  }
  const std::string where = options.device.type == DeviceType::cpu
                                ? fmt::format("{}, {}", name_of(active_isa()), counted(num_threads(), "thread"))
                                : options.device.str();
  const std::string arithmetic =
      roof.gflops() > 0 ? fmt::format(", or {:.0f} GFLOP/s, measured now", roof.gflops()) : "";
  return fmt::format(
      "{} f32 {} x {} ({})\n\n{}{}\nRoof: a copy beyond the caches, right before and after the op{}. Above 100 % the "
      "data came from caches, or was only read. adam: {} parameters.\n",
      bold("ops"), options.size, options.size, where, table.str(out_width()), missing.empty() ? "" : "\n" + missing,
      arithmetic, options.parameters);
}

}  // namespace

std::string op_bench_names() {
  std::string names;
  for (const OpBench& op : benches()) names += (names.empty() ? "" : ", ") + std::string(op.name);
  return names;
}

int bench_ops(const Common& common, const OpsOptions& options) {
  manual_seed(options.seed);
  std::vector<OpBench> chosen = benches();
  std::erase_if(chosen,
                [&](const OpBench& op) { return std::string(op.name).find(options.filter) == std::string::npos; });
  if (chosen.empty())
    throw UsageError(fmt::format("no op has '{}' in its name; there are: {}", options.filter, op_bench_names()));
  Arrays arrays(options);
  progress("measuring the roof");
  const Roof roof(options.device);
  const double peak_gflops = roof.gflops();
  std::vector<OpFigure> figures;
  for (const OpBench& op : chosen) {
    progress(op.name);
    const OpFigure f = figure_of(op, arrays, roof);
    if (stop_signal() != 0) break;
    figures.push_back(f);
  }
  end_progress();
  if (stop_signal() != 0) remark(fmt::format("Stopped by signal {}; so far:", stop_signal()));
  if (!common.json) {
    out(text_of(figures, options, roof));
    return kDone;
  }
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const OpFigure& f : figures) rows.push_back(json_of(f));
  const nlohmann::ordered_json json = {{"workload", "ops"},
                                       {"device", options.device.str()},
                                       {"size", options.size},
                                       {"parameters", options.parameters},
                                       {"unit", "ms"},
                                       {"peak_gflops", peak_gflops},
                                       {"ops", rows},
                                       {"threads", num_threads()},
                                       {"isa", name_of(active_isa())},
                                       {"version", kVersion}};
  out(json.dump() + "\n");
  return kDone;
}

}  // namespace outrace::app
