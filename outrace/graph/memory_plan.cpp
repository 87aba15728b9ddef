#include "outrace/graph/memory_plan.h"

#include <algorithm>

namespace outrace {

std::vector<Lifetime> lifetimes(const Plan& plan) {
  std::vector<Lifetime> life(plan.values.size());
  for (size_t c = 0; c < plan.calls.size(); ++c) {
    const int at = static_cast<int>(c);
    auto touch = [&](int v) {
      if (v < 0) return;
      if (life[v].first < 0) life[v].first = at;
      life[v].last = at;
    };
    const Call& call = plan.calls[c];
    for (const View& v : call.operands) touch(v.value);
    touch(call.result);
    for (const TileProgram* p : {&call.prologue, &call.epilogue}) {
      for (const TileLoad& l : p->loads)
        if (l.kind == TileLoad::Kind::view) touch(l.view.value);
      for (const TileStore& s : p->stores) touch(s.view.value);
    }
  }
  return life;
}

void plan_memory(Plan& plan) {
  const std::vector<Lifetime> life = lifetimes(plan);
  std::vector<int> order;
  for (size_t v = 0; v < plan.values.size(); ++v)
    if (plan.values[v].kind == ValueKind::temp && life[v].first >= 0) order.push_back(static_cast<int>(v));
  // Largest first, each into the lowest gap: within a few per cent of the peak of live bytes on networks' graphs.
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return plan.values[a].bytes() > plan.values[b].bytes(); });
  std::vector<int> placed;
  for (int v : order) {
    PlanValue& value = plan.values[v];
    const int64_t size = (value.bytes() + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
    std::vector<std::pair<int64_t, int64_t>> taken;
    for (int other : placed) {
      const PlanValue& o = plan.values[other];
      if (o.device == value.device && life[other].first <= life[v].last && life[v].first <= life[other].last)
        taken.push_back(
            {o.arena_offset, o.arena_offset + (o.bytes() + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment});
    }
    std::sort(taken.begin(), taken.end());
    int64_t offset = 0;
    for (const auto& [from, to] : taken) {
      if (offset + size <= from) break;
      offset = std::max(offset, to);
    }
    value.arena_offset = offset;
    placed.push_back(v);
    auto arena = std::find_if(plan.arenas.begin(), plan.arenas.end(),
                              [&](const Plan::Arena& a) { return a.device == value.device; });
    if (arena == plan.arenas.end()) arena = plan.arenas.insert(arena, {value.device, 0});
    arena->bytes = std::max(arena->bytes, offset + size);
  }
}

}  // namespace outrace
