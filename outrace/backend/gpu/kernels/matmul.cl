// [batch, m, k] times [batch, k, n], any strides. A group makes a tile of TILE x TILE results from pieces of both
// matrices in local memory; its (TILE / 4) ^ 2 items hold 4 x 4 results each, a row of them in a vector.
// A, B (stored types), COMPUTE, INDEX, TILE (32 or 64), A_ALONG_K, B_ALONG_K (which axis neighbouring items read),
// SPLIT: each group takes `length` of k, and matmul_fold adds the parts up; EPILOGUE,
// FINISH(i, row, column, value): which of EPILOGUE and EPILOGUE_AT fits.
#define SIDE (TILE / 4)
#define LANES (SIDE * SIDE)
#define STEP 16
#define LOADS (TILE * STEP / LANES)
// Rows of local memory begin in other banks than their neighbours, at multiples of a vector.
#define PITCH (TILE + 4)
#define VECTOR PASTE(COMPUTE, x4)

#if SPLIT
#define LAST_PARAMS , ARRAY(COMPUTE, partial)
#define LAST_ARRAYS AT(COMPUTE, partial);
#define HAND_OVER(row, column, value) partial[(part * batches * m + (row)) * n + (column)] = value
#else
#define LAST_PARAMS EPILOGUE_PARAMS
#define LAST_ARRAYS EPILOGUE_ARRAYS
#define HAND_OVER(row, column, value) FINISH((INDEX)((row) * n + (column)), (INDEX)(row), (INDEX)(column), value)
#endif

// Number p of the elements that an item brings in: {along the tile, along k}.
#define ALONG_TILE(along_k, p) ((along_k) ? lane / STEP + (p) * (LANES / STEP) : LOCAL_ID(0))
#define ALONG_STEP(along_k, p) ((along_k) ? lane % STEP : LOCAL_ID(1) + (p) * (LANES / TILE))

KERNEL(matmul, TILE, LANES / TILE)
(ARRAY(A, a), ARRAY(B, b), i64 batches, i64 m, i64 n, i64 k, i64 length, i64 row_tiles, i64 column_tiles, i64 a_batch,
 i64 a_row, i64 a_column, i64 b_batch, i64 b_row, i64 b_column LAST_PARAMS) {
  LOCAL_ARRAY(COMPUTE, a_tile, STEP *PITCH);
  LOCAL_ARRAY(COMPUTE, b_tile, STEP *PITCH);
  AT(A, a);
  AT(B, b);
  LAST_ARRAYS
  const i32 lane = LOCAL_ID(1) * TILE + LOCAL_ID(0), x = lane % SIDE * 4, y = lane / SIDE * 4;
  const i64 group = GROUP_ID(0), tile = group / column_tiles, part = GROUP_ID(1);
  const i64 first_column = (group - tile * column_tiles) * TILE;
  const i64 batch = tile / row_tiles, first_row = (tile - batch * row_tiles) * TILE;
  a += batch * a_batch + first_row * a_row;
  b += batch * b_batch + first_column * b_column;
  const i64 begin = part * length, end = begin + length < k ? begin + length : k;
  const i32 rows = (i32)(m - first_row < TILE ? m - first_row : TILE);
  const i32 columns = (i32)(n - first_column < TILE ? n - first_column : TILE);

  VECTOR sum0 = SPLAT4(COMPUTE, 0), sum1 = sum0, sum2 = sum0, sum3 = sum0;
  for (i64 from = begin; from < end; from += STEP) {
    const GLOBAL A *a_piece = a + from * a_column;
    const GLOBAL B *b_piece = b + from * b_row;
    const i32 left = (i32)(end - from < STEP ? end - from : STEP);
    if (rows == TILE && columns == TILE && left == STEP) {
      UNROLL for (i32 p = 0; p < LOADS; ++p) {
        const i32 r = ALONG_TILE(A_ALONG_K, p), s = ALONG_STEP(A_ALONG_K, p);
        const i32 c = ALONG_TILE(B_ALONG_K, p), t = ALONG_STEP(B_ALONG_K, p);
        a_tile[s * PITCH + r] = CONVERT(COMPUTE, A, a_piece[r * a_row + s * a_column]);
        b_tile[t * PITCH + c] = CONVERT(COMPUTE, B, b_piece[t * b_row + c * b_column]);
      }
    } else {
      UNROLL for (i32 p = 0; p < LOADS; ++p) {
        const i32 r = ALONG_TILE(A_ALONG_K, p), s = ALONG_STEP(A_ALONG_K, p);
        const i32 c = ALONG_TILE(B_ALONG_K, p), t = ALONG_STEP(B_ALONG_K, p);
        COMPUTE from_a = (COMPUTE)0, from_b = (COMPUTE)0;
        if (r < rows && s < left) from_a = CONVERT(COMPUTE, A, a_piece[r * a_row + s * a_column]);
        if (c < columns && t < left) from_b = CONVERT(COMPUTE, B, b_piece[t * b_row + c * b_column]);
        a_tile[s * PITCH + r] = from_a;
        b_tile[t * PITCH + c] = from_b;
      }
    }
    BARRIER();
    UNROLL for (i32 s = 0; s < STEP; ++s) {
      const VECTOR l = LOAD4(COMPUTE, a_tile + s * PITCH + y), r = LOAD4(COMPUTE, b_tile + s * PITCH + x);
      sum0 = MULTIPLY_ADD4(COMPUTE, l.x, r, sum0);
      sum1 = MULTIPLY_ADD4(COMPUTE, l.y, r, sum1);
      sum2 = MULTIPLY_ADD4(COMPUTE, l.z, r, sum2);
      sum3 = MULTIPLY_ADD4(COMPUTE, l.w, r, sum3);
    }
    BARRIER();
  }

  // Results go through local memory, so that neighbouring items hand over neighbouring columns: pass i takes the rows
  // 4 r + i of the tile. A loop, so that what follows the product is compiled once.
  for (i32 i = 0; i < 4; ++i) {
    const VECTOR mine = i == 0 ? sum0 : i == 1 ? sum1 : i == 2 ? sum2 : sum3;
    STORE4(COMPUTE, a_tile + y / 4 * PITCH + x, mine);
    BARRIER();
    for (i32 r = 0; r < SIDE; r += LANES / TILE) {
      const i32 row = 4 * (r + LOCAL_ID(1)) + i;
      if (row < rows && LOCAL_ID(0) < columns)
        HAND_OVER(batch * m + first_row + row, first_column + LOCAL_ID(0),
                  a_tile[(r + LOCAL_ID(1)) * PITCH + LOCAL_ID(0)]);
    }
    BARRIER();
  }
}

#if SPLIT
KERNEL(matmul_fold, 256, 1)(ARRAY(COMPUTE, partial), i64 count, i64 parts EPILOGUE_PARAMS) {
  AT(COMPUTE, partial);
  EPILOGUE_ARRAYS
  const i64 i = GROUP_ID(0) * 256 + (i64)LOCAL_ID(0);
  if (i < count) {
    COMPUTE sum = partial[i];
    for (i64 p = 1; p < parts; ++p) sum = PASTE(add_, COMPUTE)(sum, partial[p * count + i]);
    EPILOGUE((INDEX)i, sum);
  }
}
#endif
