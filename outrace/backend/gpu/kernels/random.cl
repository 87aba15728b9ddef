// Random numbers equal to core/random.cpp's to the last bit: only + - * /, correctly rounded square roots, shifts and
// comparisons. An item draws a block of Philox4x32-10: four f32 numbers, or two of f64 or i64.
// OUT (stored type), DRAWN (f32, f64 or i64), NORMAL.
typedef struct {
  u32 w[4];
} block_words;

INLINE block_words philox(u64 block, u64 serial, u64 seed) {
  u32 c0 = (u32)block, c1 = (u32)(block >> 32), c2 = (u32)serial, c3 = (u32)(serial >> 32);
  u32 key0 = (u32)seed, key1 = (u32)(seed >> 32);
  for (i32 round = 0; round < 10; ++round) {
    const u32 high0 = MUL_HI(0xD2511F53u, c0), low0 = 0xD2511F53u * c0;
    const u32 high1 = MUL_HI(0xCD9E8D57u, c2), low1 = 0xCD9E8D57u * c2;
    c0 = high1 ^ c1 ^ key0;
    c1 = low1;
    c2 = high0 ^ c3 ^ key1;
    c3 = low0;
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  block_words out;
  out.w[0] = c0;
  out.w[1] = c1;
  out.w[2] = c2;
  out.w[3] = c3;
  return out;
}

INLINE u64 join(u32 low, u32 high) { return (u64)high << 32 | low; }

#define IS_f32 1
#define IS_f64 2
#define IS_i64 3
#define KIND PASTE(IS_, DRAWN)

#if KIND == 1
#define PER_BLOCK 4
// log(x) for normal x in (0, 1]; coefficients of Cephes' logf.
INLINE f32 log_of(f32 x) {
  const u32 shifted = AS_U32(x) - 0x3f3504f3u;
  const f32 e = (f32)((i32)shifted >> 23);
  const f32 f = AS_F32((shifted & 0x7fffffu) + 0x3f3504f3u) - 1.0f;
  const f32 z = f * f;
  f32 p = 7.0376836292e-2f;
  p = p * f - 1.1514610310e-1f;
  p = p * f + 1.1676998740e-1f;
  p = p * f - 1.2420140846e-1f;
  p = p * f + 1.4249322787e-1f;
  p = p * f - 1.6668057665e-1f;
  p = p * f + 2.0000714765e-1f;
  p = p * f - 2.4999993993e-1f;
  p = p * f + 3.3333331174e-1f;
  const f32 tail = (f * z * p + e * -2.12194440e-4f) - 0.5f * z;
  return (f + tail) + e * 0.693359375f;
}
INLINE void two_normals(u32 a, u32 b, f32 *z) {
  const f32 u = ((f32)(i32)(a >> 1) + 0.5f) * 4.656612873077392578125e-10f;  // 2^-31
  const f32 radius = rounded_sqrt(-2.0f * log_of(u));
  const u32 quarter = (b + (1u << 29)) >> 30;
  const f32 x = (f32)(i32)(b - (quarter << 30)) * 1.46291807926716e-9f;  // pi/2 / 2^30
  const f32 t = x * x;
  // Cephes' sinf and cosf.
  const f32 sine = ((-1.9515295891e-4f * t + 8.3321608736e-3f) * t - 1.6666654611e-1f) * t * x + x;
  const f32 cosine =
      ((2.443315711809948e-5f * t - 1.388731625493765e-3f) * t + 4.166664568298827e-2f) * t * t - 0.5f * t + 1.0f;
  const u32 s = AS_U32(sine), c = AS_U32(cosine);
  const u32 swap = (s ^ c) & (0u - (quarter & 1u));
  z[0] = radius * AS_F32(c ^ swap ^ ((quarter + 1u) & 2u) << 30);
  z[1] = radius * AS_F32(s ^ swap ^ (quarter & 2u) << 30);
}
INLINE void draw(block_words block, f32 a, f32 b, f32 *out) {
#if NORMAL
  two_normals(block.w[0], block.w[1], out);
  two_normals(block.w[2], block.w[3], out + 2);
  for (i32 j = 0; j < 4; ++j) out[j] = a + b * out[j];
#else
  for (i32 j = 0; j < 4; ++j) out[j] = a + (f32)(i32)(block.w[j] >> 8) * 5.9604644775390625e-8f * b;  // 2^-24
#endif
}
#elif KIND == 2
#define PER_BLOCK 2
// log(x) for normal x in (0, 1]; the method and coefficients of fdlibm's e_log.c.
INLINE f64 log_of(f64 x) {
  const u64 shifted = AS_U64(x) - 0x3fe6a09e667f3bcdUL;
  const f64 e = (f64)(i32)((i64)shifted >> 52);
  const f64 f = AS_F64((shifted & 0xfffffffffffffUL) + 0x3fe6a09e667f3bcdUL) - 1.0;
  const f64 s = f / (2.0 + f);
  const f64 z = s * s;
  const f64 w = z * z;
  const f64 even = w * (3.999999999940941908e-01 + w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01));
  const f64 odd =
      z * (6.666666666666735130e-01 +
           w * (2.857142874366239149e-01 + w * (1.818357216161805012e-01 + w * 1.479819860511658591e-01)));
  const f64 middle = 0.5 * f * f;
  return e * 6.93147180369123816490e-01 -
         ((middle - (s * (middle + (even + odd)) + e * 1.90821492927058770002e-10)) - f);
}
INLINE void draw(block_words block, f64 a, f64 b, f64 *out) {
  const u64 first = join(block.w[0], block.w[1]), second = join(block.w[2], block.w[3]);
#if NORMAL
  const f64 u = 2.0 - AS_F64(first >> 12 | 0x3ff0000000000000UL);
  const f64 radius = sqrt(-2.0 * log_of(u));
  const u64 quarter = (second + ((u64)1 << 61)) >> 62;
  const f64 x = (f64)(i64)(second - (quarter << 62)) * 3.40612158008655459e-19;  // pi/2 / 2^62
  const f64 t = x * x;
  // fdlibm's k_sin.c and k_cos.c.
  const f64 sine_tail =
      8.33333333332248946124e-03 +
      t * (-1.98412698298579493134e-04 +
           t * (2.75573137070700676789e-06 + t * (-2.50507602534068634195e-08 + t * 1.58969099521155010221e-10)));
  const f64 sine = x + (t * x) * (-1.66666666666666324348e-01 + t * sine_tail);
  const f64 cosine_tail = t * (4.16666666666666019037e-02 +
                               t * (-1.38888888888741095749e-03 +
                                    t * (2.48015872894767294178e-05 +
                                         t * (-2.75573143513906633035e-07 +
                                              t * (2.08757232129817482790e-09 + t * -1.13596475577881948265e-11)))));
  const f64 middle = 0.5 * t;
  const f64 leading = 1.0 - middle;
  const f64 cosine = leading + (((1.0 - leading) - middle) + t * cosine_tail);
  const u64 s = AS_U64(sine), c = AS_U64(cosine);
  const u64 swap = (s ^ c) & ((u64)0 - (quarter & 1u));
  out[0] = a + b * (radius * AS_F64(c ^ swap ^ ((quarter + 1u) & 2u) << 62));
  out[1] = a + b * (radius * AS_F64(s ^ swap ^ (quarter & 2u) << 62));
#else
  out[0] = a + (f64)(i64)(first >> 11) * 1.1102230246251565404e-16 * b;  // 2^-53
  out[1] = a + (f64)(i64)(second >> 11) * 1.1102230246251565404e-16 * b;
#endif
}
#else
#define PER_BLOCK 2
// a <= i < a + b
INLINE void draw(block_words block, i64 a, i64 b, i64 *out) {
  for (i32 j = 0; j < 2; ++j)
    out[j] = (i64)((u64)a + MUL_HI(join(block.w[2 * j], block.w[2 * j + 1]), (u64)b));
}
#endif

// a, b: uniform: low and span; normal: mean and deviation; integers: low and how many.
KERNEL(random, 256, 1)(ARRAY(OUT, out), i64 count, ARRAY(i64, seed), ARRAY(i64, serial), DRAWN a, DRAWN b) {
  AT(OUT, out);
  AT(i64, seed);
  AT(i64, serial);
  const i64 block = GROUP_ID(0) * 256 + (i64)LOCAL_ID(0);
  DRAWN drawn[PER_BLOCK];
  draw(philox((u64)block, (u64)scalar_i64(serial), (u64)scalar_i64(seed)), a, b, drawn);
  for (i32 j = 0; j < PER_BLOCK; ++j) {
    const i64 i = block * PER_BLOCK + j;
    if (i < count) out[i] = CONVERT(OUT, DRAWN, drawn[j]);
  }
}
