// Tile programs without a producer: fused elementwise ops, casts, copies.
#include <algorithm>
#include <optional>

#include "outrace/backend/gpu/axes.h"
#include "outrace/backend/gpu/split.h"

namespace outrace::gpu {
namespace {

// Elements that an item takes, a group apart. One on cards: more groups hide latency as well. On CPU devices a group
// costs 0.4 us, as much as copying 2000 numbers; each thread should get some nevertheless.
constexpr int64_t kMostTurns = 16, kEnoughGroups = 64;
int64_t turns_for(int64_t count, const DeviceFacts& facts) {
  return facts.is_cpu ? std::clamp<int64_t>(count / (kGroup * kEnoughGroups), 1, kMostTurns) : 1;
}
// From this length on, the rows of arrays that are no dense runs are shared out whole: no division an element.
constexpr int64_t kLongRow = 128;

// The side of transposed.cl's tiles, and its groups.
constexpr int64_t kTile = 32, kCpuTile = 64;
constexpr int kTileItems = 8;

const char* always(const Call&, const Plan&, const DeviceFacts&) { return nullptr; }

// A load whose neighbours lie along `rows` of the space [.., rows, below, columns].
struct Crossing {
  size_t load;
  int64_t rows, below, columns;
};

std::optional<Crossing> crossing_of(const TileProgram& program) {
  for (size_t l = 0; l < program.loads.size(); ++l) {
    if (program.loads[l].kind != TileLoad::Kind::view) continue;
    const Strides& strides = program.loads[l].view.strides;
    std::vector<Axis> axes;  // innermost first; those that the load walks in one stride joined
    for (int d = program.space.rank(); d-- > 0;) {
      const int64_t size = program.space[d];
      if (size == 1) continue;
      if (!axes.empty() && strides[d] == axes.back().stride * axes.back().size)
        axes.back().size *= size;
      else
        axes.push_back({size, strides[d]});
    }
    if (axes.size() < 2 || axes[0].stride == 0 || axes[0].stride == 1 || axes[0].size < kTile) continue;
    int64_t below = 1;
    for (size_t a = 1; a < axes.size(); below *= axes[a++].size)
      if (axes[a].stride == 1 && axes[a].size >= kTile) return Crossing{l, axes[a].size, below, axes[0].size};
  }
  return std::nullopt;
}

// The program with that load handed in through a tile; false: other operands need the last axis cut elsewhere.
bool launch_transposed(const TileProgram& program, const Crossing& crossing, CallBuilder& b) {
  const int64_t count = program.space.numel();
  TileProgram operand;
  operand.compute = program.compute;
  operand.space = program.space;
  operand.loads = {program.loads[crossing.load]};
  operand.result = 0;
  TileProgram rest = program;
  rest.loads[crossing.load].kind = TileLoad::Kind::producer;
  // On CPU devices every row of a tile is another page.
  const int64_t tile = b.facts().is_cpu && size_of(program.compute) == 4 ? kCpuTile : kTile;
  KernelText text("transposed.cl");
  text.define("COMPUTE", program.compute).define("TILE", tile).index(count + tile * tile);
  text.prologue(operand, b.plan()).epilogue(rest, b.plan());
  if (!text.epilogue_takes(crossing.columns)) return false;
  const int64_t row_tiles = groups_for(crossing.rows, tile), column_tiles = groups_for(crossing.columns, tile);
  const int64_t planes = count / (crossing.rows * crossing.columns);
  b.launch(text, "transposed",
           {.groups = {planes * row_tiles * column_tiles, 1, 1},
            .local = b.facts().is_cpu ? std::array{1, 1, 1} : std::array{static_cast<int>(tile), kTileItems, 1}},
           {Arg::i64(crossing.rows), Arg::i64(crossing.columns), Arg::i64(crossing.below), Arg::i64(row_tiles),
            Arg::i64(column_tiles)},
           CallBuilder::both);
  return true;
}

void launch_one(const TileProgram& program, CallBuilder& b) {
  const int64_t count = program.space.numel();
  if (count == 0) return;
  if (const auto crossing = crossing_of(program); crossing && launch_transposed(program, *crossing, b)) return;
  KernelText text("elementwise.cl");
  text.define("COMPUTE", program.compute)
      .define("TURNS", b.facts().is_cpu ? "turns" : "1")
      .index(count + kMostTurns * kGroup);
  text.epilogue(program, b.plan());
  const int64_t inner = text.epilogue_inner();
  text.define("ROWS", int64_t{inner >= kLongRow});
  if (inner >= kLongRow) {
    const int64_t turns = std::min(turns_for(count, b.facts()), groups_for(inner));
    const int64_t pieces = groups_for(inner, kGroup * turns);
    return b.launch(text, "elementwise", {.groups = {pieces * (count / inner), 1, 1}, .lanes = true},
                    {Arg::i64(turns), Arg::i64(inner), Arg::i64(pieces)}, CallBuilder::epilogue);
  }
  const int64_t turns = turns_for(count, b.facts());
  b.launch(text, "elementwise", {.groups = {groups_for(count, kGroup * turns), 1, 1}, .lanes = true},
           {Arg::i64(turns), Arg::i64(count)}, CallBuilder::epilogue);
}

void make_elementwise(const Call& call, CallBuilder& b) { launch_program(call.epilogue, b); }

const KernelRow kRows[] = {
    {nullptr, "fused", always, make_elementwise},
};

}  // namespace

void launch_program(const TileProgram& program, CallBuilder& b) {
  for (const TileProgram& piece : split_program(program, b)) launch_one(piece, b);
}

std::span<const KernelRow> elementwise_kernels() { return kRows; }

}  // namespace outrace::gpu
