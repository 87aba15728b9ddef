// Counts of elements by bin: each group in local memory where the bins fit, then all in 32-bit counters, then in the
// result. X, COMPUTE, FLOAT (f64 where there is one), BY_EDGES: bins of equal width (histogram), else an element is its
// bin's number (bincount).
#define LOCAL_BINS 4096

KERNEL(count_clear, 256, 1)(ARRAY(u32, counters), i64 bins) {
  AT(u32, counters);
  const i64 b = GROUP_ID(0) * 256 + (i64)LOCAL_ID(0);
  if (b < bins) counters[b] = 0;
}

#if BY_EDGES
#define EDGE(b) ((b) == bins ? high : low + (FLOAT)(b) * width)
INLINE i64 bin_of(FLOAT v, i64 bins, FLOAT low, FLOAT high, FLOAT width, FLOAT scale) {
  if (!(v >= low && v <= high)) return -1;
  // Rounded, and nothing at all where the range is tiny; the edges decide.
  const FLOAT guess = (v - low) * scale, most = (FLOAT)(bins - 1);
  i64 b = guess >= (FLOAT)0 ? (i64)(guess < most ? guess : most) : 0;
  if (b > 0 && v < EDGE(b)) --b;
  if (b < bins - 1 && v >= EDGE(b + 1)) ++b;
  return b;
}
#define BIN(i) bin_of(CONVERT(FLOAT, COMPUTE, CONVERT(COMPUTE, X, x[i])), bins, low, high, width, scale)
#else
INLINE i64 checked_bin(i64 v, i64 at, i64 bins, GLOBAL i64 *status, i32 number) {
  if (v >= 0 && v < bins) return v;
  report(status, number, v, at);
  return -1;
}
#define BIN(i) checked_bin(x[i], i, bins, status, number)
#endif

// A group `each` elements.
KERNEL(count, 256, 1)
(ARRAY(X, x), ARRAY(u32, counters), ARRAY(i64, status), i32 number, i64 begin, i64 end, i64 each, i64 bins, FLOAT low,
 FLOAT high, FLOAT width, FLOAT scale) {
  LOCAL_ARRAY(u32, own, LOCAL_BINS);
  AT(X, x);
  AT(u32, counters);
  AT(i64, status);
  const i64 first = begin + GROUP_ID(0) * each, behind = first + each < end ? first + each : end;
  const i32 lane = LOCAL_ID(0);
  if (bins <= LOCAL_BINS) {
    for (i32 b = lane; b < bins; b += 256) own[b] = 0;
    BARRIER();
    for (i64 from = first; from < behind; from += 256) {
      const i64 i = from + lane;
      if (i < behind) {
        const i64 b = BIN(i);
        if (b >= 0) LOCAL_ATOMIC_ADD(own + b, 1);
      }
    }
    BARRIER();
    for (i32 b = lane; b < bins; b += 256)
      if (own[b] != 0) ATOMIC_ADD(counters + b, own[b]);
  } else {
    for (i64 from = first; from < behind; from += 256) {
      const i64 i = from + lane;
      if (i < behind) {
        const i64 b = BIN(i);
        if (b >= 0) ATOMIC_ADD(counters + b, 1);
      }
    }
  }
}

// The result, or what is added to it.
KERNEL(count_add, 256, 1)(ARRAY(u32, counters), ARRAY(i64, result), i64 bins, i32 more) {
  AT(u32, counters);
  AT(i64, result);
  const i64 b = GROUP_ID(0) * 256 + (i64)LOCAL_ID(0);
  if (b < bins) result[b] = (more != 0 ? result[b] : 0) + (i64)counters[b];
}
