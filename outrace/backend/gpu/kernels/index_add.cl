// Terms added where indices say, each place's in order of position. T: stored type; ACC: f32, f64 or i64, in which sums
// are formed and rounded once; I: i64 or i32; INDEX, HAS_BASE.
// The result is [outer, size, inner]; place i's terms are those whose index is (i / inner) % size.
#if HAS_BASE
#define START(i) CONVERT(ACC, T, base[i])
#else
#define START(i) ((ACC)0)
#endif

#if FEW
// Few indices a line: each place looks at all of its line. INDEX_AT(i), SOURCE_AT(i): where the line's indices and
// terms begin.
KERNEL(add_few, 256, 1)
(ARRAY(I, index), ARRAY(T, source), ARRAY(T, base), ARRAY(T, y), i64 count, i64 padding, i64 n, i64 index_step,
 i64 source_step, i64 size, i64 size_magic, i64 inner, i64 inner_magic INDEX_AT_PARAMS SOURCE_AT_PARAMS) {
  AT(I, index);
  AT(T, source);
  AT(T, base);
  AT(T, y);
  const INDEX i = (INDEX)GROUP_ID(0) * 256 + (INDEX)LOCAL_ID(0);
  if (i < (INDEX)count) {
    const INDEX line = DIVIDE(i, (INDEX)inner, inner_magic);
    const i64 entry = (i64)(line - DIVIDE(line, (INDEX)size, size_magic) * (INDEX)size);
    const GLOBAL I *at = index + INDEX_AT(i);
    const GLOBAL T *term = source + SOURCE_AT(i);
    i32 terms = 0;
    ACC sum = START(i);
    for (i64 k = 0; k < n; ++k) {
      if ((i64)at[k * index_step] == entry && entry != padding) {
        sum = SUM(sum, CONVERT(ACC, T, term[k * source_step]));
        ++terms;
      }
    }
#if HAS_BASE
    y[i] = terms > 0 ? CONVERT(T, ACC, sum) : base[i];
#else
    y[i] = CONVERT(T, ACC, sum);
#endif
  }
}
#elif LINES
// Many lines: an item walks each, in order of position. Sums stand in `sums`, [places]. TARGET(l), TERM(l): where
// line l begins in the result and in the source.
KERNEL(start_sums, 256, 1)(ARRAY(T, base), ARRAY(ACC, sums), i64 count) {
  AT(T, base);
  AT(ACC, sums);
  const INDEX i = (INDEX)GROUP_ID(0) * 256 + (INDEX)LOCAL_ID(0);
  if (i < (INDEX)count) sums[i] = START(i);
}

KERNEL(add_lines, 256, 1)
(ARRAY(I, index), ARRAY(T, source), ARRAY(ACC, sums), ARRAY(i64, status), i32 number, i64 lines, i64 n, i64 size,
 i64 source_step, i64 step TARGET_PARAMS TERM_PARAMS) {
  AT(I, index);
  AT(T, source);
  AT(ACC, sums);
  AT(i64, status);
  const INDEX line = (INDEX)GROUP_ID(0) * 256 + (INDEX)LOCAL_ID(0);
  if (line < (INDEX)lines) {
    const INDEX term = TERM(line);
    GLOBAL ACC *to = sums + TARGET(line);
    for (i64 k = 0; k < n; ++k) {
      const INDEX at = term + (INDEX)k * (INDEX)source_step;
      const i64 entry = checked_entry((i64)index[at], size, (i64)at, 1, status, number);
      if (entry >= 0) to[entry * step] = SUM(to[entry * step], CONVERT(ACC, T, source[at]));
    }
  }
}

KERNEL(store_sums, 256, 1)(ARRAY(ACC, sums), ARRAY(T, y), i64 count) {
  AT(ACC, sums);
  AT(T, y);
  const INDEX i = (INDEX)GROUP_ID(0) * 256 + (INDEX)LOCAL_ID(0);
  if (i < (INDEX)count) y[i] = CONVERT(T, ACC, sums[i]);
}
#else
// Positions sorted by the entry they name (index_sort.cl): those of entry r are order[first[r] .. first[r + 1]).
#define PARAMS                                                                                                       \
  ARRAY(u32, first), ARRAY(u32, order), ARRAY(T, source), ARRAY(T, base), ARRAY(T, y), i64 count, i64 padding, i64 n, \
      i64 size, i64 size_magic, i64 inner, i64 inner_magic
#define ARRAYS   \
  AT(u32, first); \
  AT(u32, order); \
  AT(T, source); \
  AT(T, base);   \
  AT(T, y);

KERNEL(add_sorted, 256, 1)(PARAMS) {
  ARRAYS
  const INDEX i = (INDEX)GROUP_ID(0) * 256 + (INDEX)LOCAL_ID(0);
  if (i < (INDEX)count) {
    const INDEX line = DIVIDE(i, (INDEX)inner, inner_magic), c = i - line * (INDEX)inner;
    const INDEX outer = DIVIDE(line, (INDEX)size, size_magic), entry = line - outer * (INDEX)size;
    const GLOBAL T *term = source + (outer * (INDEX)n * (INDEX)inner + c);
    const u32 begin = first[entry], end = (i64)entry == padding ? begin : first[entry + 1];
    ACC sum = START(i);
    for (u32 k = begin; k < end; ++k) sum = SUM(sum, CONVERT(ACC, T, term[(INDEX)order[k] * (INDEX)inner]));
#if HAS_BASE
    y[i] = begin < end ? CONVERT(T, ACC, sum) : base[i];
#else
    y[i] = CONVERT(T, ACC, sum);
#endif
  }
}

// A group a place, where few places have many terms: sums of every 256th, then a tree.
GROUP_FOLD(fold_terms, ACC, SUM)
KERNEL(add_sorted_team, 256, 1)(PARAMS) {
  LOCAL_ARRAY(ACC, shared, 256);
  ARRAYS
  const i64 i = GROUP_ID(0), line = i / inner, c = i - line * inner, outer = line / size, entry = line - outer * size;
  const GLOBAL T *term = source + (outer * n * inner + c);
  const i64 begin = first[entry], end = entry == padding ? begin : (i64)first[entry + 1];
  ACC sum = (ACC)0;
  for (i64 from = begin; from < end; from += 256) {
    const i64 k = from + LOCAL_ID(0);
    if (k < end) sum = SUM(sum, CONVERT(ACC, T, term[(i64)order[k] * inner]));
  }
  sum = fold_terms(shared, sum);
  if (LOCAL_ID(0) == 0) {
#if HAS_BASE
    y[i] = begin < end ? CONVERT(T, ACC, SUM(START(i), sum)) : base[i];
#else
    y[i] = CONVERT(T, ACC, sum);
#endif
  }
}
#endif
