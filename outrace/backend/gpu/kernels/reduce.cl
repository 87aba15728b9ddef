// Reductions over any axes, with a fixed tree: the split depends on the sizes alone.
// K results, R elements each, cut in `segments` of `length`. COMPUTE, INDEX, REDUCE(a, b), IDENTITY, FINISH(value),
// KEPT_AXES and REDUCED_AXES (1 to 4 each), KEPT_DENSE (result k is column k), SPLIT, PROLOGUE, EPILOGUE.
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
#if KEPT_DENSE
#define KEPT(i) (i)
#else
#define KEPT(i) kept_at(i, PASTE(AXES_ARGS_, KEPT_AXES)(k))
#endif
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

LANE_FOLD(reduce_group, COMPUTE, REDUCE)

#define START(x) FOR_LANES(lane, 256) OF_LANE(x, lane) = IDENTITY
#define ADD_UP(total, sum) FOR_LANES(lane, 256) OF_LANE(total, lane) = REDUCE(OF_LANE(total, lane), OF_LANE(sum, lane))

#if TEAMS
// A group a segment: for long runs along the last axis. Groups: {results, segments}.
LANES_KERNEL(reduce)(FIRST_PARAMS) {
  LOCAL_ARRAY(COMPUTE, shared, 256);
  FIRST_ARRAYS
  const INDEX segment = (INDEX)GROUP_ID(1);
  const INDEX begin = segment * (INDEX)length;
  const INDEX end = begin + (INDEX)length < (INDEX)count ? begin + (INDEX)length : (INDEX)count;
  const INDEX k = (INDEX)GROUP_ID(0);
  const INDEX base = KEPT(k);
  LANE_ARRAY(COMPUTE, total);
  LANE_ARRAY(COMPUTE, sum);
  START(total);
  for (INDEX from = begin; from < end; from += 256 * RUN) {
    START(sum);
    const INDEX stop = from + 256 * RUN < end ? from + 256 * RUN : end;
    for (INDEX row = from; row < stop; row += 256) {
      FOR_LANES(lane, end - row) {
        const COMPUTE element = PROLOGUE(base + REDUCED(row + (INDEX)lane));
        OF_LANE(sum, lane) = REDUCE(OF_LANE(sum, lane), element);
      }
    }
    ADD_UP(total, sum);
  }
  const COMPUTE result = reduce_group(shared, total);
  if (LOCAL_ID(0) == 0) HAND_OVER(k, segment, result);
}
#else
// A lane a segment: for columns, whose neighbours lie side by side, and for short rows.
LANES_KERNEL(reduce)(FIRST_PARAMS) {
  FIRST_ARRAYS
  const INDEX segment = (INDEX)GROUP_ID(1);
  const INDEX begin = segment * (INDEX)length;
  const INDEX end = begin + (INDEX)length < (INDEX)count ? begin + (INDEX)length : (INDEX)count;
  const INDEX first = (INDEX)GROUP_ID(0) * 256;
  LANE_ARRAY(COMPUTE, total);
  LANE_ARRAY(COMPUTE, sum);
#if KEPT_DENSE
#define BASE(lane) (first + (INDEX)(lane))
#else
#define BASE(lane) OF_LANE(base, lane)
  LANE_ARRAY(INDEX, base);
  FOR_LANES(lane, results - (i64)first) OF_LANE(base, lane) = KEPT(first + (INDEX)lane);
#endif
  START(total);
  for (INDEX from = begin; from < end; from += RUN) {
    START(sum);
    const INDEX stop = from + RUN < end ? from + RUN : end;
    for (INDEX r = from; r < stop; ++r) {
      const INDEX at = REDUCED(r);
      FOR_LANES(lane, results - (i64)first) {
        const COMPUTE element = PROLOGUE(BASE(lane) + at);
        OF_LANE(sum, lane) = REDUCE(OF_LANE(sum, lane), element);
      }
    }
    ADD_UP(total, sum);
  }
  FOR_LANES(lane, results - (i64)first) HAND_OVER(first + (INDEX)lane, segment, OF_LANE(total, lane));
}
#endif

#if SPLIT
// The second pass: partial sums [segments, results], a lane a result.
LANES_KERNEL(reduce_partial)(ARRAY(COMPUTE, partial), i64 results, i64 segments, i64 count EPILOGUE_PARAMS) {
  AT(COMPUTE, partial);
  EPILOGUE_ARRAYS
  const i64 first = GROUP_ID(0) * 256;
  LANE_ARRAY(COMPUTE, total);
  LANE_ARRAY(COMPUTE, sum);
  START(total);
  for (i64 from = 0; from < segments; from += 16) {
    START(sum);
    for (i64 s = from; s < segments && s < from + 16; ++s)
      FOR_LANES(lane, results - first)
        OF_LANE(sum, lane) = REDUCE(OF_LANE(sum, lane), partial[s * results + first + lane]);
    ADD_UP(total, sum);
  }
  FOR_LANES(lane, results - first) EPILOGUE((INDEX)(first + lane), FINISH(OF_LANE(total, lane)));
}
// The same with a group a result, where there are few.
LANES_KERNEL(reduce_partial_team)(ARRAY(COMPUTE, partial), i64 results, i64 segments, i64 count EPILOGUE_PARAMS) {
  LOCAL_ARRAY(COMPUTE, shared, 256);
  AT(COMPUTE, partial);
  EPILOGUE_ARRAYS
  const INDEX k = (INDEX)GROUP_ID(0);
  LANE_ARRAY(COMPUTE, total);
  START(total);
  for (i64 row = 0; row < segments; row += 256)
    FOR_LANES(lane, segments - row)
      OF_LANE(total, lane) = REDUCE(OF_LANE(total, lane), partial[(row + lane) * results + (i64)k]);
  const COMPUTE result = reduce_group(shared, total);
  if (LOCAL_ID(0) == 0) EPILOGUE(k, FINISH(result));
}
#endif
