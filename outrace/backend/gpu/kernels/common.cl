// The part of the dialect that is the same text in every language: conversions between dtypes, the functions that the
// rows of ops.def name, element numbers, errors.
#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#define PASTE3_(a, b, c) a##b##c
#define PASTE3(a, b, c) PASTE3_(a, b, c)

// ---- storage: bf16 and f16 are u16, bool is b8; to_of_from(v) converts ----
typedef u16 bf16;
typedef u16 f16;
typedef u8 b8;

INLINE f32 f32_of_bf16(u16 v) { return AS_F32((u32)v << 16); }
INLINE u16 bf16_of_f32(f32 v) {
  const u32 x = AS_U32(v);
  return (x & 0x7fffffffu) > 0x7f800000u ? (u16)(x >> 16 | 0x40u) : (u16)((x + 0x7fffu + (x >> 16 & 1u)) >> 16);
}
INLINE f32 f32_of_f16(u16 v) {
  const u32 sign = (u32)(v & 0x8000u) << 16, magnitude = v & 0x7fffu;
  const u32 small = AS_U32((f32)magnitude * 5.9604644775390625e-8f);  // subnormal or zero: units of 2^-24
  const u32 large = (magnitude << 13) + (magnitude >= 0x7c00u ? 224u << 23 : 112u << 23);
  return AS_F32(sign | (magnitude < 0x400u ? small : large));
}
INLINE u16 f16_of_f32(f32 v) {
  const u32 x = AS_U32(v), sign = x >> 16 & 0x8000u, magnitude = x & 0x7fffffffu;
  const u32 moved = magnitude - (112u << 23);
  u32 out = (moved + 0xfffu + (moved >> 13 & 1u)) >> 13;
  if (magnitude < 0x38800000u) {  // subnormal: the mantissa counts units of 2^(exponent - 150)
    const u32 shift = magnitude < 0x33000000u ? 24u : 126u - (magnitude >> 23);
    const u32 mantissa = (magnitude & 0x7fffffu) | 0x800000u, half_unit = 1u << (shift - 1u);
    out = magnitude < 0x33000000u ? 0u : (mantissa + half_unit - 1u + (mantissa >> shift & 1u)) >> shift;
  }
  if (magnitude >= 0x47800000u) out = 0x7c00u;
  if (magnitude > 0x7f800000u) out = 0x7e00u | (magnitude >> 13 & 0x3ffu);
  return (u16)(sign | out);
}

INLINE f32 f32_of_f32(f32 v) { return v; }
INLINE f32 f32_of_i32(i32 v) { return (f32)v; }
INLINE f32 f32_of_i64(i64 v) { return (f32)v; }
INLINE f32 f32_of_u8(u8 v) { return (f32)v; }
INLINE f32 f32_of_b8(u8 v) { return (f32)(v != 0); }
INLINE i64 i64_of_i64(i64 v) { return v; }
INLINE i64 i64_of_i32(i32 v) { return (i64)v; }
INLINE i64 i64_of_u8(u8 v) { return (i64)v; }
INLINE i64 i64_of_b8(u8 v) { return (i64)(v != 0); }
INLINE i32 i32_of_i64(i64 v) { return (i32)v; }
INLINE i32 i32_of_i32(i32 v) { return v; }
INLINE u8 u8_of_i64(i64 v) { return (u8)v; }
INLINE u8 b8_of_i64(i64 v) { return (u8)(v != 0); }
INLINE u8 b8_of_f32(f32 v) { return (u8)(v != 0.0f); }
INLINE u16 bf16_of_i64(i64 v) { return bf16_of_f32((f32)v); }
INLINE u16 f16_of_i64(i64 v) { return f16_of_f32((f32)v); }
// Floats to integers are cut towards 0 and end at the bounds; NaN gives 0. `high` is the first number too large.
#define TRUNCATE_(to, from, low, high, largest) \
  INLINE to to##_of_##from(from v) { return v >= high ? largest : v >= low ? (to)v : v < low ? (to)low : (to)0; }
#define I64_LARGEST ((i64)(~(u64)0 >> 1))
TRUNCATE_(i64, f32, -9223372036854775808.0f, 9223372036854775808.0f, I64_LARGEST)
TRUNCATE_(i32, f32, -2147483648.0f, 2147483648.0f, 2147483647)
TRUNCATE_(u8, f32, 0.0f, 256.0f, 255)
INLINE i64 i64_of_bf16(u16 v) { return i64_of_f32(f32_of_bf16(v)); }
INLINE i64 i64_of_f16(u16 v) { return i64_of_f32(f32_of_f16(v)); }
#if HAS_F64
INLINE f64 f64_of_f64(f64 v) { return v; }
INLINE f64 f64_of_f32(f32 v) { return (f64)v; }
INLINE f64 f64_of_bf16(u16 v) { return (f64)f32_of_bf16(v); }
INLINE f64 f64_of_f16(u16 v) { return (f64)f32_of_f16(v); }
INLINE f64 f64_of_i64(i64 v) { return (f64)v; }
INLINE f64 f64_of_i32(i32 v) { return (f64)v; }
INLINE f64 f64_of_u8(u8 v) { return (f64)v; }
INLINE f64 f64_of_b8(u8 v) { return (f64)(v != 0); }
INLINE f32 f32_of_f64(f64 v) { return (f32)v; }
INLINE u16 bf16_of_f64(f64 v) { return bf16_of_f32((f32)v); }
INLINE u16 f16_of_f64(f64 v) { return f16_of_f32((f32)v); }
TRUNCATE_(i64, f64, -9223372036854775808.0, 9223372036854775808.0, I64_LARGEST)
TRUNCATE_(i32, f64, -2147483648.0, 2147483648.0, 2147483647)
TRUNCATE_(u8, f64, 0.0, 256.0, 255)
INLINE u8 b8_of_f64(f64 v) { return (u8)(v != 0.0); }
#endif

// The same with types that may be macros: CONVERT(COMPUTE, STORED, x[i]).
#define CONVERT(to, from, v) PASTE3(to, _of_, from)(v)

// ---- the functions of ops.def ----
#define F32_INFINITY AS_F32(0x7f800000u)
#define F32_NAN AS_F32(0x7fc00000u)
#define FUNCTIONS_(T) \
  INLINE T select_##T(i32 c, T x, T z) { return c ? x : z; } \
  /* A NaN wins, and of two equal numbers (0 and -0) the second. */ \
  INLINE T max_##T(T x, T z) { return x != x ? x : x > z ? x : z; } \
  INLINE T min_##T(T x, T z) { return x != x ? x : x < z ? x : z; }
#define FLOAT_FUNCTIONS_(T) \
  INLINE T abs_##T(T x) { return fabs(x); } \
  INLINE T floor_##T(T x) { return floor(x); } \
  INLINE T ceil_##T(T x) { return ceil(x); } \
  INLINE T round_##T(T x) { return rint(x); } \
  INLINE T trunc_##T(T x) { return trunc(x); } \
  INLINE T copysign_##T(T x, T z) { return copysign(x, z); } \
  INLINE T exp2_##T(T x) { return exp2(x); } \
  INLINE T expm1_##T(T x) { return expm1(x); } \
  INLINE T log_##T(T x) { return log(x); } \
  INLINE T log2_##T(T x) { return log2(x); } \
  INLINE T log1p_##T(T x) { return log1p(x); } \
  INLINE T sin_##T(T x) { return sin(x); } \
  INLINE T cos_##T(T x) { return cos(x); } \
  INLINE T tan_##T(T x) { return tan(x); } \
  INLINE T asin_##T(T x) { return asin(x); } \
  INLINE T acos_##T(T x) { return acos(x); } \
  INLINE T atan_##T(T x) { return atan(x); } \
  INLINE T sinh_##T(T x) { return sinh(x); } \
  INLINE T cosh_##T(T x) { return cosh(x); } \
  INLINE T tanh_##T(T x) { return tanh(x); } \
  INLINE T erf_##T(T x) { return erf(x); } \
  INLINE T erfc_##T(T x) { return erfc(x); } \
  INLINE T atan2_##T(T x, T z) { return atan2(x, z); } \
  INLINE T pow_##T(T x, T z) { return pow(x, z); } \
  INLINE T fmod_##T(T x, T z) { return fmod(x, z); }
FUNCTIONS_(f32)
FUNCTIONS_(i64)
FLOAT_FUNCTIONS_(f32)
INLINE f32 sqrt_f32(f32 x) { return SQRT_F32(x); }
// 2^n for a whole number n in the range of normal exponents: 1.5 * 2^23 + 127 leaves n + 127 in the low bits.
INLINE f32 power_of_two(f32 n) { return AS_F32(AS_U32(n + 12583039.0f) << 23); }
// The CPU's, step by step (cpu/simd_math.h): without branches, so that work-items run side by side on CPU devices too.
INLINE f32 exp_f32(f32 number) {
  const f32 high = number > 89.0f ? 89.0f : number, x = high < -104.0f ? -104.0f : high;  // NaN stays
  const f32 n = fma(x, 1.44269504088896340736f, 12582912.0f) - 12582912.0f;
  const f32 r = fma(-n, -2.12194440e-4f, fma(-n, 0.693359375f, x));
  const f32 z = r * r;
  const f32 low = fma(fma(1.0f / 120.0f, r, 1.0f / 24.0f), z, fma(1.0f / 6.0f, r, 0.5f));
  const f32 p = fma(fma(1.0f / 5040.0f, r, 1.0f / 720.0f), z * z, low);
  const f32 y = 1.0f + fma(z, p, r);
  // In two factors, so that both are normal where the result is subnormal or infinite.
  const f32 some = (n * 0.5f + 12582912.0f) - 12582912.0f;
  return y * power_of_two(some) * power_of_two(n - some);
}
#if HAS_F64
FUNCTIONS_(f64)
FLOAT_FUNCTIONS_(f64)
INLINE f64 sqrt_f64(f64 x) { return sqrt(x); }
INLINE f64 exp_f64(f64 x) { return exp(x); }
#endif
INLINE f32 add_f32(f32 x, f32 z) { return x + z; }
INLINE i64 add_i64(i64 x, i64 z) { return (i64)((u64)x + (u64)z); }
#if HAS_F64
INLINE f64 add_f64(f64 x, f64 z) { return x + z; }
#endif
INLINE i64 abs_i64(i64 x) { return x < 0 ? (i64)(0 - (u64)x) : x; }
INLINE i64 floor_i64(i64 x) { return x; }
INLINE i64 ceil_i64(i64 x) { return x; }
INLINE i64 round_i64(i64 x) { return x; }
INLINE i64 trunc_i64(i64 x) { return x; }
INLINE i64 fmod_i64(i64 x, i64 z) { return z == 0 || z == -1 ? 0 : x % z; }

// ---- element numbers ----
// n / d for n < 2^31, with d's {multiplier, shift << 32} from the host (Granlund and Montgomery).
INLINE u32 div_by(u32 n, i64 magic) { return ((u32)((u64)n * (u32)magic >> 32) + n) >> (u32)(magic >> 32); }

// ---- scalars of a plan: 16 bytes each {i64 or f64, f32} ----
INLINE i64 scalar_i64(const GLOBAL i64 *s) { return s[0]; }
INLINE f32 scalar_f32(const GLOBAL i64 *s) { return ((const GLOBAL f32 *)(s + 1))[0]; }
#if HAS_F64
INLINE f64 scalar_f64(const GLOBAL i64 *s) { return ((const GLOBAL f64 *)s)[0]; }
#endif

// ---- errors: the first report since the last look wins; status is {number, value, at} ----
INLINE void report(GLOBAL i64 *status, i32 number, i64 value, i64 at) {
  if (COMPARE_EXCHANGE((GLOBAL i32 *)status, 0, number) != 0) return;
  status[1] = value;
  status[2] = at;
}
// An index read at `position`, or -1 if it does not lie below `size`; `reports`: whether this item says so.
INLINE i64 checked_entry(i64 index, i64 size, i64 position, i32 reports, GLOBAL i64 *status, i32 number) {
  if (index >= 0 && index < size) return index;
  if (reports) report(status, number, index, position);
  return -1;
}

// ---- groups ----
#define ADD(a, b) ((a) + (b))
// A function by which the values of a group's 256 items become one, in a fixed tree; every item gets it.
#define GROUP_FOLD(name, T, combine) \
  INLINE T name(LOCAL T *shared, T value) { \
    const i32 lane = LOCAL_ID(0); \
    BARRIER(); \
    shared[lane] = value; \
    BARRIER(); \
    for (i32 step = 128; step > 0; step /= 2) { \
      if (lane < step) shared[lane] = combine(shared[lane], shared[lane + step]); \
      BARRIER(); \
    } \
    return shared[0]; \
  }

// ---- lanes: the 256 work-items of a group, or on CPU devices the turns of an inner loop of the group's only item,
// which compilers make vector code of. What a lane keeps from one loop to the next is a LANE_ARRAY. ----
#if ON_CPU
#define LANES_KERNEL(name) KERNEL(name, 1, 1)
#define FOR_LANES(lane, count) \
  _Pragma("clang loop vectorize(assume_safety)") for (i64 lane = 0, lane##_end = (count) < 256 ? (count) : 256; \
                                                      lane < lane##_end; ++lane)
#define LANE_ARRAY(T, x) T x[256]
#define OF_LANE(x, lane) x[lane]
// The same tree as GROUP_FOLD's.
#define LANE_FOLD(name, T, combine) \
  INLINE T name(LOCAL T *shared, T *values) { \
    for (i32 step = 128; step > 0; step /= 2) \
      for (i32 i = 0; i < step; ++i) values[i] = combine(values[i], values[i + step]); \
    return values[0]; \
  }
#else
#define LANES_KERNEL(name) KERNEL(name, 256, 1)
#define FOR_LANES(lane, count) for (i64 lane = LOCAL_ID(0), lane##_in = lane < (count); lane##_in; lane##_in = 0)
#define LANE_ARRAY(T, x) T x[1]
#define OF_LANE(x, lane) x[0]
#define LANE_FOLD(name, T, combine) \
  GROUP_FOLD(name##_items, T, combine) \
  INLINE T name(LOCAL T *shared, const T *values) { return name##_items(shared, values[0]); }
#endif
