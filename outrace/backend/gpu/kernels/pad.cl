// x put into a larger array, all else `fill`: along axis n, entry k of x goes to start + k * step. MOVED: an unsigned
// type; INDEX; AXES: the axes, innermost first; STEPS: whether any step is not 1.
#define AXIS_PARAMS(n) , i64 to##n, i64 magic##n, i64 from##n, i64 start##n, i64 step##n
#if STEPS
#define ENTRY(n) \
  inside &= distance % step##n == 0; \
  const i64 entry = distance / step##n;
#else
#define ENTRY(n) const i64 entry = distance;
#endif
#define TAKE_AXIS(n) \
  { \
    const INDEX q = DIVIDE(rest, (INDEX)to##n, magic##n); \
    const i64 distance = (i64)(rest - q * (INDEX)to##n) - start##n; \
    rest = q; \
    ENTRY(n) \
    inside &= entry >= 0 && entry < from##n; \
    at += entry * stride; \
    stride *= from##n; \
  }
#define PARAMS_1 AXIS_PARAMS(0)
#define PARAMS_2 PARAMS_1 AXIS_PARAMS(1)
#define PARAMS_3 PARAMS_2 AXIS_PARAMS(2)
#define PARAMS_4 PARAMS_3 AXIS_PARAMS(3)
#define PARAMS_5 PARAMS_4 AXIS_PARAMS(4)
#define PARAMS_6 PARAMS_5 AXIS_PARAMS(5)
#define PARAMS_7 PARAMS_6 AXIS_PARAMS(6)
#define PARAMS_8 PARAMS_7 AXIS_PARAMS(7)
#define TAKE_1 TAKE_AXIS(0)
#define TAKE_2 TAKE_1 TAKE_AXIS(1)
#define TAKE_3 TAKE_2 TAKE_AXIS(2)
#define TAKE_4 TAKE_3 TAKE_AXIS(3)
#define TAKE_5 TAKE_4 TAKE_AXIS(4)
#define TAKE_6 TAKE_5 TAKE_AXIS(5)
#define TAKE_7 TAKE_6 TAKE_AXIS(6)
#define TAKE_8 TAKE_7 TAKE_AXIS(7)

KERNEL(pad, 256, 1)(ARRAY(MOVED, x), ARRAY(MOVED, y), i64 count, i64 fill PASTE(PARAMS_, AXES)) {
  AT(MOVED, x);
  AT(MOVED, y);
  const INDEX i = (INDEX)GROUP_ID(0) * 256 + (INDEX)LOCAL_ID(0);
  if (i < (INDEX)count) {
    INDEX rest = i;
    i32 inside = 1;
    i64 at = 0, stride = 1;
    PASTE(TAKE_, AXES)
    y[i] = inside ? x[at] : (MOVED)fill;
  }
}
