// Elements written where indices say; of those that go to one place the one with the highest position along the axis
// wins. First each place gets the number of its winner: the largest, so the order of the atomics does not matter.
// MOVED, I, INDEX, HAS_BASE. TARGET(i): where element i of the index's space goes, but for the axis; SOURCE(d): where
// the elements that may go to d lie in the source, but for the axis.

KERNEL(clear_winners, 256, 1)(ARRAY(i32, winner), i64 count) {
  AT(i32, winner);
  const INDEX i = (INDEX)GROUP_ID(0) * 256 + (INDEX)LOCAL_ID(0);
  if (i < (INDEX)count) winner[i] = -1;
}

KERNEL(find_winners, 256, 1)
(ARRAY(I, index), ARRAY(i32, winner), ARRAY(i64, status), i32 number, i64 count, i64 size, i64 step, i64 n,
 i64 n_magic, i64 inner, i64 inner_magic TARGET_PARAMS) {
  AT(I, index);
  AT(i32, winner);
  AT(i64, status);
  const INDEX i = (INDEX)GROUP_ID(0) * 256 + (INDEX)LOCAL_ID(0);
  if (i < (INDEX)count) {
    const i64 entry = checked_entry((i64)index[i], size, (i64)i, 1, status, number);
    const INDEX row = DIVIDE(i, (INDEX)inner, inner_magic), outer = DIVIDE(row, (INDEX)n, n_magic);
    if (entry >= 0) ATOMIC_MAX(winner + TARGET(i) + (INDEX)entry * (INDEX)step, (i32)(row - outer * (INDEX)n));
  }
}

KERNEL(take_winners, 256, 1)
(ARRAY(i32, winner), ARRAY(MOVED, source), ARRAY(MOVED, base), ARRAY(MOVED, y), i64 count, i64 step SOURCE_PARAMS) {
  AT(i32, winner);
  AT(MOVED, source);
  AT(MOVED, base);
  AT(MOVED, y);
  const INDEX i = (INDEX)GROUP_ID(0) * 256 + (INDEX)LOCAL_ID(0);
  if (i < (INDEX)count) {
    const i32 chosen = winner[i];
    MOVED value = HAS_BASE ? base[i] : (MOVED)0;
    if (chosen >= 0) value = source[SOURCE(i) + (INDEX)chosen * (INDEX)step];
    y[i] = value;
  }
}
