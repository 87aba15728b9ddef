// Sums over the rows of g and of g * (x - mean), one pair a column: what batch norm's derivative needs. g, x [rows,
// columns]; X: stored type; COMPUTE: f32 or f64. A group takes 256 columns of one part of the rows; neighbouring lanes
// read neighbouring columns.
#define NUMBER(v) CONVERT(COMPUTE, X, v)

// found [2][parts][columns]. Groups: {columns, parts}.
LANES_KERNEL(batch_sums_parts)
(ARRAY(X, g), ARRAY(X, x), ARRAY(X, mean), ARRAY(COMPUTE, found), i64 rows, i64 columns, i64 length) {
  AT(X, g);
  AT(X, x);
  AT(X, mean);
  AT(COMPUTE, found);
  const i64 first = GROUP_ID(0) * 256, part = GROUP_ID(1), parts = GROUPS(1), begin = part * length;
  const i64 end = begin + length < rows ? begin + length : rows;
  LANE_ARRAY(COMPUTE, sum);
  LANE_ARRAY(COMPUTE, product);
  LANE_ARRAY(COMPUTE, middle);
  FOR_LANES(lane, columns - first) {
    OF_LANE(sum, lane) = OF_LANE(product, lane) = (COMPUTE)0;
    OF_LANE(middle, lane) = NUMBER(mean[first + lane]);
  }
  for (i64 r = begin; r < end; ++r) {
    const GLOBAL X *g_row = g + r * columns + first, *x_row = x + r * columns + first;
    FOR_LANES(lane, columns - first) {
      const COMPUTE v = NUMBER(g_row[lane]);
      OF_LANE(sum, lane) += v;
      OF_LANE(product, lane) += v * (NUMBER(x_row[lane]) - OF_LANE(middle, lane));
    }
  }
  FOR_LANES(lane, columns - first) {
    found[part * columns + first + lane] = OF_LANE(sum, lane);
    found[(parts + part) * columns + first + lane] = OF_LANE(product, lane);
  }
}

// y [2, columns]
KERNEL(batch_sums_join, 256, 1)(ARRAY(COMPUTE, found), ARRAY(X, y), i64 columns, i64 parts) {
  AT(COMPUTE, found);
  AT(X, y);
  const i64 column = GROUP_ID(0) * 256 + LOCAL_ID(0);
  if (column < columns) {
    for (i32 which = 0; which < 2; ++which) {
      COMPUTE sum = (COMPUTE)0;
      for (i64 p = 0; p < parts; ++p) sum += found[(which * parts + p) * columns + column];
      y[which * columns + column] = CONVERT(X, COMPUTE, sum);
    }
  }
}
