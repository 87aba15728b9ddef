// Scans along the middle axis of [outer, size, inner]: KIND 0 sums, 1 products, 2 recurrences h = a * h + x, 3
// positions of the largest so far (of the smallest where `option` is 1). Lines are cut in `parts` of `length`: totals
// of parts (scan_totals), what comes before each (scan_carries), then the results (scan). Element i of a line lies at
// its start + i * step; `start` and `step` hold the direction. For sums and products `option` is 1 where an element's
// result leaves itself out. X, Y, COMPUTE, FLOAT (f64 where there is one), KIND, INTEGER.
#if HAS_F64
#define BITS u64
#define BITS_OF AS_U64
#define OF_BITS AS_F64
#define MANTISSA 52
#define BIAS 1023
#else
#define BITS u32
#define BITS_OF AS_U32
#define OF_BITS AS_F32
#define MANTISSA 23
#define BIAS 127
#endif

#if KIND == 0 || (KIND == 1 && INTEGER)
// ---- sums, and products of integers ----
#if INTEGER
#define WIDE i64
typedef i64 VALUE;
INLINE VALUE join(VALUE a, VALUE b) { return (i64)(KIND == 0 ? (u64)a + (u64)b : (u64)a * (u64)b); }
#else
#define WIDE FLOAT
typedef FLOAT VALUE;
INLINE VALUE join(VALUE a, VALUE b) { return a + b; }
#endif
#define NEUTRAL ((VALUE)KIND)
#define LIFT(i, at) CONVERT(WIDE, X, x[at])
#define LOWER(v) CONVERT(X, WIDE, v)

#elif KIND == 1
// ---- products: the exponent apart, so that no part overflows where what comes before it is small ----
typedef struct {
  FLOAT mantissa;  // 1 <= |mantissa| < 2, or 0, infinite, NaN
  i64 exponent;
} VALUE;
#define FIELD ((BITS)(2 * BIAS + 1))
INLINE VALUE normalized(FLOAT m, i64 exponent) {
  const BITS bits = BITS_OF(m), field = bits >> MANTISSA & FIELD;
  const i32 plain = field != 0 && field != FIELD;
  VALUE v;
  v.mantissa = plain ? OF_BITS((bits & ~(FIELD << MANTISSA)) | (BITS)BIAS << MANTISSA) : m;
  v.exponent = plain ? exponent + (i64)field - BIAS : 0;
  return v;
}
INLINE VALUE join(VALUE a, VALUE b) { return normalized(a.mantissa * b.mantissa, a.exponent + b.exponent); }
#define POWER_OF_2(e) OF_BITS((BITS)((e) + BIAS) << MANTISSA)
INLINE VALUE lift(FLOAT m) {
  const i32 tiny = fabs(m) < POWER_OF_2(2 * MANTISSA - BIAS);
  return normalized(tiny ? m * POWER_OF_2(2 * MANTISSA) : m, tiny ? -2 * MANTISSA : 0);
}
INLINE FLOAT lower(VALUE v) {
  const i64 most = BIAS + 2 * MANTISSA;
  const i64 e = v.exponent > most ? most : v.exponent < -most ? -most : v.exponent, half_of = e / 2;
  return v.mantissa * POWER_OF_2(half_of) * POWER_OF_2(e - half_of);
}
#define NEUTRAL lift((FLOAT)1)
#define LIFT(i, at) lift(CONVERT(FLOAT, X, x[at]))
#define LOWER(v) CONVERT(X, FLOAT, lower(v))

#elif KIND == 2
// ---- recurrences: the line's last number h becomes factor * h + term ----
typedef struct {
  FLOAT factor, term;
} VALUE;
// Factors that overflow stop at the largest number: where h is 0, it stays so.
#define LARGEST_NUMBER OF_BITS(((BITS)(2 * BIAS + 1) << MANTISSA) - 1)
INLINE i32 is_finite(FLOAT v) { return fabs(v) <= LARGEST_NUMBER; }
INLINE VALUE join(VALUE a, VALUE b) {
  const FLOAT product = a.factor * b.factor;
  const i32 overflows = !is_finite(product) && is_finite(a.factor) && is_finite(b.factor);
  VALUE v;
  v.factor = overflows ? (product > (FLOAT)0 ? LARGEST_NUMBER : -LARGEST_NUMBER) : product;
  v.term = b.factor * a.term + b.term;
  return v;
}
INLINE VALUE step_of(FLOAT factor, FLOAT term) {
  VALUE v;
  v.factor = factor;
  v.term = term;
  return v;
}
#define NEUTRAL step_of((FLOAT)1, (FLOAT)0)
// The first factor of a line has nothing to multiply.
#define LIFT(i, at) step_of((i) == 0 ? (FLOAT)0 : CONVERT(FLOAT, X, factors[at]), CONVERT(FLOAT, X, x[at]))
#define LOWER(v) CONVERT(X, FLOAT, (v).term)

#else
// ---- positions: of equal numbers the last, NaN before all numbers ----
typedef struct {
  COMPUTE value;
  i64 at;  // -1: none
} VALUE;
INLINE VALUE candidate(COMPUTE value, i64 at) {
  VALUE v;
  v.value = value;
  v.at = at;
  return v;
}
INLINE VALUE join(VALUE a, VALUE b) {
  const i32 wins = b.value != b.value || b.value >= a.value;
  return b.at >= 0 && (wins || a.at < 0) ? b : a;
}
#define NEUTRAL candidate((COMPUTE)0, -1)
#if INTEGER
#define LIFT(i, place) candidate(CONVERT(COMPUTE, X, x[place]) ^ -(i64)option, i)
#else
#define LIFT(i, place) candidate(CONVERT(COMPUTE, X, x[place]) * (COMPUTE)(1 - 2 * option), i)
#endif
#define LOWER(v) ((v).at)
#endif

// What the items before this one hold together; `total`: what all of the group hold.
INLINE VALUE group_scan(LOCAL VALUE *shared, VALUE value, VALUE *total) {
  const i32 lane = LOCAL_ID(0);
  BARRIER();
  shared[lane] = value;
  BARRIER();
  for (i32 step = 1; step < 256; step *= 2) {
    VALUE v = shared[lane];
    if (lane >= step) v = join(shared[lane - step], v);
    BARRIER();
    shared[lane] = v;
    BARRIER();
  }
  *total = shared[255];
  VALUE before = NEUTRAL;
  if (lane > 0) before = shared[lane - 1];
  return before;
}

#define PARAMS                                                                                           \
  ARRAY(X, x), ARRAY(X, factors), ARRAY(Y, y), ARRAY(VALUE, carries), i64 lines, i64 size, i64 inner, i64 parts, \
      i64 length, i64 start, i64 step, i32 option
#define ARRAYS \
  AT(X, x);    \
  AT(X, factors); \
  AT(Y, y);    \
  AT(VALUE, carries)

// The result of an element whose predecessors hold `before`; moves `before` on.
#if KIND < 2
#define EMIT(i, at)                                                \
  {                                                                \
    const VALUE next_ = join(before, LIFT(i, at));                 \
    y[at] = option ? LOWER(before) : LOWER(next_);                 \
    before = next_;                                                \
  }
#else
#define EMIT(i, at)                     \
  {                                     \
    before = join(before, LIFT(i, at)); \
    y[at] = LOWER(before);              \
  }
#endif

// ---- a group a part, an item PER neighbours: where inner is 1 ----
// Written out: of a loop in a loop PoCL would make a walk across the items for each turn.
#if KIND == 2  // two numbers an item: eight would not fit in a card's registers
#define PER 4
#define EACH(do) do(0) do(1) do(2) do(3)
#else
#define PER 8
#define EACH(do) do(0) do(1) do(2) do(3) do(4) do(5) do(6) do(7)
#endif
#define TAKE(k) \
  if (first + k < end) value = join(value, LIFT(first + k, base + (first + k) * step));
#define PUT(k) \
  if (first + k < end) EMIT(first + k, base + (first + k) * step)

KERNEL(scan_totals, 256, 1)(PARAMS) {
  LOCAL_ARRAY(VALUE, shared, 256);
  ARRAYS;
  const i64 line = GROUP_ID(0) / parts, begin = GROUP_ID(0) % parts * length;
  const i64 end = begin + length < size ? begin + length : size, base = line * size + start;
  VALUE carry = NEUTRAL;
  for (i64 tile = begin; tile < end; tile += 256 * PER) {
    const i64 first = tile + LOCAL_ID(0) * PER;
    VALUE value = NEUTRAL, total;
    EACH(TAKE)
    group_scan(shared, value, &total);
    carry = join(carry, total);
  }
  if (LOCAL_ID(0) == 0) carries[GROUP_ID(0)] = carry;
}

KERNEL(scan, 256, 1)(PARAMS) {
  LOCAL_ARRAY(VALUE, shared, 256);
  ARRAYS;
  const i64 line = GROUP_ID(0) / parts, begin = GROUP_ID(0) % parts * length;
  const i64 end = begin + length < size ? begin + length : size, base = line * size + start;
  VALUE carry = NEUTRAL;
  if (parts > 1) carry = carries[GROUP_ID(0)];
  for (i64 tile = begin; tile < end; tile += 256 * PER) {
    const i64 first = tile + LOCAL_ID(0) * PER;
    VALUE value = NEUTRAL, total;
    EACH(TAKE)
    VALUE before = group_scan(shared, value, &total);
    before = join(carry, before);
    EACH(PUT)
    carry = join(carry, total);
  }
}

// ---- an item a part ----
// Neighbouring items take neighbouring lines; all parts have as many turns, so that a group keeps in step.
#define TAKE_ITEM                                                                       \
  const i64 item = GROUP_ID(0) * 256 + (i64)LOCAL_ID(0);                                \
  const i64 part = item / lines, line = item % lines, begin = part * length;            \
  const i64 base = line / inner * size * inner + line % inner + start;

KERNEL(scan_totals_items, 256, 1)(PARAMS) {
  ARRAYS;
  TAKE_ITEM
  if (part < parts) {
    VALUE value = NEUTRAL;
    for (i64 k = 0; k < length; ++k)
      if (begin + k < size) value = join(value, LIFT(begin + k, base + (begin + k) * step));
    carries[line * parts + part] = value;
  }
}

KERNEL(scan_items, 256, 1)(PARAMS) {
  ARRAYS;
  TAKE_ITEM
  if (part < parts) {
    VALUE before = NEUTRAL;
    if (parts > 1) before = carries[line * parts + part];
    for (i64 k = 0; k < length; ++k)
      if (begin + k < size) EMIT(begin + k, base + (begin + k) * step)
  }
}

// From each part's total to what comes before it, in place: an item a line.
KERNEL(scan_carries, 256, 1)(ARRAY(VALUE, carries), i64 lines, i64 parts) {
  AT(VALUE, carries);
  const i64 line = GROUP_ID(0) * 256 + (i64)LOCAL_ID(0);
  if (line < lines) {
    VALUE before = NEUTRAL;
    for (i64 p = 0; p < parts; ++p) {
      const VALUE total = carries[line * parts + p];
      carries[line * parts + p] = before;
      before = join(before, total);
    }
  }
}
// The same with a group a line, where there are few.
KERNEL(scan_carries_team, 256, 1)(ARRAY(VALUE, carries), i64 lines, i64 parts) {
  LOCAL_ARRAY(VALUE, shared, 256);
  AT(VALUE, carries);
  carries += GROUP_ID(0) * parts;
  VALUE carry = NEUTRAL;
  for (i64 tile = 0; tile < parts; tile += 256) {
    const i64 p = tile + LOCAL_ID(0);
    VALUE own = NEUTRAL, total;
    if (p < parts) own = carries[p];
    const VALUE before = group_scan(shared, own, &total);
    if (p < parts) carries[p] = join(carry, before);
    carry = join(carry, total);
  }
}
