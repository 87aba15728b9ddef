// Image kernels read and write [N, H, W, C], users [N, C, H, W], so every convolution stands between two permutes. Here
// those behind it sink through what follows (elementwise ops, reductions, slices, cat) until they meet the one before
// the next convolution, where simplify() takes both away: between convolutions nothing is ever transposed.
#include <algorithm>
#include <optional>

#include "outrace/graph/passes/passes.h"

namespace outrace {
namespace {

using Axes = std::array<int64_t, kMaxRank>;

bool makes_images(const IrNode& n) {
  return n.op == &kConv || n.op == &kConvInputGrad || n.op == &kMaxPool || n.op == &kMaxPoolGrad ||
         n.op == &kMaxPoolPick || n.op == &kAvgPool || n.op == &kAvgPoolGrad;
}

bool reduces_axes(const IrNode& n) { return std::holds_alternative<ReduceAttrs>(n.attrs) && n.op != &kLogSumExp; }

struct Sinker {
  // A value that is not there yet: axis i of it is axis axes[i] of `node`.
  struct Below {
    Axes axes{};
    int node;
  };

  const Ir& ir;
  Ir to;
  std::vector<int> at;  // by node of ir: the node of `to` with its value; -1: only below[] is there
  std::vector<std::optional<Below>> below;

  explicit Sinker(const Ir& graph) : ir(graph), at(graph.nodes.size(), -1), below(graph.nodes.size()) {}

  int add(IrNode n) {
    to.nodes.push_back(std::move(n));
    return static_cast<int>(to.nodes.size()) - 1;
  }

  // A node like `like` that only moves elements of `input`.
  int moved(const OpDef& op, int input, const Shape& shape, const Attrs& attrs) {
    IrNode n;
    n.op = &op;
    n.attrs = attrs;
    n.inputs = {input};
    n.dtype = to.nodes[input].dtype;
    n.device = to.nodes[input].device;
    n.shape = shape;
    return add(std::move(n));
  }

  int plain(int i) {
    if (at[i] < 0) {
      at[i] = moved(kPermute, below[i]->node, ir.nodes[i].shape, PermuteAttrs{below[i]->axes});
      to.nodes[at[i]].output = ir.nodes[i].output;
    }
    return at[i];
  }

  static bool same_axes(const Axes& a, const Axes& b, int rank) {
    return std::equal(a.begin(), a.begin() + rank, b.begin());
  }
  static bool in_order(const Axes& axes, int rank) {
    for (int k = 0; k < rank; ++k)
      if (axes[k] != k) return false;
    return true;
  }
  static Shape shape_below(const Shape& shape, const Axes& axes) {
    Shape s = shape;
    for (int k = 0; k < shape.rank(); ++k) s = s.with(static_cast<int>(axes[k]), shape[k]);
    return s;
  }

  // Value i, broadcast against a value of rank `rank`, as it is read below a permute by `axes`.
  int under(int i, const Axes& axes, int rank) {
    const Shape& s = ir.nodes[i].shape;
    if (below[i] && s.rank() == rank && same_axes(below[i]->axes, axes, rank)) return below[i]->node;
    const int node = plain(i);
    if (s.numel() == 1) return node;
    Shape whole = s;
    while (whole.rank() < rank) whole = whole.inserted(0, 1);
    const Shape result = shape_below(whole, axes);
    // With one axis that is longer than 1 (a value for each channel) the order of elements stays.
    if (std::count_if(s.begin(), s.end(), [](int64_t d) { return d != 1; }) == 1)
      return moved(kReshape, node, result, NoAttrs{});
    const int wide = whole == s ? node : moved(kReshape, node, whole, NoAttrs{});
    PermuteAttrs back;
    for (int k = 0; k < rank; ++k) back.axes[axes[k]] = k;
    return moved(kPermute, wide, result, back);
  }

  void sink_permute(int i) {
    const IrNode& n = ir.nodes[i];
    const int in = n.inputs[0];
    Below b{std::get<PermuteAttrs>(n.attrs).axes, 0};
    const int rank = n.shape.rank();
    if (below[in]) {
      Axes joined{};
      for (int k = 0; k < rank; ++k) joined[k] = below[in]->axes[b.axes[k]];
      if (in_order(joined, rank)) {
        at[i] = below[in]->node;
        to.nodes[at[i]].output |= n.output;
        return;
      }
      below[i] = Below{joined, below[in]->node};
    } else if (makes_images(ir.nodes[in])) {
      b.node = plain(in);
      below[i] = b;
    }
  }

  // n over inputs below permutes by `axes`.
  IrNode lowered(const IrNode& n, const Axes& axes) {
    IrNode m = n;
    m.output = false;
    m.shape = shape_below(n.shape, axes);
    for (int& in : m.inputs) in = under(in, axes, n.shape.rank());
    return m;
  }

  void sink_elementwise(int i) {
    const IrNode& n = ir.nodes[i];
    if (n.donor >= 0) return;
    for (const int in : n.inputs)
      if (below[in] && ir.nodes[in].shape == n.shape) {
        const Axes axes = below[in]->axes;
        below[i] = Below{axes, add(lowered(n, axes))};
        return;
      }
  }

  void sink_reduction(int i) {
    const IrNode& n = ir.nodes[i];
    const int in = n.inputs[0];
    if (!below[in]) return;
    const auto& attrs = std::get<ReduceAttrs>(n.attrs);
    const int rank = ir.nodes[in].shape.rank();
    IrNode m = n;
    m.output = false;
    m.inputs = {below[in]->node};
    ReduceAttrs moved_attrs{0, attrs.keepdim};
    Axes kept{};  // those that stay: where each is below
    int count = 0;
    for (int k = 0; k < rank; ++k) {
      const int64_t axis = below[in]->axes[k];
      if ((attrs.axes >> k & 1) != 0) moved_attrs.axes |= int64_t{1} << axis;
      if (attrs.keepdim || (attrs.axes >> k & 1) == 0) kept[count++] = axis;
    }
    m.attrs = moved_attrs;
    Axes rank_of{};  // of each kept axis among them
    for (int k = 0; k < count; ++k)
      rank_of[k] = std::count_if(kept.begin(), kept.begin() + count, [&](int64_t axis) { return axis < kept[k]; });
    m.shape = shape_below(n.shape, rank_of);
    if (!in_order(rank_of, count)) {
      below[i] = Below{rank_of, add(std::move(m))};
      return;
    }
    m.output = n.output;
    m.donor = n.donor >= 0 ? plain(n.donor) : -1;
    at[i] = add(std::move(m));
  }

  void sink_slice(int i) {  // and pad, its derivative
    const IrNode& n = ir.nodes[i];
    const auto& b = below[n.inputs[0]];
    if (!b) return;
    const auto& attrs = std::get<SliceAttrs>(n.attrs);
    IrNode m = lowered(n, b->axes);
    SliceAttrs moved_attrs = attrs;
    for (int k = 0; k < n.shape.rank(); ++k) {
      moved_attrs.start[b->axes[k]] = attrs.start[k];
      moved_attrs.step[b->axes[k]] = attrs.step[k];
    }
    m.attrs = moved_attrs;
    const Axes axes = b->axes;
    below[i] = Below{axes, add(std::move(m))};
  }

  void sink_cat(int i) {
    const IrNode& n = ir.nodes[i];
    if (std::none_of(n.inputs.begin(), n.inputs.end(), [&](int in) { return below[in].has_value(); })) return;
    for (const int in : n.inputs)
      if (below[in]) {
        const Axes axes = below[in]->axes;
        IrNode m = lowered(n, axes);
        m.attrs = ConcatAttrs{axes[std::get<ConcatAttrs>(n.attrs).axis]};
        below[i] = Below{axes, add(std::move(m))};
        return;
      }
  }

  void sink(int i) {
    const IrNode& n = ir.nodes[i];
    if (n.op == &kPermute)
      sink_permute(i);
    else if (n.op->kind == OpKind::elementwise)
      sink_elementwise(i);
    else if (reduces_axes(n))
      sink_reduction(i);
    else if (n.op == &kSlice || n.op == &kPad)
      sink_slice(i);
    else if (n.op == &kCat)
      sink_cat(i);
    if (at[i] >= 0 || below[i]) return;
    IrNode m = n;
    for (int& in : m.inputs) in = plain(in);
    m.donor = n.donor >= 0 ? plain(n.donor) : -1;
    at[i] = add(std::move(m));
  }
};

}  // namespace

Ir sink_permutes(const Ir& ir) {
  if (std::none_of(ir.nodes.begin(), ir.nodes.end(), makes_images)) return ir;
  Sinker s(ir);
  for (size_t i = 0; i < ir.nodes.size(); ++i) s.sink(static_cast<int>(i));
  for (const Ir::Output& o : ir.outputs) s.to.outputs.push_back({o.walk, s.plain(o.node)});
  return simplify(s.to);
}

}  // namespace outrace
