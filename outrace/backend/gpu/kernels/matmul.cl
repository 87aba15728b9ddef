// [batch, m, k] times [batch, k, n], any strides. A group makes a tile of TILE_M x TILE_N results from pieces of both
// matrices in local memory; its 16 x 16 items hold (TILE_M / 16) x (TILE_N / 16) results each.
// A, B (stored types), COMPUTE, INDEX, TILE_M, TILE_N, A_ALONG_K, B_ALONG_K (which axis neighbouring items read),
// MULTIPLY_ADD(x, y, sum), EPILOGUE.
#define STEP 16
#define ROWS (TILE_M / 16)
#define COLUMNS (TILE_N / 16)
// Rows of local memory begin in other banks than their neighbours.
#define PAD 4

KERNEL(matmul, 16, 16)
(ARRAY(A, a), ARRAY(B, b), i64 m, i64 n, i64 k, i64 row_tiles, i64 column_tiles, i64 a_batch, i64 a_row, i64 a_column,
 i64 b_batch, i64 b_row, i64 b_column EPILOGUE_PARAMS) {
  LOCAL_ARRAY(COMPUTE, a_tile, STEP *(TILE_M + PAD));
  LOCAL_ARRAY(COMPUTE, b_tile, STEP *(TILE_N + PAD));
  AT(A, a);
  AT(B, b);
  EPILOGUE_ARRAYS
  const i32 x = LOCAL_ID(0), y = LOCAL_ID(1);
  const i64 group = GROUP_ID(0), tile = group / column_tiles;
  const i64 first_column = (group - tile * column_tiles) * TILE_N;
  const i64 batch = tile / row_tiles, first_row = (tile - batch * row_tiles) * TILE_M;
  a += batch * a_batch + first_row * a_row;
  b += batch * b_batch + first_column * b_column;
  const i64 rows = m - first_row, columns = n - first_column;

  COMPUTE sum[ROWS][COLUMNS];
  for (i32 i = 0; i < ROWS; ++i)
    for (i32 j = 0; j < COLUMNS; ++j) sum[i][j] = (COMPUTE)0;

  for (i64 from = 0; from < k; from += STEP) {
    for (i32 p = 0; p < ROWS; ++p) {
      const i32 r = A_ALONG_K ? y + 16 * p : x + 16 * p, c = A_ALONG_K ? x : y;
      const i32 inside = r < rows && from + c < k;
      a_tile[c * (TILE_M + PAD) + r] =
          inside ? CONVERT(COMPUTE, A, a[(i64)r * a_row + (from + c) * a_column]) : (COMPUTE)0;
    }
    for (i32 p = 0; p < COLUMNS; ++p) {
      const i32 r = B_ALONG_K ? x : y, c = B_ALONG_K ? y + 16 * p : x + 16 * p;
      const i32 inside = c < columns && from + r < k;
      b_tile[r * (TILE_N + PAD) + c] =
          inside ? CONVERT(COMPUTE, B, b[(from + r) * b_row + (i64)c * b_column]) : (COMPUTE)0;
    }
    BARRIER();
    for (i32 s = 0; s < STEP; ++s) {
      COMPUTE left[ROWS], right[COLUMNS];
      for (i32 i = 0; i < ROWS; ++i) left[i] = a_tile[s * (TILE_M + PAD) + y * ROWS + i];
      for (i32 j = 0; j < COLUMNS; ++j) right[j] = b_tile[s * (TILE_N + PAD) + x * COLUMNS + j];
      for (i32 i = 0; i < ROWS; ++i)
        for (i32 j = 0; j < COLUMNS; ++j) sum[i][j] = MULTIPLY_ADD(left[i], right[j], sum[i][j]);
    }
    BARRIER();
  }

  for (i32 i = 0; i < ROWS; ++i)
    for (i32 j = 0; j < COLUMNS; ++j) {
      const i64 row = first_row + y * ROWS + i, column = first_column + x * COLUMNS + j;
      if (row < m && column < n) EPILOGUE((INDEX)((batch * m + row) * n + column), sum[i][j]);
    }
}
