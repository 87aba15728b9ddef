// Elements and rows that indices name. MOVED: an unsigned type of an element's size, or of a part of a row; I: i64 or
// i32; INDEX. An index out of range is reported and reads as 0.
// ELEMENTS: PLACE(i), where element i of the index's space lies in the array but for the axis. Else TEAMS: a group
// copies a row.

#if ELEMENTS
KERNEL(gather, 256, 1)
(ARRAY(MOVED, x), ARRAY(I, index), ARRAY(MOVED, y), ARRAY(i64, status), i32 number, i64 count, i64 size,
 i64 step PLACE_PARAMS) {
  AT(MOVED, x);
  AT(I, index);
  AT(MOVED, y);
  AT(i64, status);
  const INDEX i = (INDEX)GROUP_ID(0) * 256 + (INDEX)LOCAL_ID(0);
  if (i < (INDEX)count) {
    const i64 entry = checked_entry((i64)index[i], size, (i64)i, 1, status, number);
    y[i] = entry >= 0 ? x[PLACE(i) + (INDEX)entry * (INDEX)step] : (MOVED)0;
  }
}
#elif TEAMS
// y [outer, n, inner] from x [outer, size, inner]; `padding` reads as 0. Groups: {outer * n}.
KERNEL(select_rows, 256, 1)
(ARRAY(MOVED, x), ARRAY(I, index), ARRAY(MOVED, y), ARRAY(i64, status), i32 number, i64 count, i64 size, i64 padding,
 i64 n, i64 n_magic, i64 inner, i64 inner_magic) {
  AT(MOVED, x);
  AT(I, index);
  AT(MOVED, y);
  AT(i64, status);
  const i64 row = GROUP_ID(0), outer = row / n, k = row - outer * n;
  const i64 entry = checked_entry((i64)index[k], size, k, outer == 0 && LOCAL_ID(0) == 0, status, number);
  const i32 reads = entry >= 0 && entry != padding;
  const GLOBAL MOVED *from = x + (outer * size + (reads ? entry : 0)) * inner;
  GLOBAL MOVED *to = y + row * inner;
  for (i64 start = 0; start < inner; start += 256) {
    const i64 c = start + LOCAL_ID(0);
    if (c < inner) to[c] = reads ? from[c] : (MOVED)0;
  }
}
#else
KERNEL(select_rows, 256, 1)
(ARRAY(MOVED, x), ARRAY(I, index), ARRAY(MOVED, y), ARRAY(i64, status), i32 number, i64 count, i64 size, i64 padding,
 i64 n, i64 n_magic, i64 inner, i64 inner_magic) {
  AT(MOVED, x);
  AT(I, index);
  AT(MOVED, y);
  AT(i64, status);
  const INDEX i = (INDEX)GROUP_ID(0) * 256 + (INDEX)LOCAL_ID(0);
  if (i < (INDEX)count) {
    const INDEX row = DIVIDE(i, (INDEX)inner, inner_magic), c = i - row * (INDEX)inner;
    const INDEX outer = DIVIDE(row, (INDEX)n, n_magic), at = row - outer * (INDEX)n;
    const i64 entry = checked_entry((i64)index[at], size, (i64)at, outer == 0 && c == 0, status, number);
    y[i] = entry >= 0 && entry != padding ? x[(outer * (INDEX)size + (INDEX)entry) * (INDEX)inner + c] : (MOVED)0;
  }
}
#endif

// y [count / classes, classes]: `one` where the index names the class.
KERNEL(one_hot, 256, 1)
(ARRAY(I, index), ARRAY(MOVED, y), ARRAY(i64, status), i32 number, i64 count, i64 one, i64 classes,
 i64 classes_magic) {
  AT(I, index);
  AT(MOVED, y);
  AT(i64, status);
  const INDEX i = (INDEX)GROUP_ID(0) * 256 + (INDEX)LOCAL_ID(0);
  if (i < (INDEX)count) {
    const INDEX row = DIVIDE(i, (INDEX)classes, classes_magic), c = i - row * (INDEX)classes;
    const i64 entry = checked_entry((i64)index[row], classes, (i64)row, c == 0, status, number);
    y[i] = entry == (i64)c ? (MOVED)one : (MOVED)0;
  }
}
