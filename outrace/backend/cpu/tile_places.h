// Between the compiler's list of steps and a TileCode: where each register lives, slots shared by liveness, cells.
#pragma once
#include <vector>

#include "outrace/backend/cpu/tile_code.h"

namespace outrace::cpu {

// Something a step reads or writes; becomes a cell of the code.
struct TilePlace {
  enum class Kind : uint8_t {
    slot,      // a tile in the scratch, shared with others whose times do not overlap
    fixed,     // a slot of its own, written once a run
    staging,   // a slot for elements as stored, up to 8 bytes each
    result,    // kTileSize elements in the scratch
    uniform,   // one element in the scratch
    constant,  // one element in the code
    array,     // a place in an array of the plan, or in the producer's
  } kind;
  int64_t constant = 0;  // bits
  int behind = -1;       // of an array place that may also point to a slot: that slot's place
};

class TilePlaces {
 public:
  // Steps with places in place of cells; a step of kind load or store names a row of code.strided.
  struct Draft {
    TileCode::Step step;
    std::vector<int> writes, reads;
  };

  int add(TilePlace place) {
    places_.push_back(place);
    return static_cast<int>(places_.size()) - 1;
  }
  const TilePlace& operator[](int place) const { return places_[static_cast<size_t>(place)]; }

  // The lists of TileCode.
  std::vector<Draft> uniform_steps, splat_steps, steps, result_steps;

  // Shares out slots, chooses the tile's size (unless `tile_size` > 0), and writes cells and steps into `code`, whose
  // other lists hold places where cells should be.
  void resolve(TileCode& code, int64_t tile_size);

 private:
  int share_slots();
  void assign_cells(TileCode& code, int slots);

  std::vector<TilePlace> places_;
  std::vector<int> slot_;       // of each place of kind slot or fixed
  std::vector<int16_t> cells_;  // of each place
};

}  // namespace outrace::cpu
