// Tile programs: fused elementwise programs (graph/plan.h), run by an interpreter of SIMD loops over tiles in L1.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "outrace/graph/plan.h"

namespace outrace::cpu {

struct TileCode;

// The most elements that evaluate() hands over at once.
constexpr int64_t kTileSize = 1024;

struct TileOptions {
  bool superinstructions = true;
  int64_t tile_size = 0;     // elements a tile; 0: as many as fit, at most kTileSize
  int64_t stream_bytes = 0;  // run_all writes larger outputs past the caches; 0: half of the last cache
};

// Rows of equal length, as a matrix product hands them out (backend/cpu/gemm.h): row r is the elements
// [index + r * index_stride, ... + length) of the program's space, its producer's values begin at
// producer + r * producer_stride.
struct TileRows {
  int64_t index = 0, index_stride = 0;
  int64_t rows = 1, length = 0;
  const void* producer = nullptr;  // in the compute type; null if the program loads none
  int64_t producer_stride = 0;     // in elements
};

// A compiled program. Everything is resolved when it is compiled; running it allocates nothing (but a thread's scratch,
// once) and locks nothing. An element gives the same bits however the space is cut and with or without
// superinstructions (NaN counts as one value). An output may be the very buffer of an input read at the same index;
// other overlaps are the caller's mistake.
class TileKernel {
 public:
  static std::unique_ptr<TileKernel> compile(const TileProgram& program, const TileOptions& options = {});
  ~TileKernel();

  // Elements [index, index + length) of the program's space. values: a pointer for each value of the plan; scalars: the
  // plan's; producer: `length` values of the call's product in the compute type, or null. length may be anything.
  void run(void* const* values, const ScalarValue* scalars, const void* producer, int64_t index, int64_t length) const;
  void run_rows(void* const* values, const ScalarValue* scalars, const TileRows& rows) const;

  // The same, leaving register program.result for the caller: `length` <= kTileSize values of the compute type, valid
  // until the next call on this thread. They may lie in an input's buffer.
  const void* evaluate(void* const* values, const ScalarValue* scalars, const void* producer, int64_t index,
                       int64_t length) const;

  // The whole space, in parallel if it is large.
  void run_all(void* const* values, const ScalarValue* scalars) const;

  const std::string& description() const;  // "adam", "add+relu"; "copy" if nothing is computed

 private:
  explicit TileKernel(std::unique_ptr<const TileCode> code);
  std::unique_ptr<const TileCode> code_;
};

}  // namespace outrace::cpu
