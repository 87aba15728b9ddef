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

// Element start[i] + j * step[i] of axis i, for j below the result's size; steps may be negative. For pad (slice's
// derivative): where x's elements go, and what all others are.
struct SliceAttrs {
  std::array<int64_t, kMaxRank> start{}, step{};
  double fill = 0;
  static constexpr auto fields() {
    return std::make_tuple(std::pair{"start", &SliceAttrs::start}, std::pair{"step", &SliceAttrs::step},
                           std::pair{"fill", &SliceAttrs::fill});
  }
  friend bool operator==(const SliceAttrs&, const SliceAttrs&) = default;
};

// The axis along which arrays are joined.
struct ConcatAttrs {
  int64_t axis = 0;
  static constexpr auto fields() { return std::make_tuple(std::pair{"axis", &ConcatAttrs::axis}); }
  friend bool operator==(const ConcatAttrs&, const ConcatAttrs&) = default;
};

// Windows that start every `step` entries of `axis`; their entries are the result's last axis.
struct UnfoldAttrs {
  int64_t axis = 0, step = 1;
  static constexpr auto fields() {
    return std::make_tuple(std::pair{"axis", &UnfoldAttrs::axis}, std::pair{"step", &UnfoldAttrs::step});
  }
  friend bool operator==(const UnfoldAttrs&, const UnfoldAttrs&) = default;
};

// The elements whose position along axis_b is that along axis_a plus `offset`.
struct DiagonalAttrs {
  int64_t offset = 0, axis_a = 0, axis_b = 1;
  static constexpr auto fields() {
    return std::make_tuple(std::pair{"offset", &DiagonalAttrs::offset}, std::pair{"axis_a", &DiagonalAttrs::axis_a},
                           std::pair{"axis_b", &DiagonalAttrs::axis_b});
  }
  friend bool operator==(const DiagonalAttrs&, const DiagonalAttrs&) = default;
};

// Reads or writes entries of `axis` named by an index tensor.
struct IndexAttrs {
  int64_t axis = 0;
  int64_t padding = -1;  // this entry gets no gradient: index_add skips it
  bool zeros = false;    // and reads as 0
  bool checked = false;  // another call of the graph refuses these indices: this one need not run first
  static constexpr auto fields() {
    return std::make_tuple(std::pair{"axis", &IndexAttrs::axis}, std::pair{"padding", &IndexAttrs::padding},
                           std::pair{"zeros", &IndexAttrs::zeros}, std::pair{"checked", &IndexAttrs::checked});
  }
  friend bool operator==(const IndexAttrs&, const IndexAttrs&) = default;
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

struct NormAttrs {
  double eps = 1e-5;
  bool centered = true;  // layer norm; else RMS norm
  static constexpr auto fields() {
    return std::make_tuple(std::pair{"eps", &NormAttrs::eps}, std::pair{"centered", &NormAttrs::centered});
  }
  friend bool operator==(const NormAttrs&, const NormAttrs&) = default;
};

// A convolution of x [N, H, W, C] with w [O, C / groups, kernel]. The arrays hold two numbers, for H and for W. Its
// derivatives carry the same attributes, so that each knows the shape it makes.
struct ConvAttrs {
  std::array<int64_t, 2> size{};          // of x
  std::array<int64_t, 2> kernel{1, 1};    // taps
  std::array<int64_t, 2> stride{1, 1};    // entries of x between neighbouring outputs
  std::array<int64_t, 2> dilation{1, 1};  // entries of x between neighbouring taps
  // Zeros around x: those after it end with the last output's window. Negative: entries that no window reaches.
  std::array<int64_t, 2> before{}, after{};
  int64_t groups = 1;
  static constexpr auto fields() {
    return std::make_tuple(std::pair{"size", &ConvAttrs::size}, std::pair{"kernel", &ConvAttrs::kernel},
                           std::pair{"stride", &ConvAttrs::stride}, std::pair{"dilation", &ConvAttrs::dilation},
                           std::pair{"before", &ConvAttrs::before}, std::pair{"after", &ConvAttrs::after},
                           std::pair{"groups", &ConvAttrs::groups});
  }
  friend bool operator==(const ConvAttrs&, const ConvAttrs&) = default;
};

// Windows of x [N, H, W, C], those of pool.h's Windows. `size` is of x, `count` of the result.
struct PoolAttrs {
  std::array<int64_t, 2> size{}, count{};
  std::array<int64_t, 2> kernel{1, 1}, stride{1, 1}, before{}, after{}, dilation{1, 1};
  bool adaptive = false;       // window i: entries floor(i * size / count) up to ceil((i + 1) * size / count)
  bool count_padding = false;  // averages divide by the window's entries within the padded x, else within x
  static constexpr auto fields() {
    return std::make_tuple(std::pair{"size", &PoolAttrs::size}, std::pair{"count", &PoolAttrs::count},
                           std::pair{"kernel", &PoolAttrs::kernel}, std::pair{"stride", &PoolAttrs::stride},
                           std::pair{"before", &PoolAttrs::before}, std::pair{"after", &PoolAttrs::after},
                           std::pair{"dilation", &PoolAttrs::dilation}, std::pair{"adaptive", &PoolAttrs::adaptive},
                           std::pair{"count_padding", &PoolAttrs::count_padding});
  }
  friend bool operator==(const PoolAttrs&, const PoolAttrs&) = default;
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

using Attrs = std::variant<NoAttrs, ConstantAttrs, MatmulAttrs, ReduceAttrs, AxisAttrs, ScanAttrs, SortAttrs,
                           VarianceAttrs, TopKAttrs, HistogramAttrs, PermuteAttrs, SliceAttrs, ConcatAttrs, UnfoldAttrs,
                           DiagonalAttrs, IndexAttrs, CrossEntropyAttrs, NormAttrs, ConvAttrs, PoolAttrs, RandomAttrs>;

// Appends the attributes as 64-bit words: the alternative, then each field. Equal words mean equal attributes.
void append_words(const Attrs& attrs, std::vector<uint64_t>& words);
uint64_t hash_of(const Attrs& attrs);
std::string to_string(const Attrs& attrs);  // "transpose_b=true"

}  // namespace outrace
