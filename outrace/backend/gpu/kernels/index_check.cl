// Indices that no other kernel reads, or not all of them. I: i64 or i32. INDEX.
KERNEL(check_indices, 256, 1)(ARRAY(I, index), ARRAY(i64, status), i32 number, i64 count, i64 size) {
  AT(I, index);
  AT(i64, status);
  const INDEX i = (INDEX)GROUP_ID(0) * 256 + (INDEX)LOCAL_ID(0);
  if (i < (INDEX)count) checked_entry((i64)index[i], size, (i64)i, 1, status, number);
}
