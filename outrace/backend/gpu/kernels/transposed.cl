// A fused program one of whose operands lies along another axis of the space than the last: both are read and written
// along the memory, through a tile in local memory. COMPUTE, INDEX, TILE (32 or 64),
// PROLOGUE (the operand), EPILOGUE (the program).
// The space is [.., rows, below, columns]; the operand's neighbours lie along the rows.
#if ON_CPU
#define TILE_KERNEL(name) KERNEL(name, 1, 1)
#define FOR_TILE(rows, columns) \
  for (i64 y = 0; y < (rows) && y < TILE; ++y) \
    _Pragma("clang loop vectorize(assume_safety)") for (i64 x = 0; x < ((columns) < TILE ? (columns) : TILE); ++x)
#else
#define TILE_KERNEL(name) KERNEL(name, TILE, 8)
#define FOR_TILE(rows, columns) \
  for (i64 y = LOCAL_ID(1), x = LOCAL_ID(0); y < TILE; y += 8) \
    if (y < (rows) && x < (columns))
#endif
#define PITCH (TILE + 1)
TILE_KERNEL(transposed)
(i64 rows, i64 columns, i64 below, i64 row_tiles, i64 column_tiles PROLOGUE_PARAMS EPILOGUE_PARAMS) {
  LOCAL_ARRAY(COMPUTE, tile, TILE *PITCH);
  PROLOGUE_ARRAYS EPILOGUE_ARRAYS
  const i64 group = GROUP_ID(0), band = group / row_tiles, plane = band / column_tiles;
  const i64 first_row = (group - band * row_tiles) * TILE, first_column = (band - plane * column_tiles) * TILE;
  const INDEX above = (INDEX)(plane / below) * (INDEX)rows, low = (INDEX)(plane % below);
  FOR_TILE(columns - first_column, rows - first_row) {
    const INDEX c = (INDEX)(first_column + y), outer = (above + (INDEX)(first_row + x)) * (INDEX)below + low;
    tile[y * PITCH + x] = PROLOGUE_AT(outer * (INDEX)columns + c, outer, c);
  }
  BARRIER();
  FOR_TILE(rows - first_row, columns - first_column) {
    const INDEX c = (INDEX)(first_column + x), outer = (above + (INDEX)(first_row + y)) * (INDEX)below + low;
    EPILOGUE_AT(outer * (INDEX)columns + c, outer, c, tile[x * PITCH + y]);
  }
}
