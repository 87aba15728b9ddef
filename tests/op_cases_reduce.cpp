// Op cases of reductions, scans and sorting.
#include <limits>

#include "op_cases.h"

namespace outrace {
namespace {

using Args = std::span<const Tensor>;

void add_reductions(std::vector<OpCase>& out) {
  const std::vector<std::pair<Shape, ReduceOptions>> forms = {{{3, 4}, {}},
                                                              {{3, 4}, {{0}, false}},
                                                              {{3, 4}, {{1}, true}},
                                                              {{2, 3, 4}, {{1}, false}},
                                                              {{2, 3, 4}, {{0, 2}, true}},
                                                              {{5}, {{-1}, false}},
                                                              {{1, 1}, {{0}, false}},
                                                              {{2, 3, 2, 3}, {{1, 3}, false}},
                                                              {{300}, {}},
                                                              {{70, 33}, {{0}, false}}};
  for (const auto& [shape, options] : forms) {
    const std::string form = cat(" ", shape, " axes ", options.axes.size());
    const double n = static_cast<double>(shape.numel());
    out.push_back({"sum", "sum" + form, {shape}, -2, 2, [options](Args a) { return sum(a[0], options); }, n, true});
    out.push_back({"mean", "mean" + form, {shape}, -2, 2, [options](Args a) { return mean(a[0], options); }, n});
    out.push_back({"max", "max" + form, {shape}, -2, 2, [options](Args a) { return max(a[0], options); }, 1, true});
    out.push_back({"min", "min" + form, {shape}, -2, 2, [options](Args a) { return min(a[0], options); }, 1, true});
    out.push_back({"prod", "prod" + form, {shape}, 0.8, 1.2, [options](Args a) { return prod(a[0], options); }, n});
    for (int64_t correction : {0, 1}) {
      const VarianceOptions o{options.axes, options.keepdim, correction};
      if (shape == Shape{1, 1}) continue;  // NaN
      out.push_back(
          {"var", cat("var", form, " ", correction), {shape}, -2, 2, [o](Args a) { return var(a[0], o); }, 32});
      out.push_back(
          {"var", cat("std", form, " ", correction), {shape}, -2, 2, [o](Args a) { return std(a[0], o); }, 32});
    }
    out.push_back(
        {"logsumexp", "logsumexp" + form, {shape}, -2, 2, [options](Args a) { return logsumexp(a[0], options); }, n});
  }
  out.push_back({"sum",
                 "sum of squared differences",
                 {{6, 5}, {5}},
                 -2,
                 2,
                 [](Args a) { return sum(square(a[0] - a[1]), {{1}}); },
                 64});
  out.push_back(
      {"mean", "mean of a transposed view", {{6, 5}}, -2, 2, [](Args a) { return mean(a[0].t(), {{0}}); }, 32});
}

// Bool, true where the values are positive.
Tensor positive(const std::vector<double>& v, const Shape& shape, Device device) {
  return greater(Tensor::from(v, shape, device), 0.0);
}

void add_norms(std::vector<OpCase>& out) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  for (double p : {1.0, 2.0, 3.0, 0.5, -1.5, kInf, -kInf})
    for (const ReduceOptions& options : {ReduceOptions{}, ReduceOptions{{0}, true}, ReduceOptions{{0, 2}, false}}) {
      const std::string name = cat("norm ", p, " axes ", options.axes.size());
      const char* op = p == kInf ? "max" : p == -kInf ? "min" : "sum";
      out.push_back({op, name, {{2, 3, 4}}, 0.2, 3, [=](Args a) { return norm(a[0], p, options); }, 64});
      out.push_back(
          {op, name + " of negatives", {{2, 3, 4}}, -3, -0.2, [=](Args a) { return norm(a[0], p, options); }, 64});
    }
}

void add_masked(std::vector<OpCase>& out) {
  // One row keeps nothing.
  const std::vector<double> keep{1, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1};
  auto mask = [keep](Args a) { return positive(keep, {3, 4}, a[0].device()); };
  out.push_back(
      {"sum", "masked_softmax", {{3, 4}}, -3, 3, [mask](Args a) { return masked_softmax(a[0], mask(a)); }, 32});
  out.push_back({"sum",
                 "masked_softmax axis 0",
                 {{3, 4}},
                 -3,
                 3,
                 [mask](Args a) { return masked_softmax(a[0], mask(a), 0); },
                 32});
  out.push_back({"sum",
                 "masked_log_softmax, kept entries",
                 {{3, 4}},
                 -3,
                 3,
                 [mask](Args a) { return select(mask(a), masked_log_softmax(a[0], mask(a)), 0.0); },
                 32});
  out.push_back({"logsumexp",
                 "masked_logsumexp, rows that keep something",
                 {{3, 4}},
                 -3,
                 3,
                 [mask](Args a) {
                   const Tensor y = masked_logsumexp(a[0], mask(a), {{1}});
                   return select(y > -100, y, 0.0);
                 },
                 32});
  out.push_back(
      {"sum", "masked_sum", {{3, 4}}, -3, 3, [mask](Args a) { return masked_sum(a[0], mask(a), {{1}}); }, 32});
}

void add_scans(std::vector<OpCase>& out) {
  for (const auto& [shape, axis] : std::vector<std::pair<Shape, int64_t>>{
           {{5}, 0}, {{1}, 0}, {{}, 0}, {{3, 4}, 0}, {{3, 4}, 1}, {{2, 4, 3}, 1}, {{4, 1}, 1}, {{9, 30}, 1}})
    for (int form = 0; form < 4; ++form) {
      const ScanOptions o{form % 2 == 1, form >= 2};
      const int64_t a0 = axis;
      const std::string name =
          cat(" ", shape, " axis ", axis, o.reverse ? " reverse" : "", o.exclusive ? " exclusive" : "");
      out.push_back({"cumsum", "cumsum" + name, {shape}, -2, 2, [=](Args a) { return cumsum(a[0], a0, o); }, 64});
      out.push_back({"cumprod", "cumprod" + name, {shape}, 0.5, 1.5, [=](Args a) { return cumprod(a[0], a0, o); }, 64});
    }
  for (bool reverse : {false, true}) {
    out.push_back({"linear_recurrence",
                   cat("linear_recurrence ", reverse),
                   {{3, 5}, {3, 5}},
                   -1,
                   1,
                   [reverse](Args a) { return linear_recurrence(a[0], a[1], 1, reverse); },
                   64});
    out.push_back({"linear_recurrence",
                   cat("linear_recurrence along the first axis ", reverse),
                   {{4, 3}, {4, 3}},
                   -1,
                   1,
                   [reverse](Args a) { return linear_recurrence(a[0], a[1], 0, reverse); },
                   64});
  }
  out.push_back({"gather", "cummax", {{3, 5}}, -2, 2, [](Args a) { return cummax(a[0], 1).values; }});
  out.push_back({"gather", "cummin", {{3, 5}}, -2, 2, [](Args a) { return cummin(a[0], 0).values; }});
}

void add_picking(std::vector<OpCase>& out) {
  for (int64_t axis : {0, 1, 2}) {
    auto add = [&](const char* name, auto fn) {
      out.push_back({"gather", cat(name, " axis ", axis), {{2, 3, 4}}, -2, 2, fn, 8});
    };
    add("max_with_indices", [axis](Args a) { return max_with_indices(a[0], axis).values; });
    add("min_with_indices", [axis](Args a) { return min_with_indices(a[0], axis, true).values; });
    add("sort", [axis](Args a) { return sort(a[0], axis).values; });
    add("sort downwards", [axis](Args a) { return sort(a[0], axis, true).values; });
    add("topk", [axis](Args a) { return topk(a[0], 2, {.axis = axis}).values; });
    add("topk by position", [axis](Args a) { return topk(a[0], 2, {axis, false, false}).values; });
    add("kthvalue", [axis](Args a) { return kthvalue(a[0], 2, axis).values; });
    add("median", [axis](Args a) { return median(a[0], axis, true).values; });
    add("quantile", [axis](Args a) { return quantile(a[0], 0.3, axis); });
    add("quantiles", [axis](Args a) { return quantile(a[0], std::vector<double>{0.1, 0.5, 1}, axis, true); });
  }
  out.push_back({"gather", "sort of no axes", {{}}, -2, 2, [](Args a) { return sort(a[0]).values; }});
  out.push_back({"gather", "sort of a transposed view", {{5, 7}}, -2, 2, [](Args a) { return sort(a[0].t()).values; }});
}

}  // namespace

void add_reduce_cases(std::vector<OpCase>& out) {
  add_reductions(out);
  add_norms(out);
  add_masked(out);
  add_scans(out);
  add_picking(out);
}

}  // namespace outrace
