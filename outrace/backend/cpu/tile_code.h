// A compiled tile program as data: what tile_compile.cpp writes and tile.cpp runs.
//
// A cell is a pointer to an array that a step reads or writes: a slot of the thread's scratch (one tile), a uniform
// value (one element), or a place in one of the plan's arrays.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "outrace/backend/cpu/tile.h"
#include "outrace/backend/cpu/tile_kernels.h"

namespace outrace::cpu {

constexpr int kMostOperands = 16;  // Adam has 13

struct TileCode {
  // A cell that points into an array of the plan and moves along with the index: dense loads and stores. Uniform loads
  // point to one element.
  struct Dense {
    int16_t cell;
    int value;
    int element_bytes;
    int64_t offset_bytes;
  };
  // A load or store by strides over `space`, copied to or from a slot; by way of the staging slot if types differ.
  struct Strided {
    int16_t cell;  // what other steps read or write
    int16_t slot;  // where a load lands
    int value;
    int size_log2;   // of a stored element
    TileFn convert;  // null: stored in the compute type
    bool may_point;  // a load that points into the array itself while a tile lies in one row
    int64_t offset;  // in elements
    Strides strides;
  };
  struct Scalar {
    int16_t cell;
    int scalar;
    bool integer;  // which member of the union
  };
  struct Step {
    enum class Kind : uint8_t { compute, load, store } kind = Kind::compute;
    int16_t strided = -1;  // load, store
    TileFn fn = nullptr;   // compute
    std::array<int16_t, kMostOperands> operands{};
  };

  std::string description;
  uint64_t id = 0;  // differs between all programs of a process
  const TileMoveKernels* move = nullptr;
  DType compute = DType::f32;
  int64_t compute_bytes = 4;
  int64_t numel = 0;
  int64_t tile_size = kTileSize;
  int64_t stream_bytes = 0;

  // The space without axes of size 1, neighbours merged where every array walks them in one go. At least one axis.
  int rank = 1;
  std::array<int64_t, kMaxRank> space{};
  bool loads_may_point = true;  // every row of `strided` does
  bool cut_rows = false;        // no tile crosses the end of a row of the last axis
  int block_axis = -1;  // >= 0: some load is a transpose with stride 1 along this axis, and run_all goes by blocks

  // The first cells lie in the scratch at these offsets, the next ones point to constants; then come all others.
  std::vector<int64_t> scratch_cells;
  std::vector<int64_t> constants;  // bits
  int cells = 0;
  int64_t scratch_bytes = 0;  // with the cells themselves at its start

  std::vector<Scalar> scalars;
  std::vector<Dense> uniform_loads, dense_loads, dense_stores;
  std::vector<int16_t> stream_slots;  // a slot for each dense store, which stands in for the array when it is streamed
  std::vector<Strided> strided;
  std::vector<Step> uniform_steps;  // once a run, one element each
  std::vector<Step> splat_steps;    // once a run, one tile each
  std::vector<Step> steps;          // once a tile
  int16_t producer_cell = -1;
  int16_t staging_cell = -1;
  int16_t result_cell = -1;
  // How evaluate() finds its result: where a load points; in a buffer of kTileSize elements that the steps fill; or in
  // such a buffer after result_steps, since it is uniform.
  enum class Result : uint8_t { none, in_place, buffer, splat } result = Result::none;
  std::vector<Step> result_steps;
};

std::unique_ptr<const TileCode> compile_tile(const TileProgram& program, const TileOptions& options);

}  // namespace outrace::cpu
