// From a tile program to the steps that run it: how each load comes in, where each result goes.
#include <algorithm>
#include <atomic>
#include <bit>

#include "outrace/backend/cpu/cache.h"
#include "outrace/backend/cpu/tile_code.h"
#include "outrace/backend/cpu/tile_graph.h"
#include "outrace/backend/cpu/tile_places.h"
#include "outrace/backend/cpu/tile_super.h"
#include "outrace/core/error.h"

namespace outrace::cpu {
namespace {

// Shorter rows are copied into a slot, several to a tile; longer ones are read where they lie, a tile for each.
constexpr int64_t kShortestCutRow = 512;

int64_t constant_bits(DType compute, double value) {
  if (compute == DType::f32) return std::bit_cast<int32_t>(static_cast<float>(value));
  if (compute == DType::f64) return std::bit_cast<int64_t>(value);
  return static_cast<int64_t>(value);
}

class TileCompiler {
  using Kind = TilePlace::Kind;

 public:
  TileCompiler(const TileProgram& program, const TileOptions& options)
      : g_(make_tile_graph(program, options)),
        p_(g_.program),
        options_(options),
        code_(std::make_unique<TileCode>()),
        instr_(tile_instr_kernels()),
        move_(tile_move_kernels()),
        type_(compute_index(p_.compute)) {}

  std::unique_ptr<const TileCode> compile() {
    static std::atomic<uint64_t> next_id{1};
    code_->id = next_id.fetch_add(1, std::memory_order_relaxed);
    code_->move = &move_;
    code_->compute = p_.compute;
    code_->compute_bytes = size_of(p_.compute);
    code_->numel = p_.space.numel();
    code_->stream_bytes = options_.stream_bytes > 0 ? options_.stream_bytes : most_in_caches();
    place_of_.assign(g_.registers, -1);
    splat_of_.assign(g_.registers, -1);
    stored_directly_.assign(p_.stores.size(), 0);
    merge_axes();
    choose_blocks();
    place_uniforms();
    place_loads();
    save_loads();
    emit_groups();
    emit_stores();
    place_result();
    places_.resolve(*code_, options_.tile_size);
    describe();
    return std::move(code_);
  }

 private:
  std::vector<const View*> all_views() const {
    std::vector<const View*> views;
    for (int r = 0; r < g_.loads; ++r)
      if (g_.live[r] && g_.is_view(r)) views.push_back(&p_.loads[r].view);
    for (const TileStore& s : p_.stores) views.push_back(&s.view);
    return views;
  }

  // Axes of size 1 go, neighbours merge where every array walks them in one go. merged_[k]: the innermost axis of the
  // program's space in axis k of the code's.
  void merge_axes() {
    const std::vector<const View*> views = all_views();
    std::vector<int64_t> sizes;
    for (int i = p_.space.rank() - 1; i >= 0; --i) {
      if (p_.space[i] == 1) continue;
      const bool joins = !sizes.empty() && std::all_of(views.begin(), views.end(), [&](const View* v) {
        return v->strides[i] == v->strides[merged_.back()] * sizes.back();
      });
      if (joins) {
        sizes.back() *= p_.space[i];
      } else {
        merged_.push_back(i);
        sizes.push_back(p_.space[i]);
      }
    }
    std::reverse(merged_.begin(), merged_.end());
    std::reverse(sizes.begin(), sizes.end());
    code_->rank = std::max(1, static_cast<int>(sizes.size()));
    code_->space.fill(1);
    std::copy(sizes.begin(), sizes.end(), code_->space.begin());
  }

  Strides merged_strides(const View& view) const {
    Strides s{};
    for (size_t k = 0; k < merged_.size(); ++k) s[k] = view.strides[merged_[k]];
    return s;
  }

  // Transposed loads are fast only by blocks, which reuse the cache lines they touch; all arrays then go through slots.
  void choose_blocks() {
    constexpr int64_t kWorthwhile = 8;
    const int inner = code_->rank - 1;
    for (int r = 0; r < g_.loads; ++r)
      if (g_.live[r] && p_.loads[r].kind == TileLoad::Kind::producer)
        return;  // the producer's tiles are runs of elements
    for (const View* view : all_views()) {
      const Strides s = merged_strides(*view);
      if (s[inner] == 0 || s[inner] == 1 || code_->space[inner] < kWorthwhile) continue;
      for (int axis = 0; axis < inner; ++axis)
        if (s[axis] == 1 && code_->space[axis] >= kWorthwhile) code_->block_axis = axis;
    }
  }

  bool is_dense(const View& view) const { return code_->block_axis < 0 && is_contiguous(view.strides, p_.space); }

  TileFn to_compute(DType stored) const { return move_.to_compute[static_cast<int>(stored)][type_]; }
  TileFn from_compute(DType stored) const { return move_.from_compute[static_cast<int>(stored)][type_]; }

  static void draft(std::vector<TilePlaces::Draft>& list, TileFn fn, std::vector<int> writes, std::vector<int> reads) {
    TilePlaces::Draft d;
    d.step.fn = fn;
    d.writes = std::move(writes);
    d.reads = std::move(reads);
    list.push_back(std::move(d));
  }

  int add_array(const View& view, DType dtype, std::vector<TileCode::Dense>& list) {
    const int place = places_.add({.kind = Kind::array});
    list.push_back({.cell = static_cast<int16_t>(place),
                    .value = view.value,
                    .element_bytes = static_cast<int>(size_of(dtype)),
                    .offset_bytes = view.offset * size_of(dtype)});
    return place;
  }

  // Uniform registers are computed once a run, one element each.
  void place_uniforms() {
    for (int r = 0; r < g_.registers; ++r) {
      if (!g_.live[r] || !g_.uniform[r]) continue;
      if (g_.is_load(r) && p_.loads[r].kind == TileLoad::Kind::constant) {
        place_of_[r] =
            places_.add({.kind = Kind::constant, .constant = constant_bits(p_.compute, p_.loads[r].constant)});
        continue;
      }
      place_of_[r] = places_.add({.kind = Kind::uniform});
      if (!g_.is_load(r)) {
        std::vector<int> reads;
        for (const int x : g_.operands_of(r))
          if (x >= 0) reads.push_back(place_of_[x]);
        draft(places_.uniform_steps, instr_.fn[static_cast<int>(g_.instr(r).op)][0][type_], {place_of_[r]},
              std::move(reads));
        continue;
      }
      const TileLoad& load = p_.loads[r];
      if (load.kind == TileLoad::Kind::scalar) {
        code_->scalars.push_back(
            {.cell = static_cast<int16_t>(place_of_[r]), .scalar = load.scalar, .integer = !is_float(load.dtype)});
      } else {
        const int array = add_array(load.view, load.dtype, code_->uniform_loads);
        draft(places_.uniform_steps, to_compute(load.dtype), {place_of_[r]}, {array});
      }
    }
  }

  // Where a register's values can be read as an array: a uniform one is first written out, once a run.
  int array_of(int reg) {
    if (!g_.uniform[reg]) return place_of_[reg];
    if (splat_of_[reg] < 0) {
      splat_of_[reg] = places_.add({.kind = Kind::fixed});
      draft(places_.splat_steps, move_.splat[type_], {splat_of_[reg]}, {place_of_[reg]});
    }
    return splat_of_[reg];
  }

  // A register's own slot; the result's lasts until the caller has read it.
  int slot_for(int reg) { return places_.add({.kind = reg == p_.result ? Kind::result : Kind::slot}); }

  // Dense loads of the compute type, and the producer's values, are read where they lie.
  void place_loads() {
    for (int r = 0; r < g_.loads; ++r) {
      if (!g_.live[r] || g_.uniform[r]) continue;
      const TileLoad& load = p_.loads[r];
      if (load.kind == TileLoad::Kind::producer) {
        place_of_[r] = places_.add({.kind = Kind::array});
        code_->producer_cell = static_cast<int16_t>(place_of_[r]);
      } else if (is_dense(load.view) && load.dtype == p_.compute) {
        place_of_[r] = add_array(load.view, load.dtype, code_->dense_loads);
      }
    }
  }

  // What is stored (or handed over) as it was read must be saved first if another store might overwrite it.
  void save_loads() {
    if (p_.stores.size() + (p_.result >= 0 ? 1 : 0) < 2) return;
    for (int r = 0; r < g_.loads; ++r) {
      if (!g_.reads_memory(r) || !g_.escapes[r] || place_of_[r] < 0) continue;
      const int slot = slot_for(r);
      draft(places_.steps, to_compute(p_.compute), {slot}, {place_of_[r]});
      place_of_[r] = slot;
    }
  }

  // The step that brings a load's tile in, before its first reader.
  void bring_in(int reg) {
    if (place_of_[reg] >= 0) return;
    const TileLoad& load = p_.loads[reg];
    const TileFn convert = load.dtype == p_.compute ? nullptr : to_compute(load.dtype);
    const int slot = slot_for(reg);
    place_of_[reg] = slot;
    if (is_dense(load.view)) {
      draft(places_.steps, convert, {slot}, {add_array(load.view, load.dtype, code_->dense_loads)});
      return;
    }
    const int inner = code_->rank - 1;
    const bool may_point =
        convert == nullptr && code_->block_axis < 0 && merged_strides(load.view)[inner] == 1 && !g_.escapes[reg];
    if (may_point) {
      place_of_[reg] = places_.add({.kind = Kind::array, .constant = 0, .behind = slot});
      if (code_->space[inner] >= kShortestCutRow) code_->cut_rows = true;
    }
    add_strided(TileCode::Step::Kind::load, load.view, load.dtype, convert, place_of_[reg], slot, may_point);
  }

  void add_strided(TileCode::Step::Kind kind, const View& view, DType dtype, TileFn convert, int cell, int slot,
                   bool may_point) {
    TilePlaces::Draft d;
    d.step.kind = kind;
    d.step.strided = static_cast<int16_t>(code_->strided.size());
    (kind == TileCode::Step::Kind::load ? d.writes : d.reads) = {cell};
    places_.steps.push_back(std::move(d));
    code_->strided.push_back({.cell = static_cast<int16_t>(cell),
                              .slot = static_cast<int16_t>(slot),
                              .value = view.value,
                              .size_log2 = std::countr_zero(static_cast<uint64_t>(size_of(dtype))),
                              .convert = convert,
                              .may_point = may_point,
                              .offset = view.offset,
                              .strides = merged_strides(view)});
    code_->loads_may_point &= may_point;
    if (convert != nullptr && code_->staging_cell < 0)
      code_->staging_cell = static_cast<int16_t>(places_.add({.kind = Kind::staging}));
  }

  void emit_groups() {
    // Results go straight to their arrays from the last group on that reads memory; never if a store will read any.
    int last_reader = -1;
    for (size_t i = 0; i < g_.groups.size(); ++i)
      for (const int r : g_.groups[i].inputs)
        if (g_.reads_memory(r)) last_reader = static_cast<int>(i);
    const bool store_reads = std::any_of(p_.stores.begin(), p_.stores.end(), [&](const TileStore& s) {
      return g_.reads_memory(s.reg) && (place_of_[s.reg] < 0 || places_[place_of_[s.reg]].kind == Kind::array);
    });
    for (size_t i = 0; i < g_.groups.size(); ++i) {
      const TileGroup& group = g_.groups[i];
      for (const int r : group.inputs)
        if (!g_.uniform[r]) bring_in(r);
      const bool directly = !store_reads && static_cast<int>(i) >= last_reader;
      for (const int r : group.outputs) {
        if (directly) place_directly(r);
        if (place_of_[r] < 0) place_of_[r] = slot_for(r);
      }
      emit_group(group);
    }
  }

  void place_directly(int reg) {
    for (size_t k = 0; k < p_.stores.size() && reg != p_.result; ++k) {
      const TileStore& s = p_.stores[k];
      if (s.reg != reg || s.dtype != p_.compute || !is_dense(s.view)) continue;
      place_of_[reg] = add_array(s.view, s.dtype, code_->dense_stores);
      stored_directly_[k] = 1;
      return;
    }
  }

  void emit_group(const TileGroup& group) {
    std::vector<int> writes, reads;
    for (const int r : group.outputs) writes.push_back(place_of_[r]);
    TileFn fn;
    if (group.super) {
      fn = tile_super_kernels().fn[static_cast<int>(*group.super)][type_];
      for (const int r : group.inputs) reads.push_back(place_of_[r]);
      for (const int r : group.uniforms) reads.push_back(place_of_[r]);
    } else {
      int form = 0;
      for (size_t k = 0; k < group.inputs.size(); ++k) form |= g_.uniform[group.inputs[k]] ? 1 << k : 0;
      while ((fn = instr_.fn[static_cast<int>(group.op)][form][type_]) == nullptr) {
        OUTRACE_ASSERT(form != 0, info_of(group.op).name);
        form &= form - 1;  // the first uniform operand is to be an array
      }
      for (size_t k = 0; k < group.inputs.size(); ++k)
        reads.push_back(form >> k & 1 ? place_of_[group.inputs[k]] : array_of(group.inputs[k]));
    }
    draft(places_.steps, fn, std::move(writes), std::move(reads));
  }

  void emit_stores() {
    for (const TileStore& s : p_.stores) bring_in(s.reg);
    for (size_t k = 0; k < p_.stores.size(); ++k) {
      if (stored_directly_[k]) continue;
      const TileStore& s = p_.stores[k];
      const int from = array_of(s.reg);
      if (is_dense(s.view)) {
        draft(places_.steps, from_compute(s.dtype), {add_array(s.view, s.dtype, code_->dense_stores)}, {from});
      } else {
        add_strided(TileCode::Step::Kind::store, s.view, s.dtype,
                    s.dtype == p_.compute ? nullptr : from_compute(s.dtype), from, from, false);
      }
    }
  }

  void place_result() {
    if (p_.result < 0) return;
    if (g_.uniform[p_.result]) {
      code_->result = TileCode::Result::splat;
      code_->result_cell = static_cast<int16_t>(places_.add({.kind = Kind::result}));
      draft(places_.result_steps, move_.splat[type_], {code_->result_cell}, {place_of_[p_.result]});
      return;
    }
    bring_in(p_.result);
    code_->result_cell = static_cast<int16_t>(place_of_[p_.result]);
    code_->result =
        places_[code_->result_cell].kind == Kind::result ? TileCode::Result::buffer : TileCode::Result::in_place;
  }

  void describe() {
    for (const TileGroup& group : g_.groups) {
      if (!code_->description.empty()) code_->description += '+';
      code_->description += group.super ? name_of(*group.super) : info_of(group.op).name;
    }
    if (code_->description.empty()) code_->description = "copy";
  }

  const TileGraph g_;
  const TileProgram& p_;
  const TileOptions options_;
  std::unique_ptr<TileCode> code_;
  const TileInstrKernels& instr_;
  const TileMoveKernels& move_;
  const int type_;

  std::vector<int> merged_;
  TilePlaces places_;
  std::vector<int> place_of_, splat_of_;  // of each register; -1: none yet
  std::vector<char> stored_directly_;     // of each store
};

}  // namespace

std::unique_ptr<const TileCode> compile_tile(const TileProgram& program, const TileOptions& options) {
  return TileCompiler(program, options).compile();
}

}  // namespace outrace::cpu
