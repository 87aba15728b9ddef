// What follows a product: a tile program over blocks of C while they are in cache. Used by the matmul files only.
#pragma once
#include "outrace/backend/cpu/gemm.h"
#include "outrace/backend/cpu/tile.h"

namespace outrace::cpu {

// One execution's pointers; the context of GemmCall::epilogue.
struct Tail {
  const TileKernel* kernel;
  void* const* values;
  const ScalarValue* scalars;
  int64_t product;  // elements of C of one batch index
};

template <class T>
void run_tail(const void* context, const GemmBlock<T>& b) {
  const Tail& tail = *static_cast<const Tail*>(context);
  TileRows rows;
  rows.index = b.batch * tail.product + b.index;
  rows.index_stride = b.index_stride;
  rows.rows = b.rows;
  rows.length = b.length;
  rows.producer = b.tile;
  rows.producer_stride = b.tile_stride;
  tail.kernel->run_rows(tail.values, tail.scalars, rows);
}

}  // namespace outrace::cpu
