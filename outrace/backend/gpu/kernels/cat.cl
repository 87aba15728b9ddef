// Arrays side by side. MOVED: an unsigned type; INDEX; PARTS: 2 or 8 in a launch, the last ones perhaps empty.
// Part k is `rows` pieces, piece r at k[r * k_step], and fills columns k_begin .. k_end of the launch's `width`, which
// begin `skipped` columns from the row's start and are apart by `whole`. PARTS 1: a launch a part, for long pieces.
#if PARTS == 1
// A group copies up to 8 * 256 columns of a row.
KERNEL(copy_pieces, 256, 1)
(ARRAY(MOVED, x), ARRAY(MOVED, y), i64 columns, i64 cuts, i64 step, i64 whole, i64 skipped) {
  AT(MOVED, x);
  AT(MOVED, y);
  const i64 row = GROUP_ID(0) / cuts, begin = (GROUP_ID(0) - row * cuts) * (8 * 256);
  const i64 end = begin + 8 * 256 < columns ? begin + 8 * 256 : columns;
  const GLOBAL MOVED *from = x + row * step;
  GLOBAL MOVED *to = y + (row * whole + skipped);
  for (i64 start = begin; start < end; start += 256) {
    const i64 c = start + LOCAL_ID(0);
    if (c < end) to[c] = from[c];
  }
}
#else
#define PART(k) , ARRAY(MOVED, p##k), i64 p##k##_step, i64 p##k##_begin
#define TAKE(k) \
  if (c >= (INDEX)p##k##_begin) from = p##k + row * (INDEX)p##k##_step + (c - (INDEX)p##k##_begin);
#if PARTS == 2
#define PART_PARAMS PART(0) PART(1)
#define PART_ARRAYS AT(MOVED, p0); AT(MOVED, p1);
#define TAKE_PART TAKE(1)
#else
#define PART_PARAMS PART(0) PART(1) PART(2) PART(3) PART(4) PART(5) PART(6) PART(7)
#define PART_ARRAYS                                                                                       \
  AT(MOVED, p0); AT(MOVED, p1); AT(MOVED, p2); AT(MOVED, p3); AT(MOVED, p4); AT(MOVED, p5); AT(MOVED, p6); \
  AT(MOVED, p7);
#define TAKE_PART TAKE(1) TAKE(2) TAKE(3) TAKE(4) TAKE(5) TAKE(6) TAKE(7)
#endif

KERNEL(cat, 256, 1)
(ARRAY(MOVED, y), i64 count, i64 whole, i64 skipped, i64 width, i64 width_magic PART_PARAMS) {
  AT(MOVED, y);
  PART_ARRAYS
  const INDEX i = (INDEX)GROUP_ID(0) * 256 + (INDEX)LOCAL_ID(0);
  if (i < (INDEX)count) {
    const INDEX row = DIVIDE(i, (INDEX)width, width_magic), c = i - row * (INDEX)width;
    const GLOBAL MOVED *from = p0 + row * (INDEX)p0_step + c;
    TAKE_PART
    y[row * (INDEX)whole + (INDEX)skipped + c] = *from;
  }
}
#endif
