#include "outrace/graph/schedule.h"

#include <algorithm>
#include <queue>
#include <set>

#include "outrace/core/error.h"
#include "outrace/graph/lower.h"

namespace outrace {
namespace {

struct Scheduler {
  const Ir& ir;
  const Fused& f;
  Scheduled out;
  Placement at;
  std::vector<std::set<int>> before;  // groups that must run before a group
  std::vector<int> refusing;          // groups that may refuse the values they get

  Scheduler(const Ir& graph, const Fused& fused) : ir(graph), f(fused), before(fused.groups.size()) {
    at.value.assign(ir.nodes.size(), -1);
    at.scalar.assign(ir.nodes.size(), -1);
  }

  static bool live(const Group& g) { return g.producer >= 0 || !g.members.empty(); }

  int add_value(PlanValue v) {
    out.plan.values.push_back(v);
    return static_cast<int>(out.plan.values.size()) - 1;
  }

  PlanValue describe(int node, ValueKind kind, int index) const {
    const IrNode& n = ir.nodes[node];
    PlanValue v;
    v.kind = kind;
    v.index = index;
    v.dtype = n.dtype;
    v.shape = n.shape;
    v.layout = n.layout;
    v.device = n.device;
    return v;
  }

  void place_leaves() {
    for (size_t i = 0; i < ir.nodes.size(); ++i) {
      const IrNode& n = ir.nodes[i];
      if (n.op == &kBuffer) {
        at.value[i] = add_value(describe(static_cast<int>(i), ValueKind::input, out.plan.inputs++));
        out.input_walk.push_back(n.walk);
      } else if (n.op == &kScalar) {
        at.scalar[i] = out.plan.scalars++;
        out.scalar_walk.push_back(n.walk);
      } else if (n.op == &kConstant) {
        PlanValue v = describe(static_cast<int>(i), ValueKind::constant, 0);
        v.fill = std::get<ConstantAttrs>(n.attrs).value;
        at.value[i] = add_value(v);
      }
    }
  }

  // The node whose memory holds node `o`.
  int home(int o) const { return f.group_of[o] >= 0 ? o : f.access[o].base; }

  void place_results() {
    std::vector<uint8_t> output(ir.nodes.size(), 0), read(ir.nodes.size(), 0);
    for (const Ir::Output& o : ir.outputs) output[home(o.node)] = 1;
    for (size_t g = 0; g < f.groups.size(); ++g)
      for_inputs(ir, f.groups[g], [&](int, int in) {
        const int base = f.access[in].base;
        if (f.group_of[base] != static_cast<int>(g)) read[base] = 1;
      });
    auto place = [&](int node) {
      if (output[node])
        at.value[node] = add_value(describe(node, ValueKind::output, out.plan.outputs++));
      else
        at.value[node] = add_value(describe(node, ValueKind::temp, 0));
    };
    for (const Group& g : f.groups) {
      if (!live(g)) continue;
      const int root = g.members.empty() ? g.producer : g.members.back();
      if (g.producer >= 0 && (g.producer == root || output[g.producer] || read[g.producer])) place(g.producer);
      for (int m : g.members)
        if (m == root || output[m] || read[m]) place(m);
    }
    for (const Ir::Output& o : ir.outputs) {
      const int base = home(o.node);
      Scheduled::Output result{o.walk, -1, -1, base == o.node ? 0 : f.access[o.node].offset};
      if (ir.nodes[base].op == &kBuffer)
        result.leaf_walk = ir.nodes[base].walk;
      else
        result.plan_output = out.plan.values[at.value[base]].index;
      out.outputs.push_back(result);
    }
  }

  void find_order() {
    for (size_t g = 0; g < f.groups.size(); ++g)
      for_inputs(ir, f.groups[g], [&](int, int in) {
        const int s = f.group_of[f.access[in].base];
        if (s >= 0 && s != static_cast<int>(g)) before[g].insert(s);
      });
  }

  bool runs_after(int group, int other) const {
    std::vector<int> stack{group};
    std::vector<uint8_t> seen(f.groups.size(), 0);
    while (!stack.empty()) {
      const int g = stack.back();
      stack.pop_back();
      if (g == other) return true;
      if (seen[g]) continue;
      seen[g] = 1;
      stack.insert(stack.end(), before[g].begin(), before[g].end());
    }
    return false;
  }

  // Whether `node` may be written over leaf `donor`: every reader can run first, and the call itself reads it only
  // element by element.
  bool can_overwrite(int node, int donor, std::vector<int>& readers) const {
    const int home_group = f.group_of[node];
    const Group& g = f.groups[home_group];
    for (const Ir::Output& o : ir.outputs)
      if (f.access[o.node].base == donor) return false;
    for (size_t r = 0; r < f.groups.size(); ++r) {
      bool reads = false, elementwise_only = true;
      auto look = [&](const std::vector<int>& nodes, bool epilogue) {
        for (int n : nodes)
          for (int in : ir.nodes[n].inputs)
            if (f.access[in].base == donor) {
              reads = true;
              elementwise_only &= epilogue && in == donor && ir.nodes[n].shape == ir.nodes[donor].shape;
            }
      };
      if (f.groups[r].producer >= 0) look({f.groups[r].producer}, false);
      look(f.groups[r].members,
           ir.nodes[f.groups[r].members.empty() ? 0 : f.groups[r].members.back()].op->kind == OpKind::elementwise);
      look(f.groups[r].prologue, false);
      if (!reads) continue;
      if (static_cast<int>(r) == home_group) {
        if (!elementwise_only) return false;
      } else {
        if (runs_after(static_cast<int>(r), home_group)) return false;
        readers.push_back(static_cast<int>(r));
      }
    }
    return !g.members.empty() || g.producer < 0;
  }

  static bool claims_checked(const IrNode& n) {
    const auto* index = std::get_if<IndexAttrs>(&n.attrs);
    return index != nullptr && index->checked;
  }

  // A derivative's indices are refused by the forward call that reads them too, if that is in this program: nobody may
  // have asked for its value.
  bool may_throw(const IrNode& n) const {
    if (!n.op->may_throw || !claims_checked(n)) return n.op->may_throw;
    return std::none_of(ir.nodes.begin(), ir.nodes.end(), [&](const IrNode& other) {
      return other.op->may_throw && !claims_checked(other) &&
             std::any_of(n.inputs.begin(), n.inputs.end(), [&](int in) {
               return !is_float(ir.nodes[in].dtype) &&
                      std::find(other.inputs.begin(), other.inputs.end(), in) != other.inputs.end();
             });
    });
  }

  // Calls that may refuse their values run before anything is overwritten, so that a failed step changes nothing.
  bool checks_first(int group, std::vector<int>& before_it) const {
    for (const int other : refusing) {
      if (other == group || runs_after(other, group)) return false;
      before_it.push_back(other);
    }
    return true;
  }

  void place_donors() {
    for (size_t g = 0; g < f.groups.size(); ++g)
      if (f.groups[g].producer >= 0 && may_throw(ir.nodes[f.groups[g].producer]))
        refusing.push_back(static_cast<int>(g));
    std::vector<uint8_t> given(ir.nodes.size(), 0);
    for (const Ir::Output& o : ir.outputs) {
      const int donor = ir.nodes[o.node].donor;
      if (donor < 0 || home(o.node) != o.node || given[donor] || ir.nodes[o.node].op->kind != OpKind::elementwise)
        continue;
      std::vector<int> readers;
      if (!can_overwrite(o.node, donor, readers) || !checks_first(f.group_of[o.node], readers)) continue;
      given[donor] = 1;
      out.plan.values[at.value[o.node]].donor = at.value[donor];
      before[f.group_of[o.node]].insert(readers.begin(), readers.end());
    }
  }

  void emit() {
    // Earliest recorded first among those that may run; a product with an update counts as the product, so that updates
    // follow their gradients at once and the gradients' memory is free again.
    auto key = [&](int g) { return f.groups[g].producer >= 0 ? f.groups[g].producer : f.groups[g].members.back(); };
    std::vector<int> waits(f.groups.size(), 0);
    std::vector<std::vector<int>> after(f.groups.size());
    using Item = std::pair<int, int>;
    std::priority_queue<Item, std::vector<Item>, std::greater<>> ready;
    size_t total = 0;
    for (size_t g = 0; g < f.groups.size(); ++g) {
      if (!live(f.groups[g])) continue;
      ++total;
      for (int b : before[g]) after[b].push_back(static_cast<int>(g));
      waits[g] = static_cast<int>(before[g].size());
      if (waits[g] == 0) ready.push({key(static_cast<int>(g)), static_cast<int>(g)});
    }
    while (!ready.empty()) {
      const int g = ready.top().second;
      ready.pop();
      Call call = lower_group(ir, f, f.groups[g], at, out.plan.values);
      for (const TileStore& s : call.epilogue.stores) call.inplace |= out.plan.values[s.view.value].donor >= 0;
      out.plan.calls.push_back(std::move(call));
      for (int a : after[g])
        if (--waits[a] == 0) ready.push({key(a), a});
    }
    OUTRACE_ASSERT(out.plan.calls.size() == total, "the schedule has a cycle");
  }
};

}  // namespace

Scheduled schedule(const Ir& ir, const Fused& fused) {
  Scheduler s(ir, fused);
  s.place_leaves();
  s.place_results();
  s.find_order();
  s.place_donors();
  s.emit();
  return std::move(s.out);
}

}  // namespace outrace
