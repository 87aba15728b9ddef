// Fusion: which nodes become one call. Elementwise nodes gather in clusters with a single exit; a cluster joins the
// producer whose tiles it reads, or becomes the prologue of the one reduction that reads it.
#include <algorithm>
#include <cstdlib>
#include <optional>

#include "outrace/backend/backend.h"
#include "outrace/core/error.h"
#include "outrace/graph/passes/passes.h"

namespace outrace {
namespace {

// The limits of a fused kernel on a GPU; a CPU tile program has room for as many.
constexpr size_t kMaxMembers = 64;

bool elementwise(const IrNode& n) { return n.op->kind == OpKind::elementwise; }
bool reduces(const IrNode& n) {
  return n.op == &kSum || n.op == &kMean || n.op == &kMax || n.op == &kMin || n.op == &kProd;
}
bool hands_out_tiles(const IrNode& n) {
  return n.op == &kMatmul || reduces(n) ||
         (n.op->kind == OpKind::producer && backend_for(n.device).hands_out_tiles(*n.op));
}

// Narrow integers wrap when they are stored, registers do not: their results go through memory, fused or not.
bool wraps(const IrNode& n) { return n.dtype == DType::i32 || n.dtype == DType::u8; }

// Strides of a view reshaped to `shape`, when its elements lie so that one exists.
std::optional<Strides> reshape_strides(const Shape& from, const Strides& strides, const Shape& shape) {
  Strides out{};
  // Groups of old axes that are one run of memory, matched against groups of new axes of the same size.
  int i = 0, j = 0;
  while (i < from.rank() || j < shape.rank()) {
    if (i < from.rank() && from[i] == 1) {
      ++i;
      continue;
    }
    if (j < shape.rank() && shape[j] == 1) {
      ++j;
      continue;
    }
    if (i == from.rank() || j == shape.rank()) return std::nullopt;
    int64_t old_size = from[i], new_size = shape[j];
    int i_end = i + 1, j_end = j + 1;
    while (old_size != new_size) {
      if (old_size < new_size) {
        if (i_end == from.rank()) return std::nullopt;
        old_size *= from[i_end++];
      } else {
        if (j_end == shape.rank()) return std::nullopt;
        new_size *= shape[j_end++];
      }
    }
    int last = -1;
    for (int a = i; a < i_end; ++a) {
      if (from[a] == 1) continue;
      if (last >= 0 && strides[last] != strides[a] * from[a]) return std::nullopt;
      last = a;
    }
    int64_t step = last >= 0 ? strides[last] : 0;
    for (int b = j_end - 1; b >= j; --b) {
      out[b] = step;
      step *= shape[b];
    }
    i = i_end;
    j = j_end;
  }
  return out;
}

// Whether one stride walks all axes before `end`.
bool one_stride(const Access& access, const Shape& shape, int end) {
  int inner = -1;  // the last of them that is more than one entry
  for (int i = end - 1; i >= 0; --i) {
    if (shape[i] == 1) continue;
    if (inner >= 0 && access.strides[i] != access.strides[inner] * shape[inner]) return false;
    inner = i;
  }
  return true;
}

bool backwards(const Access& access, const Shape& shape) {
  for (int i = 0; i < shape.rank(); ++i)
    if (shape[i] > 1 && access.strides[i] < 0) return true;
  return false;
}

// Whether the producer can read `access` as it lies. Products take any forward strides of the last two axes and one
// stride over the rest; cat takes rows of memory that begin one stride apart.
bool readable(const IrNode& user, const Access& access, const Shape& shape) {
  if (is_contiguous(access.strides, shape)) return true;
  if (backwards(access, shape)) return false;
  if (reduces(user)) return true;
  if (user.op == &kMatmul) return one_stride(access, shape, shape.rank() - 2);
  if (user.op != &kCat) return false;
  const int axis = static_cast<int>(std::get<ConcatAttrs>(user.attrs).axis);
  const Strides dense = contiguous_strides(shape);
  for (int i = axis; i < shape.rank(); ++i)
    if (shape[i] != 1 && access.strides[i] != dense[i]) return false;
  return one_stride(access, shape, axis);
}

struct Fuser {
  const Ir& ir;
  Fused f;
  std::vector<std::vector<int>> users;

  explicit Fuser(const Ir& graph) : ir(graph), users(graph.nodes.size()) {
    for (size_t i = 0; i < ir.nodes.size(); ++i)
      for (int in : ir.nodes[i].inputs) users[in].push_back(static_cast<int>(i));
  }

  void find_access() {
    f.access.resize(ir.nodes.size());
    for (size_t i = 0; i < ir.nodes.size(); ++i) {
      const IrNode& n = ir.nodes[i];
      std::optional<Access> a;
      if (n.op->kind == OpKind::movement) a = move(ir, n, f.access[n.inputs[0]]);
      const bool memory = a && ir.nodes[a->base].op != &kScalar;  // a number has none that a producer could read
      if (a)
        for (int u : users[i])
          if (a && ir.nodes[u].op->kind == OpKind::producer && (!memory || !readable(ir.nodes[u], *a, n.shape)))
            a.reset();
      f.access[i] = a ? *a : Access{static_cast<int>(i), 0, contiguous_strides(n.shape)};
    }
  }

  int add_group(Group g) {
    const int id = static_cast<int>(f.groups.size());
    if (g.producer >= 0) f.group_of[g.producer] = id;
    for (int m : g.members) f.group_of[m] = id;
    f.groups.push_back(std::move(g));
    return id;
  }

  // No member of the cluster is read from outside.
  bool ends_here(int cluster) const {
    for (int m : f.groups[cluster].members)
      for (int u : users[m])
        if (f.group_of[u] != cluster) return false;
    return true;
  }

  // New values of a parameter and of its state that read one node (Lion, Adadelta) are computed where it is: clusters
  // that nobody else reads become one. No path leads out of them, so none leads around.
  void unite_users(int i) {
    const IrNode& n = ir.nodes[i];
    const DType compute = elementwise(n) ? compute_type(ir, n) : compute_of(n.dtype);
    int home = -1;
    for (int u : users[i]) {
      const int c = f.group_of[u];
      if (c == home || !elementwise(ir.nodes[u]) || !(ir.nodes[u].shape == n.shape) ||
          compute_type(ir, ir.nodes[u]) != compute || !ends_here(c))
        continue;
      if (home < 0) {
        home = c;
        continue;
      }
      Group &to = f.groups[home], &from = f.groups[c];
      if (to.layout != from.layout || to.members.size() + from.members.size() > kMaxMembers) continue;
      for (int m : from.members) f.group_of[m] = home;
      to.members.insert(to.members.end(), from.members.begin(), from.members.end());
      from.members.clear();
    }
  }

  // Reversed: a node joins the cluster of all its users, so only a cluster's last node is read from outside
  // (of united ones: none).
  void cluster() {
    f.group_of.assign(ir.nodes.size(), -1);
    for (size_t at = ir.nodes.size(); at-- > 0;) {
      const int i = static_cast<int>(at);
      const IrNode& n = ir.nodes[i];
      if (elementwise(n) || hands_out_tiles(n)) unite_users(i);
      if (n.op->kind == OpKind::producer || n.op->kind == OpKind::transfer) {
        add_group({.producer = i, .members = {}, .prologue = {}, .layout = n.layout});
      } else if (n.op->kind == OpKind::movement) {
        if (f.access[i].base == i || copied_output(i))
          add_group({.producer = -1, .members = {i}, .prologue = {}, .layout = Layout::plain});
      } else if (elementwise(n)) {
        int home = -1;
        bool fits = !users[i].empty() && n.op != &kCast && !wraps(n);
        for (int u : users[i]) {
          fits = fits && elementwise(ir.nodes[u]) && ir.nodes[u].shape == n.shape &&
                 compute_type(ir, ir.nodes[u]) == compute_type(ir, n) && (home < 0 || home == f.group_of[u]);
          if (fits) home = f.group_of[u];
        }
        if (fits && f.groups[home].members.size() < kMaxMembers) {
          f.group_of[i] = home;
          f.groups[home].members.push_back(i);
        } else {
          add_group({.producer = -1, .members = {i}, .prologue = {}, .layout = n.layout});
        }
      }
    }
    for (Group& g : f.groups) std::sort(g.members.begin(), g.members.end());
  }

  // An output that is a view of something computed here shares its buffer when it is dense, else it is copied.
  bool copied_output(int i) const {
    const IrNode& n = ir.nodes[i];
    if (!n.output) return false;
    const IrNode& base = ir.nodes[f.access[i].base];
    return base.layout != Layout::plain || base.op == &kConstant || base.op == &kScalar ||
           !is_contiguous(f.access[i].strides, n.shape);
  }

  // The group that computes what `node` reads; -1 for leaves.
  int source(int node) const {
    const int base = f.access[node].base;
    return f.group_of[base] >= 0 ? f.group_of[base] : f.group_of[node];
  }

  bool depends(int group, int on, std::vector<uint8_t>& seen) const {
    std::vector<int> stack{group};
    while (!stack.empty()) {
      const int g = stack.back();
      stack.pop_back();
      if (g == on) return true;
      if (seen[g]) continue;
      seen[g] = 1;
      for_inputs(ir, f.groups[g], [&](int, int in) {
        const int s = source(in);
        if (s >= 0 && s != g) stack.push_back(s);
      });
    }
    return false;
  }

  void merge_prologues() {
    for (size_t i = 0; i < ir.nodes.size(); ++i) {
      const IrNode& r = ir.nodes[i];
      if (!reduces(r)) continue;
      const int in = r.inputs[0];
      const int c = f.group_of[in];
      if (!elementwise(ir.nodes[in]) || c < 0 || ir.nodes[in].output || users[in].size() != 1 ||
          ir.nodes[in].op == &kCast || wraps(ir.nodes[in]) || f.groups[c].layout != Layout::plain ||
          compute_type(ir, ir.nodes[in]) != compute_of(r.dtype))
        continue;
      if (std::any_of(f.groups[c].members.begin(), f.groups[c].members.end(),
                      [&](int m) { return ir.nodes[m].output; }))
        continue;
      Group& to = f.groups[f.group_of[i]];
      to.prologue = std::move(f.groups[c].members);
      f.groups[c].members.clear();
      for (int m : to.prologue) f.group_of[m] = f.group_of[i];
    }
  }

  bool can_join(int cluster, int producer) const {
    const Group& c = f.groups[cluster];
    const IrNode& p = ir.nodes[producer];
    if (c.producer >= 0 || c.members.empty() || !elementwise(ir.nodes[c.members.back()]) || c.layout != p.layout)
      return false;
    if (compute_type(ir, ir.nodes[c.members.back()]) != compute_of(p.dtype)) return false;
    if (p.dtype != DType::f32 && p.dtype != DType::f64) return false;
    const int home = f.group_of[producer];
    std::vector<uint8_t> seen(f.groups.size(), 0);
    bool cycle = false;
    for_inputs(ir, c, [&](int user, int in) {
      if (cycle || in == producer) {
        cycle = cycle || !(ir.nodes[user].shape == p.shape);
        return;
      }
      const int s = source(in);
      if (s >= 0 && s != cluster) cycle = depends(s, home, seen);
    });
    return !cycle;
  }

  void join_producers() {
    for (size_t i = 0; i < ir.nodes.size(); ++i) {
      const int p = static_cast<int>(i);
      if (!hands_out_tiles(ir.nodes[p])) continue;
      Group& home = f.groups[f.group_of[p]];
      if (!home.members.empty()) continue;
      for (int u : users[p]) {
        const int c = f.group_of[u];
        if (c < 0 || c == f.group_of[p] || !elementwise(ir.nodes[u]) || !(ir.nodes[u].shape == ir.nodes[p].shape) ||
            !can_join(c, p))
          continue;
        home.members = std::move(f.groups[c].members);
        f.groups[c].members.clear();
        for (int m : home.members) f.group_of[m] = f.group_of[p];
        break;
      }
    }
  }
};

}  // namespace

std::optional<Access> move(const Ir& ir, const IrNode& n, const Access& in) {
  const Shape& from = ir.nodes[n.inputs[0]].shape;
  Access out{in.base, in.offset, {}};
  if (n.op == &kReshape) {
    if (n.shape.numel() == 0) return out;
    const auto strides = reshape_strides(from, in.strides, n.shape);
    if (!strides) return std::nullopt;
    out.strides = *strides;
  } else if (n.op == &kPermute) {
    const auto& axes = std::get<PermuteAttrs>(n.attrs).axes;
    for (int i = 0; i < n.shape.rank(); ++i) out.strides[i] = in.strides[axes[i]];
  } else if (n.op == &kExpand) {
    const int shift = n.shape.rank() - from.rank();
    for (int i = 0; i < from.rank(); ++i) out.strides[i + shift] = from[i] == 1 ? 0 : in.strides[i];
  } else if (n.op == &kUnfold) {
    const auto& u = std::get<UnfoldAttrs>(n.attrs);
    out.strides = in.strides;
    out.strides[u.axis] = in.strides[u.axis] * u.step;
    out.strides[n.shape.rank() - 1] = in.strides[u.axis];
  } else if (n.op == &kDiagonal) {
    const auto& d = std::get<DiagonalAttrs>(n.attrs);
    int to = 0;
    for (int i = 0; i < from.rank(); ++i)
      if (i != d.axis_a && i != d.axis_b) out.strides[to++] = in.strides[i];
    out.strides[to] = in.strides[d.axis_a] + in.strides[d.axis_b];
    if (n.shape.numel() > 0) out.offset += std::abs(d.offset) * in.strides[d.offset < 0 ? d.axis_a : d.axis_b];
  } else {
    OUTRACE_ASSERT(n.op == &kSlice);
    const auto& s = std::get<SliceAttrs>(n.attrs);
    for (int i = 0; i < n.shape.rank(); ++i) {
      out.offset += s.start[i] * in.strides[i];
      out.strides[i] = in.strides[i] * s.step[i];
    }
  }
  return out;
}

DType compute_type(const Ir& ir, const IrNode& n) {
  if (n.op == &kCast || (n.op->ew >= 0 && info_of(static_cast<Ew>(n.op->ew)).compares))
    return compute_of(ir.nodes[n.inputs[0]].dtype);
  return compute_of(n.dtype);
}

Fused fuse(const Ir& ir) {
  Fuser fuser(ir);
  fuser.find_access();
  fuser.cluster();
  fuser.merge_prologues();
  fuser.join_producers();
  return std::move(fuser.f);
}

}  // namespace outrace
