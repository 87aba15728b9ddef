#include "outrace/graph/parity.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "outrace/core/half.h"
#include "outrace/graph/recorder.h"
#include "outrace/graph/walk.h"
#include "outrace/ops/elementwise.h"

namespace outrace {
namespace {

// An op as it was recorded: a computed node forgets its inputs.
struct Step {
  NodePtr node;
  const OpDef* op;
  Attrs attrs;
  std::vector<NodePtr> inputs;
  std::string layer;
  bool backward;
};

// The ops below `roots` that are not computed, inputs before users.
std::vector<Step> steps_of(std::span<const Tensor> roots, const std::unordered_set<const Node*>& known, bool backward,
                           const std::function<std::string(const Node&)>& layer_of) {
  std::vector<NodePtr> nodes;
  for (const Tensor& t : roots) nodes.push_back(t.node_ptr());
  std::vector<Step> steps;
  std::lock_guard hold(engine_lock());
  for (Node* n : walk_graph(nodes).nodes)
    if (!n->is_leaf() && !known.contains(n))
      steps.push_back({NodePtr(n), n->op, n->attrs, {n->inputs.begin(), n->inputs.end()}, layer_of(*n), backward});
  return steps;
}

bool moves_only(const OpDef& op) {
  return op.kind == OpKind::movement || op.kind == OpKind::transfer || op.kind == OpKind::leaf;
}

// Ops whose result is a sum of many terms.
bool adds_up(const OpDef& op) {
  for (const OpDef* sum : {&kMatmul, &kSum, &kMean, &kScatterAdd, &kIndexAdd, &kCumsum})
    if (&op == sum) return true;
  return false;
}

// How many terms an element of an op's result adds up.
double terms_of(const Step& s) {
  if (s.op == &kMatmul) {
    const bool transposed = std::get<MatmulAttrs>(s.attrs).transpose_a;
    const Shape& a = s.inputs[0]->shape;
    return static_cast<double>(a.rank() == 1 ? a.numel() : a.back(transposed ? 1 : 0));
  }
  return static_cast<double>(s.inputs[0]->shape.numel()) /
         static_cast<double>(std::max<int64_t>(1, s.op == &kCumsum ? 1 : s.node->shape.numel()));
}

// The same input for another device, or in float64 on the CPU.
Tensor input_for(const Node& n, Device device, bool wide, bool magnitudes) {
  const DType type = wide && is_float(n.dtype) ? DType::f64 : n.dtype;
  if (n.op == &kScalar) return scalar(n.scalar, type, device);
  if (n.op == &kConstant) {
    const double value = std::get<ConstantAttrs>(n.attrs).value;
    return constant(magnitudes ? std::abs(value) : value, type, device);
  }
  Tensor t(NodePtr(const_cast<Node*>(&n)));
  t = t.detach().to(device);
  if (type != n.dtype) t = t.to(type);
  if (magnitudes && is_float(type)) t = abs(t);
  return t.eval();
}

std::vector<double> run_step(const Step& s, Device device, bool wide, bool magnitudes = false) {
  const NoGrad no_grad;
  std::vector<Tensor> held;
  std::vector<NodePtr> inputs;
  for (const NodePtr& in : s.inputs) {
    held.push_back(input_for(*in, device, wide, magnitudes));
    inputs.push_back(held.back().node_ptr());
  }
  const DType type = wide && is_float(s.node->dtype) ? DType::f64 : s.node->dtype;
  return Tensor(Recorder::current().record(*s.op, inputs, type, s.node->shape, device, s.attrs, s.node->where, true))
      .to_vector<double>();
}

// A float64 reference, and for each element how far from it a result may be.
struct Reference {
  std::vector<double> values, bounds;
};

Reference reference_of(const Step& s, const std::vector<double>& computed) {
  Reference r;
  const DType type = s.node->dtype;
  if (!is_float(type) || moves_only(*s.op) || s.op == &kRandom || s.op == &kCast) {
    r.values = computed;
    r.bounds.assign(computed.size(), 0);
    return r;
  }
  r.values = run_step(s, Device(), true);
  const double unit = epsilon_of(type) / 2;
  if (adds_up(*s.op)) {
    r.bounds = run_step(s, Device(), true, true);
    const double factor = (terms_of(s) + 8) * epsilon_of(type == DType::f64 ? type : DType::f32) / 2 + unit;
    for (double& b : r.bounds) b *= factor;
    return r;
  }
  double largest = 0;
  const auto see = [&](const std::vector<double>& values) {
    for (const double v : values)
      if (std::isfinite(v)) largest = std::max(largest, std::abs(v));
  };
  see(r.values);
  for (const NodePtr& in : s.inputs)
    if (is_float(in->dtype)) see(Tensor(in).to_vector<double>());
  r.bounds.assign(r.values.size(), 64 * unit * largest);
  return r;
}

// The element that is furthest beyond its bound, as a share of it.
OpError worst_element(const Step& s, Device device, const std::vector<double>& got, const Reference& r) {
  OpError e{.op = s.op->name,
            .layer = s.layer,
            .backward = s.backward,
            .device = device,
            .dtype = s.node->dtype,
            .shape = s.node->shape,
            .where = s.node->where};
  for (size_t i = 0; i < got.size(); ++i) {
    const bool same = got[i] == r.values[i] || (std::isnan(got[i]) && std::isnan(r.values[i]));
    const double off = same ? 0 : std::abs(got[i] - r.values[i]);
    OpError here = e;
    here.element = static_cast<int64_t>(i);
    here.got = got[i];
    here.expected = r.values[i];
    here.error = std::isnan(off) ? HUGE_VAL : off;
    here.bound = r.bounds[i];
    if (i == 0 || here.share() > e.share()) e = here;
  }
  return e;
}

}  // namespace

OpParity compare_ops(std::span<const Tensor> forward, std::span<const Tensor> backward, Device other,
                     const std::function<std::string(const Node&)>& layer_of) {
  std::vector<Step> steps = steps_of(forward, {}, false, layer_of);
  std::unordered_set<const Node*> known;
  for (const Step& s : steps) known.insert(s.node.get());
  std::vector<Step> later = steps_of(backward, known, true, layer_of);
  OpParity parity;
  parity.forward_ops = std::ssize(steps);
  parity.backward_ops = std::ssize(later);
  std::move(later.begin(), later.end(), std::back_inserter(steps));

  // Handles make every value an output of the one program that computes them.
  std::vector<Tensor> handles;
  for (const Step& s : steps) handles.emplace_back(s.node);
  for (const Tensor& t : handles) t.eval();

  for (size_t i = 0; i < steps.size(); ++i) {
    const Step& s = steps[i];
    const std::vector<double> here = handles[i].to_vector<double>();
    const Reference reference = reference_of(s, here);
    for (const Device device : {s.node->device, other}) {
      const OpError e =
          worst_element(s, device, device == s.node->device ? here : run_step(s, device, false), reference);
      std::optional<OpError>& worst = s.backward ? parity.worst_backward : parity.worst_forward;
      if (!worst || e.share() > worst->share()) worst = e;
      if (e.share() > 1 && !parity.first) parity.first = e;
      if (device == other) break;
    }
  }
  return parity;
}

}  // namespace outrace
