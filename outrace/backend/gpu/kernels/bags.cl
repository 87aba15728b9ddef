// Bags of rows: bag number b holds rows offsets[b] .. offsets[b + 1) (the last one: to the end). I: i64 or i32.
// Offsets that do not start with 0, decrease or pass the rows are reported by check_bags; the others stay within bounds
// then.
INLINE i64 offset_of(const GLOBAL I *offsets, i64 bag, i64 bags, i64 rows) {
  const i64 v = bag < bags ? (i64)offsets[bag] : rows;
  return v < 0 ? 0 : v > rows ? rows : v;
}

// One group. `at` of the report: bag + bags * the offset before it.
KERNEL(check_bags, 256, 1)(ARRAY(I, offsets), ARRAY(i64, status), i32 number, i64 bags, i64 rows) {
  LOCAL_ARRAY(i64, shared, 256);
  AT(I, offsets);
  AT(i64, status);
  const i32 lane = LOCAL_ID(0);
  i64 bad = bags;
  for (i64 from = 0; from < bags; from += 256) {
    const i64 b = from + lane;
    if (b < bags && bad == bags) {
      const i64 v = (i64)offsets[b], least = b == 0 ? 0 : (i64)offsets[b - 1];
      if (v < least || v > rows || (b == 0 && v != 0)) bad = b;
    }
  }
  shared[lane] = bad;
  BARRIER();
  if (lane == 0) {
    for (i32 k = 1; k < 256; ++k) bad = shared[k] < bad ? shared[k] : bad;
    if (bad < bags) report(status, number, (i64)offsets[bad], bad + bags * (bad == 0 ? 0 : (i64)offsets[bad - 1]));
    if (bags == 0) report(status, number, 0, 0);
  }
}

// The bag of each row: the last that begins at or before it.
KERNEL(bag_of, 256, 1)(ARRAY(I, offsets), ARRAY(i64, bag), i64 bags, i64 rows) {
  AT(I, offsets);
  AT(i64, bag);
  const i64 row = GROUP_ID(0) * 256 + LOCAL_ID(0);
  if (row < rows) {
    i64 low = 0, high = bags;  // bags below `low` begin at or before the row
    while (low < high) {
      const i64 middle = (low + high) / 2;
      if ((i64)offsets[middle] <= row)
        low = middle + 1;
      else
        high = middle;
    }
    bag[row] = low > 0 ? low - 1 : 0;
  }
}

#ifdef X
// best [bags, width]: the row of a bag with the largest number, the first of equal ones, a NaN before all; 0 for an
// empty bag. X: stored type, COMPUTE.
KERNEL(bag_argmax, 256, 1)(ARRAY(X, x), ARRAY(I, offsets), ARRAY(i64, best), i64 bags, i64 rows, i64 width) {
  AT(X, x);
  AT(I, offsets);
  AT(i64, best);
  const i64 i = GROUP_ID(0) * 256 + LOCAL_ID(0);
  if (i < bags * width) {
    const i64 b = i / width, c = i - b * width;
    const i64 begin = offset_of(offsets, b, bags, rows), end = offset_of(offsets, b + 1, bags, rows);
    i64 chosen = begin < end ? begin : 0;
    if (begin < end) {
      COMPUTE most = CONVERT(COMPUTE, X, x[begin * width + c]);
      for (i64 r = begin + 1; r < end; ++r) {
        const COMPUTE next = CONVERT(COMPUTE, X, x[r * width + c]);
        if (next > most || (next != next && most == most)) {
          most = next;
          chosen = r;
        }
      }
    }
    best[i] = chosen;
  }
}
#endif
