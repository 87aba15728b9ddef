// Reductions over any axes, with a fixed tree: the split depends on the sizes alone.
// K results, R elements each, cut in `segments` of `length`. COMPUTE, INDEX, REDUCE(a, b), IDENTITY, FINISH(value),
// KEPT_AXES and REDUCED_AXES (1 to 4 each), SPLIT, PROLOGUE, EPILOGUE.
// A result's elements lie at kept_at(k) + reduced_at(r) of the space. Axes are passed as {size, magic, stride}.

#define AXES_PARAMS_1(p) i64 p##0_stride
#define AXES_PARAMS_2(p) AXES_PARAMS_1(p), i64 p##1_size, i64 p##1_magic, i64 p##1_stride
#define AXES_PARAMS_3(p) AXES_PARAMS_2(p), i64 p##2_size, i64 p##2_magic, i64 p##2_stride
#define AXES_PARAMS_4(p) AXES_PARAMS_3(p), i64 p##3_size, i64 p##3_magic, i64 p##3_stride
#define AXES_ARGS_1(p) p##0_stride
#define AXES_ARGS_2(p) AXES_ARGS_1(p), p##1_size, p##1_magic, p##1_stride
#define AXES_ARGS_3(p) AXES_ARGS_2(p), p##2_size, p##2_magic, p##2_stride
#define AXES_ARGS_4(p) AXES_ARGS_3(p), p##3_size, p##3_magic, p##3_stride
#define TAKE_AXIS_(p, n) \
  {                                                              \
    const INDEX q = DIVIDE(rest, p##n##_size, p##n##_magic);     \
    at += (rest - q * (INDEX)p##n##_size) * (INDEX)p##n##_stride; \
    rest = q;                                                    \
  }
#define TAKE_1(p)
#define TAKE_2(p) TAKE_AXIS_(p, 1)
#define TAKE_3(p) TAKE_AXIS_(p, 2) TAKE_2(p)
#define TAKE_4(p) TAKE_AXIS_(p, 3) TAKE_3(p)

INLINE INDEX kept_at(INDEX i, PASTE(AXES_PARAMS_, KEPT_AXES)(k)) {
  INDEX rest = i, at = 0;
  PASTE(TAKE_, KEPT_AXES)(k)
  return at + rest * (INDEX)k0_stride;
}
INLINE INDEX reduced_at(INDEX i, PASTE(AXES_PARAMS_, REDUCED_AXES)(r)) {
  INDEX rest = i, at = 0;
  PASTE(TAKE_, REDUCED_AXES)(r)
  return at + rest * (INDEX)r0_stride;
}
#define PARAMS                                                                                    \
  i64 results, i64 count, i64 segments, i64 length, PASTE(AXES_PARAMS_, KEPT_AXES)(k),           \
      PASTE(AXES_PARAMS_, REDUCED_AXES)(r)
#define KEPT(i) kept_at(i, PASTE(AXES_ARGS_, KEPT_AXES)(k))
#if TEAMS && REDUCED_AXES == 1
#define REDUCED(i) (i)
#else
#define REDUCED(i) reduced_at(i, PASTE(AXES_ARGS_, REDUCED_AXES)(r))
#endif

// Elements added one after another before their sum is added to the total: keeps rounding near that of a tree.
#define RUN 64

#if SPLIT
#define FIRST_PARAMS ARRAY(COMPUTE, partial), PARAMS PROLOGUE_PARAMS
#define FIRST_ARRAYS PROLOGUE_ARRAYS AT(COMPUTE, partial);
#define HAND_OVER(k, s, value) partial[(i64)(s) * results + (i64)(k)] = value
#else
#define FIRST_PARAMS PARAMS PROLOGUE_PARAMS EPILOGUE_PARAMS
#define FIRST_ARRAYS PROLOGUE_ARRAYS EPILOGUE_ARRAYS
#define HAND_OVER(k, s, value) EPILOGUE(k, FINISH(value))
#endif

GROUP_FOLD(reduce_group, COMPUTE, REDUCE)

#if TEAMS
// A group a segment: for long runs along the last axis. Groups: {results (in rows of 2^16), .., segments}.
KERNEL(reduce, 256, 1)(FIRST_PARAMS) {
  LOCAL_ARRAY(COMPUTE, shared, 256);
  FIRST_ARRAYS
  const INDEX segment = (INDEX)GROUP_ID(1), lane = (INDEX)LOCAL_ID(0);
  const INDEX begin = segment * (INDEX)length;
  const INDEX end = begin + (INDEX)length < (INDEX)count ? begin + (INDEX)length : (INDEX)count;
  const INDEX k = (INDEX)GROUP_ID(0);
  const INDEX base = KEPT(k);
  COMPUTE total = IDENTITY;
  for (INDEX from = begin; from < end; from += 256 * RUN) {
    COMPUTE sum = IDENTITY;
    for (INDEX row = from; row < end && row < from + 256 * RUN; row += 256) {
      const INDEX r = row + lane;
      if (r < end) {
        const COMPUTE element = PROLOGUE(base + REDUCED(r));
        sum = REDUCE(sum, element);
      }
    }
    total = REDUCE(total, sum);
  }
  total = reduce_group(shared, total);
  if (lane == 0) HAND_OVER(k, segment, total);
}
#else
// An item a segment: for columns, whose neighbours lie side by side, and for short rows.
KERNEL(reduce, 256, 1)(FIRST_PARAMS) {
  FIRST_ARRAYS
  const INDEX segment = (INDEX)GROUP_ID(1);
  const INDEX begin = segment * (INDEX)length;
  const INDEX end = begin + (INDEX)length < (INDEX)count ? begin + (INDEX)length : (INDEX)count;
  const INDEX k = (INDEX)GROUP_ID(0) * 256 + (INDEX)LOCAL_ID(0);
  if (k < (INDEX)results) {
    const INDEX base = KEPT(k);
    COMPUTE total = IDENTITY;
    for (INDEX from = begin; from < end; from += RUN) {
      COMPUTE sum = IDENTITY;
      for (INDEX r = from; r < end && r < from + RUN; ++r) {
        const COMPUTE element = PROLOGUE(base + REDUCED(r));
        sum = REDUCE(sum, element);
      }
      total = REDUCE(total, sum);
    }
    HAND_OVER(k, segment, total);
  }
}
#endif

#if SPLIT
// The second pass: partial sums [segments, results], an item a result.
KERNEL(reduce_partial, 256, 1)(ARRAY(COMPUTE, partial), i64 results, i64 segments, i64 count EPILOGUE_PARAMS) {
  AT(COMPUTE, partial);
  EPILOGUE_ARRAYS
  const INDEX k = (INDEX)GROUP_ID(0) * 256 + (INDEX)LOCAL_ID(0);
  if (k < (INDEX)results) {
    COMPUTE total = IDENTITY;
    for (i64 from = 0; from < segments; from += 16) {
      COMPUTE sum = IDENTITY;
      for (i64 s = from; s < segments && s < from + 16; ++s) sum = REDUCE(sum, partial[s * results + (i64)k]);
      total = REDUCE(total, sum);
    }
    EPILOGUE(k, FINISH(total));
  }
}
// The same with a group a result, where there are few.
KERNEL(reduce_partial_team, 256, 1)(ARRAY(COMPUTE, partial), i64 results, i64 segments, i64 count EPILOGUE_PARAMS) {
  LOCAL_ARRAY(COMPUTE, shared, 256);
  AT(COMPUTE, partial);
  EPILOGUE_ARRAYS
  const INDEX k = (INDEX)GROUP_ID(0);
  COMPUTE total = IDENTITY;
  for (i64 row = 0; row < segments; row += 256) {
    const i64 s = row + LOCAL_ID(0);
    if (s < segments) total = REDUCE(total, partial[s * results + (i64)k]);
  }
  total = reduce_group(shared, total);
  if (LOCAL_ID(0) == 0) EPILOGUE(k, FINISH(total));
}
#endif
