#include "outrace/graph/print.h"

#include <cstdio>

#include "outrace/core/env.h"
#include "outrace/core/error.h"
#include "outrace/graph/memory_plan.h"

namespace outrace {
namespace {

std::string amount(double v, const char* unit) {
  const char* prefix[] = {"", "k", "M", "G", "T"};
  int p = 0;
  while (v >= 1000 && p < 4) {
    v /= 1000;
    ++p;
  }
  char text[32];
  std::snprintf(text, sizeof text, v < 10 && p ? "%.2f %s%s" : "%.0f %s%s", v, prefix[p], unit);
  return text;
}

std::string name_value(const Plan& plan, int v) {
  const PlanValue& value = plan.values[v];
  switch (value.kind) {
    case ValueKind::input: return cat("in", value.index);
    case ValueKind::output:
      return value.donor >= 0 ? cat("out", value.index, "=in", plan.values[value.donor].index)
                              : cat("out", value.index);
    case ValueKind::constant: return cat("const ", value.fill);
    case ValueKind::temp: break;
  }
  return cat("t", v);
}

void list_call(const Plan& plan, const Call& call, std::string& reads, std::string& writes) {
  auto add = [&](std::string& to, int v) {
    if (v < 0) return;
    const std::string name = name_value(plan, v);
    if (to.find(name) == std::string::npos) to += (to.empty() ? "" : ", ") + name;
  };
  for (const View& v : call.operands) add(reads, v.value);
  add(writes, call.result);
  for (const TileProgram* p : {&call.prologue, &call.epilogue}) {
    for (const TileLoad& l : p->loads)
      if (l.kind == TileLoad::Kind::view) add(reads, l.view.value);
    for (const TileStore& s : p->stores) add(writes, s.view.value);
  }
}

// A node as the signature sees it: what must be equal for two graphs to share a program.
std::string describe(const Walk& walk, size_t i) {
  const Node& n = *walk.nodes[i];
  const bool leaf = n.is_leaf();
  return cat(leaf ? (n.computed() ? "buffer" : n.op->name) : n.op->name, " ", name_of(n.dtype), " ", n.shape, " ",
             n.device, leaf || n.attrs.index() == 0 ? "" : " ", leaf ? "" : to_string(n.attrs),
             n.layout() == Layout::panel ? " packed" : "", walk.output[i] ? " stored" : "",
             walk.keep[i] ? " differentiable" : "");
}

}  // namespace

std::string to_string(const Plan& plan) {
  std::string out;
  int64_t temporaries = 0;
  const std::vector<Lifetime> life = lifetimes(plan);
  for (size_t v = 0; v < plan.values.size(); ++v)
    if (plan.values[v].kind == ValueKind::temp && life[v].first >= 0) temporaries += plan.values[v].bytes();
  for (size_t c = 0; c < plan.calls.size(); ++c) {
    const Call& call = plan.calls[c];
    std::string reads, writes;
    list_call(plan, call, reads, writes);
    const Shape& shape = call.op ? call.shape : call.epilogue.space;
    out += cat("  ", c, "  ", call.device, "  ", call.label, "  ", shape, "  reads ", reads, "  writes ", writes, "  ",
               amount(call.flops, "FLOP"), "  ", amount(call.bytes, "B"), "\n");
  }
  for (const Plan::Arena& a : plan.arenas)
    out += cat("  arena ", a.device, "  ", amount(static_cast<double>(a.bytes), "B"), " for ",
               amount(static_cast<double>(temporaries), "B"), " of temporaries\n");
  return out;
}

void print_new_program(const Plan& plan, const Walk& walk) {
  static std::vector<std::string> last;  // under the engine lock
  std::vector<std::string> now;
  for (size_t i = 0; i < walk.nodes.size(); ++i) now.push_back(describe(walk, i));
  std::string why = "the first program";
  if (!last.empty()) {
    why = cat("the last had ", last.size(), " nodes");
    for (size_t i = 0; i < now.size() && i < last.size(); ++i)
      if (now[i] != last[i]) {
        why = cat("node ", i, " is ", now[i], " where the last program had ", last[i]);
        break;
      }
  }
  std::fprintf(stderr, "outrace: new program: %zu nodes, %zu calls; new because: %s\n", now.size(), plan.calls.size(),
               why.c_str());
  if (debug_level() >= 2) std::fputs(to_string(plan).c_str(), stderr);
  last = std::move(now);
}

}  // namespace outrace
