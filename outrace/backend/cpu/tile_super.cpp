#include "outrace/backend/cpu/tile_super.h"

#include <algorithm>
#include <array>
#include <bit>

namespace outrace::cpu {
namespace {

struct PatternNode {
  enum class Kind : uint8_t { input, uniform, literal, instr } kind;
  int index = 0;  // of the input or uniform
  double literal = 0;
  Ew op{};
  std::array<int, 3> operands = {-1, -1, -1};
};

struct Pattern {
  Super super;
  int inputs, uniforms;
  std::vector<PatternNode> nodes;
  std::vector<int> outputs;  // nodes
};

// A value of tile_super.def's texts that records what is done to it.
class Symbol {
 public:
  int node = -1;

  Symbol() = default;
  Symbol(double literal) : node(append({.kind = PatternNode::Kind::literal, .literal = literal})) {}
  explicit Symbol(PatternNode n) : node(append(n)) {}

  static inline std::vector<PatternNode>* recording = nullptr;  // where make_pattern writes

#define UNARY(name, ...) \
  friend Symbol name(Symbol x) { return instr(Ew::name, x); }
#define BINARY(name, ...) \
  friend Symbol name(Symbol x, Symbol z) { return instr(Ew::name, x, z); }
#define COMPARE(name, ...) BINARY(name)
#define SELECT(name, ...) \
  friend Symbol name(Symbol x, Symbol z, Symbol w) { return instr(Ew::name, x, z, w); }
#include "outrace/ops/ops.def"
#undef UNARY
#undef BINARY
#undef COMPARE
#undef SELECT
  friend Symbol operator-(Symbol x) { return neg(x); }
  friend Symbol operator+(Symbol x, Symbol z) { return add(x, z); }
  friend Symbol operator-(Symbol x, Symbol z) { return sub(x, z); }
  friend Symbol operator*(Symbol x, Symbol z) { return mul(x, z); }
  friend Symbol operator/(Symbol x, Symbol z) { return div(x, z); }
  friend Symbol operator>(Symbol x, Symbol z) { return greater(x, z); }
  friend Symbol operator<(Symbol x, Symbol z) { return less(x, z); }

 private:
  static int append(const PatternNode& n) {
    recording->push_back(n);
    return static_cast<int>(recording->size()) - 1;
  }
  static Symbol instr(Ew op, Symbol x, Symbol z = at(-1), Symbol w = at(-1)) {
    return Symbol(PatternNode{.kind = PatternNode::Kind::instr, .op = op, .operands = {x.node, z.node, w.node}});
  }
  static Symbol at(int node) {
    Symbol s;
    s.node = node;
    return s;
  }
};

#define SUPER(name, inputs, uniforms, outputs, ...) \
  void trace_##name(const Symbol(&in)[inputs], [[maybe_unused]] const Symbol* u, Symbol(&out)[outputs]) { __VA_ARGS__; }
#include "outrace/backend/cpu/tile_super.def"
#undef SUPER

template <int kInputs, int kUniforms, int kOutputs>
Pattern make_pattern(Super super, void (*trace)(const Symbol (&)[kInputs], const Symbol*, Symbol (&)[kOutputs])) {
  Pattern p{.super = super, .inputs = kInputs, .uniforms = kUniforms, .nodes = {}, .outputs = {}};
  Symbol::recording = &p.nodes;
  Symbol in[kInputs], u[kUniforms + 1], out[kOutputs];
  for (int i = 0; i < kInputs; ++i) in[i] = Symbol(PatternNode{.kind = PatternNode::Kind::input, .index = i});
  for (int i = 0; i < kUniforms; ++i) u[i] = Symbol(PatternNode{.kind = PatternNode::Kind::uniform, .index = i});
  trace(in, u, out);
  Symbol::recording = nullptr;
  for (const Symbol& s : out) p.outputs.push_back(s.node);
  return p;
}

const std::vector<Pattern>& patterns() {
  static const std::vector<Pattern> all = {
#define SUPER(name, inputs, uniforms, outputs, ...) make_pattern<inputs, uniforms, outputs>(Super::name, trace_##name),
#include "outrace/backend/cpu/tile_super.def"
#undef SUPER
  };
  return all;
}

// One attempt to lay a pattern over the program.
class Matcher {
 public:
  Matcher(const Pattern& pattern, const TileGraph& graph) : p_(pattern), g_(graph), bound_(pattern.nodes.size(), -1) {}

  // Whether pattern node `node` can be register `reg`, given what is bound already; binds what it needs, or nothing.
  bool match(int node, int reg) {
    if (bound_[node] >= 0) return bound_[node] == reg;
    const PatternNode& n = p_.nodes[node];
    switch (n.kind) {
      case PatternNode::Kind::input:
        if (g_.uniform[reg]) return false;
        break;
      case PatternNode::Kind::uniform:
        if (!g_.uniform[reg]) return false;
        break;
      case PatternNode::Kind::literal:
        if (!is_constant(reg, n.literal)) return false;
        break;
      case PatternNode::Kind::instr: {
        if (g_.is_load(reg) || g_.uniform[reg]) return false;
        const TileInstr& instr = g_.instr(reg);
        if (instr.op != n.op) return false;
        const bool commutes = n.op == Ew::add || n.op == Ew::mul;
        if (!match_operands(n, {instr.x, instr.z, instr.w}) &&
            !(commutes && match_operands(n, {instr.z, instr.x, instr.w})))
          return false;
        break;
      }
    }
    bind(node, reg);
    return true;
  }

  int register_of(int node) const { return bound_[node]; }

 private:
  bool is_constant(int reg, double literal) const {
    if (!g_.is_load(reg) || g_.program.loads[reg].kind != TileLoad::Kind::constant) return false;
    return std::bit_cast<uint64_t>(g_.program.loads[reg].constant) == std::bit_cast<uint64_t>(literal);  // -0 is not 0
  }
  bool match_operands(const PatternNode& n, std::array<int, 3> regs) {
    const size_t mark = trail_.size();
    for (int i = 0; i < 3; ++i) {
      if (n.operands[i] < 0 || match(n.operands[i], regs[i])) continue;
      for (; trail_.size() > mark; trail_.pop_back()) bound_[trail_.back()] = -1;
      return false;
    }
    return true;
  }
  void bind(int node, int reg) {
    bound_[node] = reg;
    trail_.push_back(node);
  }

  const Pattern& p_;
  const TileGraph& g_;
  std::vector<int> bound_;  // register of each node
  std::vector<int> trail_;  // nodes in the order they were bound
};

bool contains(const std::vector<int>& list, int x) { return std::find(list.begin(), list.end(), x) != list.end(); }

// Whether register `reg` is computed from one of `from`.
bool depends_on(const TileGraph& g, int reg, const std::vector<int>& from) {
  std::vector<int> stack = {reg};
  std::vector<char> seen(g.registers);
  while (!stack.empty()) {
    const int r = stack.back();
    stack.pop_back();
    if (r < 0 || seen[r]) continue;
    seen[r] = 1;
    if (contains(from, r)) return true;
    for (const int x : g.operands_of(r)) stack.push_back(x);
  }
  return false;
}

// The pattern with its last output at register `root`; false if it is not there or cannot be taken out.
bool find_at(const Pattern& p, const TileGraph& g, const std::vector<char>& taken, int root, SuperMatch& out) {
  Matcher matcher(p, g);
  if (!matcher.match(p.outputs.back(), root)) return false;
  out = {.super = p.super,
         .outputs = {},
         .inputs = std::vector<int>(p.inputs),
         .uniforms = std::vector<int>(p.uniforms),
         .covered = {}};
  for (size_t i = 0; i < p.nodes.size(); ++i) {
    const int reg = matcher.register_of(static_cast<int>(i));
    if (p.nodes[i].kind == PatternNode::Kind::input) out.inputs[p.nodes[i].index] = reg;
    if (p.nodes[i].kind == PatternNode::Kind::uniform) out.uniforms[p.nodes[i].index] = reg;
    if (p.nodes[i].kind != PatternNode::Kind::instr) continue;
    if (taken[reg]) return false;
    out.covered.push_back(reg);
  }
  for (const int node : p.outputs) out.outputs.push_back(matcher.register_of(node));
  for (const int reg : out.covered) {
    if (contains(out.outputs, reg)) continue;
    if (g.escapes[reg]) return false;
    for (const int reader : g.readers[reg])
      if (!contains(out.covered, reader)) return false;
  }
  for (const int reg : out.inputs)
    if (depends_on(g, reg, out.covered)) return false;
  return true;
}

}  // namespace

std::vector<SuperMatch> find_supers(const TileGraph& graph) {
  std::vector<SuperMatch> found;
  std::vector<char> taken(graph.registers);
  for (const Pattern& p : patterns()) {
    for (int reg = graph.loads; reg < graph.registers; ++reg) {
      SuperMatch match;
      if (!graph.live[reg] || !find_at(p, graph, taken, reg, match)) continue;
      for (const int r : match.covered) taken[r] = 1;
      found.push_back(std::move(match));
    }
  }
  return found;
}

std::string_view name_of(Super super) {
  constexpr std::string_view names[] = {
#define SUPER(name, ...) #name,
#include "outrace/backend/cpu/tile_super.def"
#undef SUPER
  };
  return names[static_cast<int>(super)];
}

}  // namespace outrace::cpu
