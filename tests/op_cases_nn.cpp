// Cases of normalization.
#include "op_cases.h"
#include "outrace/graph/recorder.h"

namespace outrace {

void add_normalization_cases(std::vector<OpCase>& out) {
  using Args = std::span<const Tensor>;
  for (const Shape& s : {Shape{3, 4}, Shape{2, 3, 5}, Shape{4, 37}, Shape{7}, Shape{2, 1030}}) {
    const Shape last{s.back()};
    const double n = 16 + static_cast<double>(s.back());
    out.push_back(
        {"layer_norm", cat("layer_norm ", s), {s}, -3, 3, [last](Args a) { return layer_norm(a[0], last); }, n});
    out.push_back({"layer_norm",
                   cat("layer_norm with a weight ", s),
                   {s, last},
                   -3,
                   3,
                   [last](Args a) { return layer_norm(a[0], last, a[1]); },
                   n});
    out.push_back({"layer_norm",
                   cat("layer_norm with weight and bias ", s),
                   {s, last, last},
                   -3,
                   3,
                   [last](Args a) { return layer_norm(a[0], last, a[1], a[2], 1e-3); },
                   n});
    out.push_back({"layer_norm",
                   cat("rms_norm ", s),
                   {s, last},
                   -3,
                   3,
                   [last](Args a) { return rms_norm(a[0], last, a[1]); },
                   n});
  }
  out.push_back({"layer_norm",
                 "layer_norm over two axes of a transposed input",
                 {{3, 4, 2}, {4, 3}, {4, 3}},
                 -3,
                 3,
                 [](Args a) {
                   return layer_norm(a[0].permute({2, 1, 0}), Shape{4, 3}, a[1], a[2]);
                 },
                 32});
  out.push_back({"layer_norm",
                 "group_norm",
                 {{2, 6, 3}, {6}, {6}},
                 -3,
                 3,
                 [](Args a) { return group_norm(a[0], 3, a[1], a[2]); },
                 32});
  for (const Shape& s : {Shape{5, 3}, Shape{2, 3, 4}, Shape{2, 3, 3, 2}}) {
    out.push_back({"batch_norm",
                   cat("batch_norm in training ", s),
                   {s, {3}, {3}},
                   -3,
                   3,
                   [](Args a) { return batch_norm(a[0], {}, {}, a[1], a[2], {.training = true}); },
                   64});
    out.push_back({"batch_norm",
                   cat("batch_norm in training without a weight ", s),
                   {s},
                   -3,
                   3,
                   [](Args a) { return batch_norm(a[0], {}, {}, {}, {}, {.training = true}); },
                   64});
    out.push_back({"rsqrt",
                   cat("batch_norm in evaluation ", s),
                   {s, {3}, {3}},
                   -3,
                   3,
                   [](Args a) {
                     const CreateOptions o{a[0].dtype(), a[0].device()};
                     return batch_norm(a[0], full({3}, 0.5, o), full({3}, 2, o), a[1], a[2]);
                   },
                   32});
  }
  for (const Shape& s : {Shape{7, 3}, Shape{40, 17}, Shape{513, 2}}) {
    const Shape per_channel{s[1]}, both{2, s[1]};
    out.push_back({"batch_moments",
                   cat("moments ", s),
                   {s},
                   -3,
                   3,
                   [both](Args a) { return record(kBatchMoments, {&a[0]}, a[0].dtype(), both, NoAttrs{},
                                   std::source_location::current()); },
                   64});
    out.push_back({"batch_norm_sums",
                   cat("sums ", s),
                   {s, s, per_channel},
                   -3,
                   3,
                   [both](Args a) {
                     return record(kBatchNormSums, {&a[0], &a[1], &a[2]}, a[0].dtype(), both, NoAttrs{},
                                   std::source_location::current());
                   },
                   8.0 * static_cast<double>(s[0])});
  }
}

}  // namespace outrace
