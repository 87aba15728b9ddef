// Positions of the largest numbers along the middle axis of [outer, size, inner], or of the smallest where `flip` is 1.
// Lines are cut in `parts` of `length`; if there are several, they hand over what they found. A NaN comes before all
// numbers, of equal ones the first: an order without ties, so that every tree finds the same. X, COMPUTE, INTEGER.
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
KERNEL(arg_reduce, 256, 1)(PARAMS) {
  LOCAL_ARRAY(COMPUTE, values, 256);
  LOCAL_ARRAY(i64, places, 256);
  ARRAYS;
  const i64 line = GROUP_ID(0) / parts, begin = GROUP_ID(0) % parts * length;
  const i64 count = size - begin < length ? size - begin : length, lane = LOCAL_ID(0);
  x += line * size + begin;
  COMPUTE best = NUMBER(x[0]);
  i64 place = 0;
  for (i64 from = 0; from < count; from += 256) {
    if (from + lane < count) {
      const COMPUTE v = NUMBER(x[from + lane]);
      const i32 wins = REPLACES(v, best);
      best = wins ? v : best;
      place = wins ? from + lane : place;
    }
  }
  const i64 at = first_of_group(values, places, best, begin + place);
  if (lane == 0) {
    HAND_OVER(GROUP_ID(0), line, values[0], at)
  }
}
// An item a part: neighbours lie side by side, or lines are short.
KERNEL(arg_reduce_items, 256, 1)(PARAMS) {
  ARRAYS;
  const i64 item = GROUP_ID(0) * 256 + (i64)LOCAL_ID(0);
  const i64 part = item / lines, line = item % lines, begin = part * length;
  if (part < parts) {
    x += (line / inner * size + begin) * inner + line % inner;
    const i64 count = size - begin;
    COMPUTE best = NUMBER(x[0]);
    i64 place = 0;
    for (i64 i = 1; i < length; ++i) {
      if (i < count) {
        const COMPUTE v = NUMBER(x[i * inner]);
        const i32 wins = REPLACES(v, best);
        best = wins ? v : best;
        place = wins ? i : place;
      }
    }
    HAND_OVER(line * parts + part, line, best, begin + place)
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
