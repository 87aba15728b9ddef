#include "outrace/backend/gpu/split.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "outrace/core/error.h"

namespace outrace::gpu {
namespace {

using Kind = TileLoad::Kind;

std::vector<int> operands(const TileInstr& i) {
  std::vector<int> out;
  for (const int r : {i.x, i.z, i.w})
    if (r >= 0) out.push_back(r);
  return out;
}

TileLoad view_load(const View& view, DType dtype) {
  return {.kind = Kind::view, .dtype = dtype, .view = view, .constant = 0, .scalar = -1};
}

class Splitter {
 public:
  Splitter(const TileProgram& p, CallBuilder& b) : p_(p), b_(b), loads_(static_cast<int>(p.loads.size())) {
    const int registers = loads_ + static_cast<int>(p.instrs.size());
    last_use_.assign(registers, -1);
    for (size_t i = 0; i < p.instrs.size(); ++i)
      for (const int r : operands(p.instrs[i])) last_use_[r] = static_cast<int>(i);
    for (const TileStore& s : p.stores) last_use_[s.reg] = static_cast<int>(p.instrs.size());
  }

  std::vector<TileProgram> split() {
    const int count = static_cast<int>(p_.instrs.size());
    for (int first = 0; first < count;) {
      int end = first + 1;
      while (end < count && fits(first, end + 1)) ++end;
      emit(first, end);
      first = end;
    }
    store_loads();
    store_results();
    return std::move(out_);
  }

 private:
  bool leaves(int instr, int end) const { return last_use_[loads_ + instr] >= end; }

  bool fits(int first, int end) const {
    std::set<int> in;
    int out = 0;
    for (int i = first; i < end; ++i) {
      for (const int r : operands(p_.instrs[i]))
        if (r < loads_ + first) in.insert(r);
      out += leaves(i, end) ? 1 : 0;
    }
    return static_cast<int>(in.size()) + out <= kMostArrays;
  }

  TileProgram empty() const {
    TileProgram piece;
    piece.compute = p_.compute;
    piece.space = p_.space;
    return piece;
  }

  View spill(int reg) {
    const int64_t size = size_of(p_.compute);
    const Arg place = b_.scratch(p_.space.numel() * size);
    return spilled_[reg] = {place.slot, place.integer / size, contiguous_strides(p_.space)};
  }

  void emit(int first, int end) {
    TileProgram piece = empty();
    std::map<int, int> known;  // register of the program -> of the piece
    for (int i = first; i < end; ++i)
      for (const int r : operands(p_.instrs[i]))
        if (r < loads_ + first && known.try_emplace(r, static_cast<int>(piece.loads.size())).second)
          piece.loads.push_back(r < loads_ ? p_.loads[r] : view_load(spilled_.at(r), p_.compute));
    const int base = static_cast<int>(piece.loads.size());
    for (int i = first; i < end; ++i) {
      known[loads_ + i] = base + i - first;
      TileInstr instr = p_.instrs[i];
      for (int16_t* r : {&instr.x, &instr.z, &instr.w})
        if (*r >= 0) *r = static_cast<int16_t>(known.at(*r));
      piece.instrs.push_back(instr);
      if (leaves(i, end)) piece.stores.push_back({known.at(loads_ + i), spill(loads_ + i), p_.compute});
    }
    if (!piece.stores.empty()) out_.push_back(std::move(piece));
  }

  // What is stored as it was read is read before anything is stored.
  void store_loads() {
    for (const TileStore& s : p_.stores) {
      if (s.reg >= loads_ || spilled_.contains(s.reg)) continue;
      TileProgram piece = empty();
      piece.loads.push_back(p_.loads[s.reg]);
      piece.stores.push_back({0, spill(s.reg), p_.compute});
      out_.push_back(std::move(piece));
    }
  }

  void store_results() {
    TileProgram piece = empty();
    for (const TileStore& s : p_.stores) {
      TileStore store = s;
      store.reg = static_cast<int>(piece.loads.size());
      piece.loads.push_back(view_load(spilled_.at(s.reg), p_.compute));
      piece.stores.push_back(store);
      if (piece.stores.size() < kMostArrays / 2) continue;
      out_.push_back(std::move(piece));
      piece = empty();
    }
    if (!piece.stores.empty()) out_.push_back(std::move(piece));
  }

  const TileProgram& p_;
  CallBuilder& b_;
  const int loads_;
  std::vector<int> last_use_;  // the instruction; their number if it is stored
  std::map<int, View> spilled_;
  std::vector<TileProgram> out_;
};

}  // namespace

int count_arrays(const TileProgram& program) {
  std::set<std::tuple<int, int64_t, DType>> arrays;
  bool scalars = false;
  for (const TileLoad& l : program.loads) {
    if (l.kind == Kind::view) arrays.insert({l.view.value, l.view.offset, l.dtype});
    scalars |= l.kind == Kind::scalar;
  }
  for (const TileStore& s : program.stores) arrays.insert({s.view.value, s.view.offset, s.dtype});
  return static_cast<int>(arrays.size()) + (scalars ? 1 : 0);
}

std::vector<TileProgram> split_program(const TileProgram& program, CallBuilder& b) {
  if (count_arrays(program) <= kMostArrays) return {program};
  return Splitter(program, b).split();
}

void make_call(const KernelRow& row, const Call& call, CallBuilder& b) {
  if (call.op == nullptr || count_arrays(call.prologue) + count_arrays(call.epilogue) <= kMostArrays)
    return row.make(call, b);
  Call alone = call;
  if (!call.prologue.empty()) {
    TileProgram before = call.prologue;
    const int64_t size = size_of(before.compute);
    const Arg place = b.scratch(before.space.numel() * size);
    const View all{place.slot, place.integer / size, contiguous_strides(before.space)};
    before.stores.push_back({before.result, all, before.compute});
    launch_program(before, b);
    alone.prologue = {};
    alone.prologue.compute = before.compute;
    alone.prologue.space = before.space;
    alone.prologue.loads.push_back(view_load(all, before.compute));
    alone.prologue.result = 0;
  }
  if (call.epilogue.empty()) return row.make(alone, b);
  // can_join() of graph/passes/fuse.cpp: such a producer's result has the type it is computed in.
  const Arg place = call.result >= 0 ? b.whole(call.result) : b.scratch(call.shape.numel() * size_of(call.dtype));
  const View result{place.slot, place.integer / size_of(call.dtype), contiguous_strides(call.shape)};
  TileProgram after = call.epilogue;
  for (TileLoad& l : after.loads)
    if (l.kind == Kind::producer) l = view_load(result, call.dtype);
  alone.epilogue = {};
  alone.epilogue.compute = after.compute;
  alone.epilogue.space = after.space;
  alone.epilogue.loads.push_back(
      {.kind = Kind::producer, .dtype = call.dtype, .view = {}, .constant = 0, .scalar = -1});
  alone.epilogue.stores.push_back({0, result, call.dtype});
  alone.result = -1;
  row.make(alone, b);
  launch_program(after, b);
}

}  // namespace outrace::gpu
