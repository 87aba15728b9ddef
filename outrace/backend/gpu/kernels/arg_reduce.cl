// Positions of the largest numbers along the middle axis of [outer, size, inner], or of the smallest where `flip` is 1.
// Lines are cut in `parts` of `length`; if there are several, they hand over what they found. A NaN comes before all
// numbers, of equal ones the first: an order without ties, so that every tree finds the same. X, COMPUTE, INTEGER;
// TURN: an integer of COMPUTE's size that holds a part's length, so that both are looked at side by side.
#if INTEGER
#define NUMBER(v) (CONVERT(COMPUTE, X, v) ^ -(i64)flip)
#else
#define NUMBER(v) (CONVERT(COMPUTE, X, v) * (COMPUTE)(1 - 2 * flip))
#endif
// Whether a number replaces one that stands before it.
#define REPLACES(later, best) ((best) == (best) && !((later) <= (best)))

INLINE i32 comes_first(COMPUTE a, i64 i, COMPUTE b, i64 j) {
  const i32 a_nan = a != a, b_nan = b != b;
  return a_nan != b_nan ? a_nan : a > b || ((a == b || a_nan) && i < j);
}

// The first of a group's candidates.
INLINE i64 first_of_group(LOCAL COMPUTE *values, LOCAL i64 *places, COMPUTE value, i64 place) {
  const i32 lane = LOCAL_ID(0);
  values[lane] = value;
  places[lane] = place;
  BARRIER();
  for (i32 step = 128; step > 0; step /= 2) {
    if (lane < step) {
      const COMPUTE other = values[lane + step];
      const i64 at = places[lane + step];
      if (comes_first(other, at, values[lane], places[lane])) {
        values[lane] = other;
        places[lane] = at;
      }
    }
    BARRIER();
  }
  return places[0];
}

#define HAND_OVER(number, line, best, place) \
  if (parts > 1) {                           \
    found[number] = best;                    \
    found_at[number] = place;                \
  } else {                                   \
    result[line] = place;                    \
  }
#define PARAMS                                                                                                   \
  ARRAY(X, x), ARRAY(i64, result), ARRAY(COMPUTE, found), ARRAY(i64, found_at), i64 lines, i64 size, i64 inner, \
      i64 parts, i64 length, i32 flip
#define ARRAYS        \
  AT(X, x);           \
  AT(i64, result);    \
  AT(COMPUTE, found); \
  AT(i64, found_at)

// A group a part, where inner is 1.
LANES_KERNEL(arg_reduce)(PARAMS) {
  LOCAL_ARRAY(COMPUTE, values, 256);
  LOCAL_ARRAY(i64, places, 256);
  ARRAYS;
  const i64 line = GROUP_ID(0) / parts, begin = GROUP_ID(0) % parts * length;
  const i64 count = size - begin < length ? size - begin : length;
  x += line * size + begin;
  LANE_ARRAY(COMPUTE, best);
  LANE_ARRAY(TURN, turn);  // the lane's number in which `best` was found
  FOR_LANES(lane, 256) {
    OF_LANE(best, lane) = NUMBER(x[lane < count ? lane : 0]);
    OF_LANE(turn, lane) = (TURN)0;
  }
  for (i64 from = 256; from < count; from += 256) {
    const TURN now = (TURN)(from / 256);
    FOR_LANES(lane, count - from) {
      const COMPUTE v = NUMBER(x[from + lane]);
      const i32 wins = REPLACES(v, OF_LANE(best, lane));
      OF_LANE(best, lane) = wins ? v : OF_LANE(best, lane);
      OF_LANE(turn, lane) = wins ? now : OF_LANE(turn, lane);
    }
  }
  // A lane without numbers holds the first one, and its place.
#define FOUND_AT(lane) ((lane) < count ? begin + (i64)OF_LANE(turn, lane) * 256 + (lane) : begin)
  COMPUTE first;
  i64 at;
#if ON_CPU
  first = best[0];
  at = FOUND_AT(0);
  for (i32 lane = 1; lane < 256; ++lane) {
    const i64 place = FOUND_AT(lane);
    const i32 wins = comes_first(best[lane], place, first, at);
    first = wins ? best[lane] : first;
    at = wins ? place : at;
  }
#else
  at = first_of_group(values, places, best[0], FOUND_AT(LOCAL_ID(0)));
  first = values[0];
#endif
  if (LOCAL_ID(0) == 0) {
    HAND_OVER(GROUP_ID(0), line, first, at)
  }
}
// A lane a part: neighbours lie side by side, or lines are short. Groups: {lines, parts}.
LANES_KERNEL(arg_reduce_items)(PARAMS) {
  ARRAYS;
  const i64 first = GROUP_ID(0) * 256, part = GROUP_ID(1), begin = part * length;
  const i64 count = size - begin < length ? size - begin : length;
  LANE_ARRAY(COMPUTE, best);
  LANE_ARRAY(TURN, turn);
  LANE_ARRAY(i64, base);
  FOR_LANES(lane, lines - first) {
    const i64 line = first + lane;
    OF_LANE(base, lane) = inner == lines ? begin * inner + line : (line / inner * size + begin) * inner + line % inner;
    OF_LANE(best, lane) = NUMBER(x[OF_LANE(base, lane)]);
    OF_LANE(turn, lane) = (TURN)0;
  }
#define LOOK(at)                                                \
  {                                                             \
    const COMPUTE v = NUMBER(at);                               \
    const i32 wins = REPLACES(v, OF_LANE(best, lane));          \
    OF_LANE(best, lane) = wins ? v : OF_LANE(best, lane);       \
    OF_LANE(turn, lane) = wins ? (TURN)i : OF_LANE(turn, lane); \
  }
  for (i64 i = 1; i < count; ++i) {
    if (inner == lines) {  // neighbours are neighbours: no bases
      const GLOBAL X *row = x + (begin + i) * inner + first;
      FOR_LANES(lane, lines - first) LOOK(row[lane])
    } else {
      FOR_LANES(lane, lines - first) LOOK(x[OF_LANE(base, lane) + i * inner])
    }
  }
  FOR_LANES(lane, lines - first) {
    const i64 line = first + lane;
    HAND_OVER(line * parts + part, line, OF_LANE(best, lane), begin + (i64)OF_LANE(turn, lane))
  }
}

// What the parts of a line found: an item a line, or a group.
KERNEL(arg_join, 256, 1)(ARRAY(COMPUTE, found), ARRAY(i64, found_at), ARRAY(i64, result), i64 lines, i64 parts) {
  AT(COMPUTE, found);
  AT(i64, found_at);
  AT(i64, result);
  const i64 line = GROUP_ID(0) * 256 + (i64)LOCAL_ID(0);
  if (line < lines) {
    i64 best = line * parts;
    for (i64 p = line * parts + 1; p < (line + 1) * parts; ++p)
      if (REPLACES(found[p], found[best])) best = p;
    result[line] = found_at[best];
  }
}
KERNEL(arg_join_team, 256, 1)(ARRAY(COMPUTE, found), ARRAY(i64, found_at), ARRAY(i64, result), i64 lines, i64 parts) {
  LOCAL_ARRAY(COMPUTE, values, 256);
  LOCAL_ARRAY(i64, places, 256);
  AT(COMPUTE, found);
  AT(i64, found_at);
  AT(i64, result);
  const i64 base = GROUP_ID(0) * parts;
  i64 best = base;
  for (i64 row = 0; row < parts; row += 256) {
    const i64 p = row + LOCAL_ID(0);
    if (p < parts && REPLACES(found[base + p], found[best])) best = base + p;
  }
  const i64 at = first_of_group(values, places, found[best], found_at[best]);
  if (LOCAL_ID(0) == 0) result[GROUP_ID(0)] = at;
}
