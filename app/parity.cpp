// `outrace parity A B`: the same network on two devices, first op by op, then some steps of training; names the first
// op whose error passes its computed bound.
#include "outrace/graph/parity.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "app/command.h"
#include "app/device_option.h"
#include "app/network.h"
#include "app/signals.h"
#include "app/table.h"
#include "app/terminal.h"

namespace outrace::app {
namespace {

struct ParityOptions {
  std::string a, b;
  Sizes sizes;
  int64_t steps = 20;
  double lr = 1e-3;
  uint64_t seed = 1;
};

// Something compared over the steps of a training: the largest difference as a share of its bound.
struct Drift {
  double difference = 0, bound = 0;
  double share() const { return bound > 0 ? difference / bound : 0; }
};

struct Comparison {
  std::string name;
  Sizes sizes;
  OpParity ops;
  Drift loss, weights;
  bool equal() const { return !ops.first && loss.share() <= 1 && weights.share() <= 1; }
};

// Layers of nodes: each module's own from its input to its output, the innermost module first.
class LayerNames {
 public:
  explicit LayerNames(nn::Module& network) {
    for (auto& [name, module] : network.named_modules()) {
      if (name.empty()) continue;
      hooks_.push_back(
          module->register_forward_hook([this, path = name](nn::Module&, const Tensor& x, const Tensor& y) {
            mark(y.node_ptr().get(), x.node_ptr().get(), path);
            return Tensor();
          }));
      for (const auto& [parameter, tensor] : module->named_parameters()) of_.emplace(tensor.node_ptr().get(), name);
    }
  }
  ~LayerNames() {
    for (nn::HookHandle& h : hooks_) h.remove();
  }

  // A derivative belongs to the layer of the first thing it reads that has one.
  std::string operator()(const Node& n) {
    std::string& name = of_[&n];
    for (const NodePtr& in : n.inputs)
      if (const auto known = of_.find(in.get()); name.empty() && known != of_.end()) name = known->second;
    return name;
  }

 private:
  void mark(const Node* n, const Node* input, const std::string& path) {
    if (n == input || n->is_leaf() || !of_.emplace(n, path).second) return;
    for (const NodePtr& in : n->inputs) mark(in.get(), input, path);
  }

  std::map<const Node*, std::string> of_;
  std::vector<nn::HookHandle> hooks_;
};

OpParity compare_first_step(Training& training, const Tensor& x, const Tensor& y, Device other) {
  LayerNames layers(training.network());
  const Tensor loss = nn::CrossEntropyLoss()(training.network()(x), y);
  const std::vector<Tensor> gradients = grad(loss, training.network().parameters());
  return compare_ops(std::vector<Tensor>{loss}, gradients, other, [&](const Node& n) { return layers(n); });
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double off = std::abs(a[i] - b[i]);
    most = std::isnan(off) ? HUGE_VAL : std::max(most, off);
  }
  return most;
}

// Batches on the CPU: [count, batch, inputs] and [count, batch].
struct Data {
  Tensor inputs, labels;
};

Data random_data(const Sizes& sizes, const ParityOptions& options) {
  manual_seed(options.seed);
  const Batches batches(sizes, options.steps, int64_t{1} << 28, DType::f32, Device());
  return {batches.inputs, batches.labels};
}

Data digits_data(const Sizes& sizes) {
  const Digits& digits = load_digits();
  const int64_t count = digits.count / sizes.batch;
  const auto used = static_cast<size_t>(count * sizes.batch);
  return {Tensor::from(std::span(digits.images).first(used * Digits::kPixels), {count, sizes.batch, Digits::kPixels}),
          Tensor::from(std::span(digits.labels).first(used), {count, sizes.batch})};
}

Comparison compare_training(std::string name, const Sizes& sizes, const Data& data, Device a, Device b,
                            const ParityOptions& options) {
  Comparison c{.name = std::move(name), .sizes = sizes, .ops = {}, .loss = {}, .weights = {}};
  progress(fmt::format("{}: op by op", c.name));
  const auto training_on = [&](Device device) {
    manual_seed(options.seed);
    return std::make_unique<Training>(sizes, TrainingOptions{.device = device, .lr = options.lr});
  };
  const auto first = training_on(a), second = training_on(b);
  const Data on_a{data.inputs.to(a).eval(), data.labels.to(a).eval()};
  const Data on_b{data.inputs.to(b).eval(), data.labels.to(b).eval()};
  c.ops = compare_first_step(*first, on_a.inputs[0], on_a.labels[0], b);

  for (int64_t step = 0; step < options.steps && stop_signal() == 0; ++step) {
    progress(fmt::format("{}: step {} of {}", c.name, step + 1, options.steps));
    const int64_t i = step % data.inputs.size(0);
    const double here = first->step(on_a.inputs[i], on_a.labels[i]).item();
    const double there = second->step(on_b.inputs[i], on_b.labels[i]).item();
    // A step's products add up so many terms, each rounded once; their errors pass on from step to step.
    const double terms = static_cast<double>(sizes.inputs + sizes.hidden + sizes.batch);
    const double bound = static_cast<double>(step + 1) * terms * epsilon_of(DType::f32) / 2 * std::max(1.0, here);
    const Drift now{largest_difference({here}, {there}), bound};
    if (step == 0 || now.share() > c.loss.share()) c.loss = now;
  }
  const auto p = first->network().parameters(), q = second->network().parameters();
  // Adam moves a weight by the learning rate at most however small its gradient is: one that is rounding alone moves it
  // either way.
  c.weights.bound = 2 * options.lr * static_cast<double>(options.steps);
  for (size_t i = 0; i < p.size(); ++i)
    c.weights.difference =
        std::max(c.weights.difference, largest_difference(p[i].to_vector<double>(), q[i].to_vector<double>()));
  return c;
}

std::string place_of(const OpError& e) {
  return fmt::format("{}{} ({}:{})", e.layer.empty() ? "" : e.layer + ": ", e.op,
                     std::filesystem::path(e.where.file_name()).filename().string(), e.where.line());
}

std::string number(double v) { return v == 0 ? "0" : fmt::format("{:.2g}", v); }

std::string fault_text(const OpError& e) {
  return fmt::format(
      "the first op beyond its bound in the {} pass is {}, on {}: element {} of {} {} is {:.9g}, in float64 {:.9g}; "
      "off "
      "by {}, bound {}\n",
      e.backward ? "backward" : "forward", place_of(e), e.device.str(), e.element, name_of(e.dtype), e.shape.str(),
      e.got, e.expected, number(e.error), number(e.bound));
}

std::string table_text(const std::vector<Comparison>& all, Device a, Device b, const ParityOptions& options) {
  std::string text = fmt::format("{} and {}: batch {}, Adam, f32, {}\n", a.str(), b.str(), options.sizes.batch,
                                 counted(options.steps, "step"));
  Table table({"network", "compared", "largest\nerror", "share of\nits bound", "where"});
  for (const Comparison& c : all) {
    const std::string sizes = fmt::format("{} {}-{}-{}", c.name, c.sizes.inputs, c.sizes.hidden, c.sizes.outputs);
    const auto ops = [&](int64_t count, const char* which, const std::optional<OpError>& worst) {
      table.add({sizes, fmt::format("{} {}", counted(count, "op"), which), worst ? number(worst->error) : "-",
                 worst ? percent(worst->share(), 1) : "-", worst ? place_of(*worst) : "-"});
    };
    ops(c.ops.forward_ops, "forward", c.ops.worst_forward);
    ops(c.ops.backward_ops, "backward", c.ops.worst_backward);
    table.add({sizes, options.steps == 1 ? "1 loss" : fmt::format("{} losses", options.steps),
               number(c.loss.difference), percent(c.loss.share(), 1), "-"});
    table.add({sizes, "weights", number(c.weights.difference), percent(c.weights.share(), 1), "-"});
  }
  text += table.str(out_width());
  bool equal = true;
  for (const Comparison& c : all) {
    equal &= c.equal();
    if (c.ops.first)
      text += c.name + ": " + fault_text(*c.ops.first);
    else if (!c.equal())
      text += fmt::format(
          "{}: no op alone is beyond its bound, but training is: the fault is in a fused program or in the optimizer's "
          "update\n",
          c.name);
  }
  return text + (equal ? "Equal within the bounds.\n" : "Not equal.\n");
}

nlohmann::ordered_json json_of(const std::optional<OpError>& e) {
  if (!e) return nullptr;
  return {{"op", e->op},
          {"layer", e->layer},
          {"backward", e->backward},
          {"device", e->device.str()},
          {"element", e->element},
          {"got", e->got},
          {"expected", e->expected},
          {"error", e->error},
          {"bound", e->bound},
          {"where", fmt::format("{}:{}", e->where.file_name(), e->where.line())}};
}

std::string json_text(const std::vector<Comparison>& all, Device a, Device b, const ParityOptions& options) {
  nlohmann::ordered_json json = {{"devices", {a.str(), b.str()}}, {"steps", options.steps}, {"seed", options.seed}};
  bool equal = true;
  for (const Comparison& c : all) {
    equal &= c.equal();
    json["networks"].push_back({{"name", c.name},
                                {"equal", c.equal()},
                                {"forward_ops", c.ops.forward_ops},
                                {"backward_ops", c.ops.backward_ops},
                                {"worst_forward", json_of(c.ops.worst_forward)},
                                {"worst_backward", json_of(c.ops.worst_backward)},
                                {"first_fault", json_of(c.ops.first)},
                                {"loss", {{"difference", c.loss.difference}, {"bound", c.loss.bound}}},
                                {"weights", {{"difference", c.weights.difference}, {"bound", c.weights.bound}}}});
  }
  json["equal"] = equal;
  return json.dump() + "\n";
}

int parity(const Common& common, const ParityOptions& options) {
  const Device a = asked_device(options.a), b = asked_device(options.b);
  const Sizes digits{.inputs = Digits::kPixels,
                     .hidden = options.sizes.hidden,
                     .outputs = 10,
                     .batch = std::min<int64_t>(options.sizes.batch, load_digits().count)};
  std::vector<Comparison> all;
  all.push_back(compare_training("article", options.sizes, random_data(options.sizes, options), a, b, options));
  if (stop_signal() == 0) all.push_back(compare_training("digits", digits, digits_data(digits), a, b, options));
  end_progress();
  if (stop_signal() != 0) return kFailed;
  out(common.json ? json_text(all, a, b, options) : table_text(all, a, b, options));
  return std::ranges::all_of(all, &Comparison::equal) ? kDone : kGateMissed;
}

}  // namespace

void add_parity(CLI::App& app, Command& command) {
  static ParityOptions options;
  CLI::App* sub = app.add_subcommand("parity", "Whether two devices compute the same, op by op and in training");
  sub->add_option("a", options.a, "A device (cpu, cuda, opencl:0)")->required()->type_name("A");
  sub->add_option("b", options.b, "Another")->required()->type_name("B");
  const auto size = [&](const char* name, int64_t& value, const char* what) {
    sub->add_option(name, value, what)
        ->check(CLI::Range(int64_t{1}, int64_t{1} << 20).description(""))
        ->type_name("N")
        ->capture_default_str();
  };
  size("--steps", options.steps, "Steps of training");
  size("--inputs", options.sizes.inputs, "Numbers a sample has");
  size("--hidden", options.sizes.hidden, "Width of the hidden layer");
  size("--outputs", options.sizes.outputs, "Classes");
  size("--batch", options.sizes.batch, "Samples a step");
  sub->add_option("--lr", options.lr, "Learning rate of Adam")->type_name("X")->capture_default_str();
  sub->add_option("--seed", options.seed, "Of weights and data")->type_name("N")->capture_default_str();
  sub->footer(
      "Each op of one step, forward and backward, is computed on both devices and in\n"
      "float64 from the same inputs. Its bound: (K + 8) roundings of the sum of the\n"
      "magnitudes for an op that adds up K terms, 64 roundings of the largest number it\n"
      "reads or writes for others; integers and moved elements must be equal. Then both\n"
      "devices train from the same weights: the losses may differ by K roundings a\n"
      "step (K: inputs + hidden + batch), weights by Adam's largest move.\n"
      "Exit code 5 if something is beyond its bound; the first such op is named.\n\n"
      "Examples:\n"
      "  outrace parity cpu opencl:0\n"
      "  outrace parity cpu cuda --steps 100 --json");
  add_common(*sub, command.common);
  sub->callback([&command] { command.run = [&command] { return parity(command.common, options); }; });
}

}  // namespace outrace::app
