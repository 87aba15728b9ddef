// The dialect in OpenCL C 1.2. The same names mean the same in prelude_cuda.cl.
#pragma OPENCL FP_CONTRACT OFF
#if ON_CPU
// Of loops that are no vector code after all.
#pragma clang diagnostic ignored "-Wpass-failed"
#endif
#if HAS_F64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif

typedef char i8;
typedef uchar u8;
typedef ushort u16;
typedef int i32;
typedef uint u32;
typedef long i64;
typedef ulong u64;
typedef float f32;
#if HAS_F64
typedef double f64;
#endif

// A kernel of groups of x * y work-items.
#define KERNEL(name, x, y) __kernel __attribute__((reqd_work_group_size(x, y, 1))) void name
#define INLINE static inline
#define GLOBAL __global
#define LOCAL __local
#define LOCAL_ARRAY(T, name, count) __local T name[count] __attribute__((aligned(32)))
#define UNROLL __attribute__((opencl_unroll_hint))
// An array as a kernel's parameter, and the pointer to its first element: handles have no arithmetic, so the offset
// comes beside them.
#define ARRAY(T, x) __global T *x##_base, i64 x##_skip
#define AT(T, x) __global T *x = (__global T *)((__global char *)x##_base + x##_skip)

#define BARRIER() barrier(CLK_LOCAL_MEM_FENCE)
#define LOCAL_ID(d) ((i64)get_local_id(d))
#define GROUP_ID(d) ((i64)get_group_id(d))
#define GROUPS(d) ((i64)get_num_groups(d))

#define MUL_HI(a, b) mul_hi(a, b)
#define AS_U32(x) as_uint(x)
#define AS_F32(x) as_float(x)
#define AS_I64(x) as_long(x)
#define AS_U64(x) as_ulong(x)
#define AS_F64(x) as_double(x)
#define COMPARE_EXCHANGE(p, expected, value) atomic_cmpxchg((volatile __global i32 *)(p), expected, value)
#define ATOMIC_MAX(p, value) atomic_max((volatile __global i32 *)(p), value)
#define CLZ(x) clz(x)
#define SQRT_F32(x) sqrt(x)
// Within 1 ulp unless the device rounds it; one step of Newton with the exact remainder rounds it then.
INLINE f32 rounded_sqrt(f32 x) {
  const f32 root = sqrt(x);
  return ROUNDS_SQRT || !(root > 0.0f) ? root : fma(fma(-root, root, x), 0.5f / root, root);
}
// On counters (u32) in global and in local memory.
#define ATOMIC_ADD(p, value) atomic_add((volatile __global u32 *)(p), value)
#define LOCAL_ATOMIC_ADD(p, value) atomic_add((volatile __local u32 *)(p), value)

// Four numbers, .x to .w, in local memory at multiples of their size.
typedef float4 f32x4;
typedef long4 i64x4;
#if HAS_F64
typedef double4 f64x4;
#endif
#define SPLAT4(T, value) ((PASTE(T, x4))(value))
#define LOAD4(T, p) (*(const LOCAL PASTE(T, x4) *)(p))
#define STORE4(T, p, v) *(LOCAL PASTE(T, x4) *)(p) = v
#define MULTIPLY_ADD4(T, s, v, sum) PASTE(multiply_add_, T)(s, v, sum)
INLINE f32x4 multiply_add_f32(f32 s, f32x4 v, f32x4 sum) { return fma((f32x4)(s), v, sum); }
INLINE i64x4 multiply_add_i64(i64 s, i64x4 v, i64x4 sum) {
  return as_long4(as_ulong4(sum) + (ulong4)((u64)s) * as_ulong4(v));
}
#if HAS_F64
INLINE f64x4 multiply_add_f64(f64 s, f64x4 v, f64x4 sum) { return fma((f64x4)(s), v, sum); }
#endif
