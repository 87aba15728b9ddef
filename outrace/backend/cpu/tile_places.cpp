#include "outrace/backend/cpu/tile_places.h"

#include <algorithm>

#include "outrace/core/error.h"

namespace outrace::cpu {
namespace {

// Half of a 32 KB L1 is for slots; the other half for the arrays that stream by.
constexpr int64_t kSlotBytes = 16 * 1024;
constexpr int64_t kSmallestTile = 128;  // f32: 16 to 50 cycles an instruction, where a dispatch costs about 10
// Slots a multiple of 4 KB apart would meet in the same few sets of L1.
constexpr int64_t kSlotGap = 128;

constexpr int64_t round_up(int64_t x, int64_t unit) { return (x + unit - 1) / unit * unit; }

}  // namespace

// Returns the number of slots; slot_ is set.
int TilePlaces::share_slots() {
  struct Span {
    int first = -1, last = -1;  // steps
  };
  std::vector<Span> spans(places_.size());
  const auto use = [&](int place, int step) {
    for (; place >= 0; place = places_[place].behind) {
      if (spans[place].first < 0) spans[place].first = step;
      spans[place].last = step;
    }
  };
  for (size_t i = 0; i < steps.size(); ++i) {
    for (const int place : steps[i].reads) use(place, static_cast<int>(i));
    for (const int place : steps[i].writes) use(place, static_cast<int>(i));
  }

  slot_.assign(places_.size(), -1);
  int slots = 0;
  for (size_t v = 0; v < places_.size(); ++v)
    if (places_[v].kind == TilePlace::Kind::fixed) slot_[v] = slots++;
  std::vector<int> free;
  // Slots whose last use is step i: those only read by it may hold what it writes.
  const auto release = [&](int i, bool only_read) {
    for (size_t v = 0; v < places_.size(); ++v)
      if (places_[v].kind == TilePlace::Kind::slot && spans[v].last == i && (spans[v].first < i) == only_read)
        free.push_back(slot_[v]);
  };
  for (int i = 0; i < static_cast<int>(steps.size()); ++i) {
    release(i, true);
    for (size_t v = 0; v < places_.size(); ++v) {
      if (places_[v].kind != TilePlace::Kind::slot || spans[v].first != i) continue;
      if (free.empty()) free.push_back(slots++);
      slot_[v] = free.back();
      free.pop_back();
    }
    release(i, false);
  }
  return slots;
}

void TilePlaces::assign_cells(TileCode& code, int slots) {
  using Kind = TilePlace::Kind;
  cells_.assign(places_.size(), -1);
  const auto scratch_cell = [&](int64_t bytes) {
    code.scratch_cells.push_back(code.scratch_bytes);
    code.scratch_bytes += bytes;
    return static_cast<int16_t>(code.scratch_cells.size() - 1);
  };
  const auto each = [&](Kind kind, auto&& make) {
    for (size_t v = 0; v < places_.size(); ++v)
      if (places_[v].kind == kind) cells_[v] = make(v);
  };
  const int64_t tile = code.tile_size;
  each(Kind::uniform, [&](size_t) { return scratch_cell(8); });
  code.scratch_bytes = round_up(code.scratch_bytes, 64);
  std::vector<int16_t> slot_cells;
  for (int s = 0; s < slots; ++s)
    slot_cells.push_back(scratch_cell(round_up(tile * code.compute_bytes, 64) + kSlotGap));
  for (size_t v = 0; v < places_.size(); ++v)
    if (slot_[v] >= 0) cells_[v] = slot_cells[slot_[v]];
  each(Kind::staging, [&](size_t) { return scratch_cell(tile * 8 + kSlotGap); });
  each(Kind::result, [&](size_t) { return scratch_cell(kTileSize * code.compute_bytes + kSlotGap); });
  for (const TileCode::Dense& d : code.dense_stores)
    code.stream_slots.push_back(scratch_cell(round_up(tile * d.element_bytes, 64) + kSlotGap));

  code.cells = static_cast<int>(code.scratch_cells.size());
  const auto next_cell = [&] { return static_cast<int16_t>(code.cells++); };
  each(Kind::constant, [&](size_t v) {
    code.constants.push_back(places_[v].constant);
    return next_cell();
  });
  each(Kind::array, [&](size_t) { return next_cell(); });
  OUTRACE_ASSERT(code.cells < 32768, code.cells);
  // The cells themselves stand at the scratch's start.
  const int64_t shift = round_up(static_cast<int64_t>(sizeof(char*)) * code.cells, 64);
  for (int64_t& offset : code.scratch_cells) offset += shift;
  code.scratch_bytes += shift;
}

void TilePlaces::resolve(TileCode& code, int64_t tile_size) {
  const int slots = share_slots();
  code.tile_size = kTileSize;
  while (code.tile_size > kSmallestTile && code.tile_size * code.compute_bytes * slots > kSlotBytes)
    code.tile_size /= 2;
  if (tile_size > 0) code.tile_size = std::min(tile_size, kTileSize);
  assign_cells(code, slots);

  const auto to_cell = [&](int16_t& x) { x = x < 0 ? x : cells_[x]; };
  for (auto& x : code.scalars) to_cell(x.cell);
  for (auto* list : {&code.uniform_loads, &code.dense_loads, &code.dense_stores})
    for (auto& x : *list) to_cell(x.cell);
  for (auto& x : code.strided) {
    to_cell(x.cell);
    to_cell(x.slot);
  }
  for (int16_t* cell : {&code.producer_cell, &code.staging_cell, &code.result_cell}) to_cell(*cell);

  const auto finish = [&](const std::vector<Draft>& drafts, std::vector<TileCode::Step>& out) {
    for (const Draft& d : drafts) {
      out.push_back(d.step);
      if (d.step.kind != TileCode::Step::Kind::compute) continue;
      OUTRACE_ASSERT(d.writes.size() + d.reads.size() <= static_cast<size_t>(kMostOperands));
      auto operand = out.back().operands.begin();
      for (const int place : d.writes) *operand++ = cells_[place];
      for (const int place : d.reads) *operand++ = cells_[place];
    }
  };
  finish(uniform_steps, code.uniform_steps);
  finish(splat_steps, code.splat_steps);
  finish(steps, code.steps);
  finish(result_steps, code.result_steps);
}

}  // namespace outrace::cpu
