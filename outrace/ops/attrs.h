// Attributes of structured ops: plain data whose ==, hash, and printing are generated from one list of fields each.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "outrace/core/dtype.h"
#include "outrace/core/shape.h"

namespace outrace {

struct NoAttrs {
  static constexpr std::tuple<> fields() { return {}; }
  friend bool operator==(const NoAttrs&, const NoAttrs&) = default;
};

// A number written in the graph itself: 0, 1, -1, 2, 0.5 (others are scalar inputs).
struct ConstantAttrs {
  double value = 0;
  static constexpr auto fields() { return std::make_tuple(std::pair{"value", &ConstantAttrs::value}); }
  friend bool operator==(const ConstantAttrs&, const ConstantAttrs&) = default;
};

struct MatmulAttrs {
  bool transpose_a = false, transpose_b = false;  // of the last two axes
  static constexpr auto fields() {
    return std::make_tuple(std::pair{"transpose_a", &MatmulAttrs::transpose_a},
                           std::pair{"transpose_b", &MatmulAttrs::transpose_b});
  }
  friend bool operator==(const MatmulAttrs&, const MatmulAttrs&) = default;
};

struct ReduceAttrs {
  int64_t axes = 0;  // bit i set: axis i is reduced
  bool keepdim = false;
  static constexpr auto fields() {
    return std::make_tuple(std::pair{"axes", &ReduceAttrs::axes}, std::pair{"keepdim", &ReduceAttrs::keepdim});
  }
  friend bool operator==(const ReduceAttrs&, const ReduceAttrs&) = default;
};

struct PermuteAttrs {
  std::array<int64_t, kMaxRank> axes{};  // axis i of the result is axis axes[i] of the input
  static constexpr auto fields() { return std::make_tuple(std::pair{"axes", &PermuteAttrs::axes}); }
  friend bool operator==(const PermuteAttrs&, const PermuteAttrs&) = default;
};

// Element start[i] + j * step[i] of axis i, for j below the result's size. For pad (slice's derivative): where x's
// elements go.
struct SliceAttrs {
  std::array<int64_t, kMaxRank> start{}, step{};
  static constexpr auto fields() {
    return std::make_tuple(std::pair{"start", &SliceAttrs::start}, std::pair{"step", &SliceAttrs::step});
  }
  friend bool operator==(const SliceAttrs&, const SliceAttrs&) = default;
};

struct AxisAttrs {
  int64_t axis = 0;
  static constexpr auto fields() { return std::make_tuple(std::pair{"axis", &AxisAttrs::axis}); }
  friend bool operator==(const AxisAttrs&, const AxisAttrs&) = default;
};

// reverse: from the axis's end. exclusive: element i gets what comes before it.
struct ScanAttrs {
  int64_t axis = 0;
  bool reverse = false, exclusive = false;
  static constexpr auto fields() {
    return std::make_tuple(std::pair{"axis", &ScanAttrs::axis}, std::pair{"reverse", &ScanAttrs::reverse},
                           std::pair{"exclusive", &ScanAttrs::exclusive});
  }
  friend bool operator==(const ScanAttrs&, const ScanAttrs&) = default;
};

struct SortAttrs {
  bool descending = false;
  static constexpr auto fields() { return std::make_tuple(std::pair{"descending", &SortAttrs::descending}); }
  friend bool operator==(const SortAttrs&, const SortAttrs&) = default;
};

struct VarianceAttrs {
  int64_t axis = 0;
  int64_t correction = 1;  // the sum of squared differences is divided by count - correction
  static constexpr auto fields() {
    return std::make_tuple(std::pair{"axis", &VarianceAttrs::axis},
                           std::pair{"correction", &VarianceAttrs::correction});
  }
  friend bool operator==(const VarianceAttrs&, const VarianceAttrs&) = default;
};

// Of what an order selects along the last axis: the first k in their order, the same by position, or the k-th alone.
enum class Selection : uint8_t { sorted, by_position, only_kth };

struct TopKAttrs {
  int64_t k = 1;
  bool largest = true;
  Selection selection = Selection::sorted;
  static constexpr auto fields() {
    return std::make_tuple(std::pair{"k", &TopKAttrs::k}, std::pair{"largest", &TopKAttrs::largest},
                           std::pair{"selection", &TopKAttrs::selection});
  }
  friend bool operator==(const TopKAttrs&, const TopKAttrs&) = default;
};

struct HistogramAttrs {
  int64_t bins = 1;
  double low = 0, high = 1;
  static constexpr auto fields() {
    return std::make_tuple(std::pair{"bins", &HistogramAttrs::bins}, std::pair{"low", &HistogramAttrs::low},
                           std::pair{"high", &HistogramAttrs::high});
  }
  friend bool operator==(const HistogramAttrs&, const HistogramAttrs&) = default;
};

enum class Reduction : uint8_t { none, mean, sum };

struct CrossEntropyAttrs {
  Reduction reduction = Reduction::mean;
  int64_t ignore_index = -100;
  static constexpr auto fields() {
    return std::make_tuple(std::pair{"reduction", &CrossEntropyAttrs::reduction},
                           std::pair{"ignore_index", &CrossEntropyAttrs::ignore_index});
  }
  friend bool operator==(const CrossEntropyAttrs&, const CrossEntropyAttrs&) = default;
};

enum class Distribution : uint8_t { uniform, normal, integer };

// uniform: [a, b); normal: mean a, standard deviation b; integer: a <= i < b.
struct RandomAttrs {
  Distribution distribution = Distribution::uniform;
  double a = 0, b = 1;
  static constexpr auto fields() {
    return std::make_tuple(std::pair{"distribution", &RandomAttrs::distribution}, std::pair{"a", &RandomAttrs::a},
                           std::pair{"b", &RandomAttrs::b});
  }
  friend bool operator==(const RandomAttrs&, const RandomAttrs&) = default;
};

using Attrs =
    std::variant<NoAttrs, ConstantAttrs, MatmulAttrs, ReduceAttrs, PermuteAttrs, SliceAttrs, CrossEntropyAttrs,
                 RandomAttrs, AxisAttrs, ScanAttrs, SortAttrs, VarianceAttrs, TopKAttrs, HistogramAttrs>;

// Appends the attributes as 64-bit words: the alternative, then each field. Equal words mean equal attributes.
void append_words(const Attrs& attrs, std::vector<uint64_t>& words);
uint64_t hash_of(const Attrs& attrs);
std::string to_string(const Attrs& attrs);  // "transpose_b=true"

}  // namespace outrace
