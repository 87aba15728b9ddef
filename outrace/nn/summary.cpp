#include "outrace/nn/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "outrace/ops/ops.h"

namespace outrace::nn {
namespace {

std::string grouped(int64_t n) {
  std::string text = std::to_string(n);
  for (int64_t at = std::ssize(text) - 3; at > 0; at -= 3) text.insert(static_cast<size_t>(at), ",");
  return text;
}

struct Row {
  std::string name, type, output;
  int64_t parameters;
};

int64_t own_parameters(Module& module) {
  int64_t n = 0;
  for (const auto& [name, tensor] : module.named_parameters())
    if (name.find('.') == std::string::npos) n += tensor.numel();
  return n;
}

std::string bytes_text(double bytes) {
  const char* units[] = {"B", "KB", "MB", "GB", "TB"};
  int unit = 0;
  for (; bytes >= 1000 && unit < 4; ++unit) bytes /= 1000;
  return fmt::format("{:.{}f} {}", bytes, unit == 0 || bytes >= 100 ? 0 : 1, units[unit]);
}

}  // namespace

std::string summary(Module& module, const Shape& input, const SummaryOptions& options) {
  std::map<const Module*, std::string> outputs;
  std::vector<HookHandle> hooks;
  std::vector<std::pair<Module*, bool>> modes;
  const auto modules = module.named_modules();
  for (const auto& [name, each] : modules) {
    modes.emplace_back(each, each->training());
    hooks.push_back(each->register_forward_hook([&outputs](Module& m, const Tensor&, const Tensor& y) {
      outputs[&m] = cat(y.shape());
      return Tensor();
    }));
  }
  const auto restore = [&] {
    for (HookHandle& hook : hooks) hook.remove();
    for (auto& [each, training] : modes) each->train(training);
  };
  try {
    NoGrad off;
    module.eval();
    module(zeros(input, {options.dtype, options.device}));
  } catch (...) {
    restore();
    throw;
  }
  restore();

  std::vector<Row> rows{{"Layer", "Type", "Output", -1}};
  for (const auto& [name, each] : modules) {
    const std::string arguments = each->arguments();
    const auto output = outputs.find(each);
    rows.push_back({name.empty() ? "(all)" : name, each->type() + (arguments.empty() ? "" : " " + arguments),
                    output == outputs.end() ? "not called" : output->second, own_parameters(*each)});
  }
  size_t width[3] = {}, last = std::string_view("Parameters").size();
  for (const Row& r : rows) {
    width[0] = std::max(width[0], r.name.size());
    width[1] = std::max(width[1], r.type.size());
    width[2] = std::max(width[2], r.output.size());
    last = std::max(last, grouped(std::max<int64_t>(r.parameters, 0)).size());
  }
  std::string text;
  for (const Row& r : rows) {
    const std::string count = r.parameters < 0 ? "Parameters" : r.parameters == 0 ? "" : grouped(r.parameters);
    std::string line = fmt::format("{:<{}}  {:<{}}  {:<{}}  {:>{}}", r.name, width[0], r.type, width[1], r.output,
                                   width[2], count, last);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  const NamedTensors parameters = module.named_parameters();
  int64_t all = 0, trained = 0;
  double bytes = 0;
  for (const auto& [name, tensor] : parameters) {
    all += tensor.numel();
    trained += tensor.requires_grad() ? tensor.numel() : 0;
    bytes += static_cast<double>(tensor.numel() * size_of(tensor.dtype()));
  }
  text += fmt::format("{} parameters, {} of them trained; {}\n", grouped(all), grouped(trained), bytes_text(bytes));
  return text;
}

}  // namespace outrace::nn
