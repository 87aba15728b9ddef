// The dialect in CUDA C++ as NVRTC reads it, without headers. The same names mean the same in prelude_opencl.cl.
typedef signed char i8;
typedef unsigned char u8;
typedef unsigned short u16;
typedef int i32;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;
typedef float f32;
typedef double f64;

#define KERNEL(name, x, y) extern "C" __global__ void __launch_bounds__((x) * (y)) name
#define INLINE static __device__ __forceinline__
#define GLOBAL
#define LOCAL
#define LOCAL_ARRAY(T, name, count) __shared__ __align__(16) T name[count]
#define UNROLL _Pragma("unroll")
#define ARRAY(T, x) T *x##_base, i64 x##_skip
#define AT(T, x) T *x = (T *)((char *)x##_base + x##_skip)

#define BARRIER() __syncthreads()
#define LOCAL_ID(d) ((i64)(d == 0 ? threadIdx.x : d == 1 ? threadIdx.y : threadIdx.z))
#define GROUP_ID(d) ((i64)(d == 0 ? blockIdx.x : d == 1 ? blockIdx.y : blockIdx.z))
#define GROUPS(d) ((i64)(d == 0 ? gridDim.x : d == 1 ? gridDim.y : gridDim.z))

INLINE u32 MUL_HI(u32 a, u32 b) { return __umulhi(a, b); }
INLINE u64 MUL_HI(u64 a, u64 b) { return __umul64hi(a, b); }
#define AS_U32(x) ((u32)__float_as_int(x))
#define AS_F32(x) __int_as_float((i32)(x))
#define AS_I64(x) __double_as_longlong(x)
#define AS_U64(x) ((u64)__double_as_longlong(x))
#define AS_F64(x) __longlong_as_double((i64)(x))
#define COMPARE_EXCHANGE(p, expected, value) atomicCAS((i32 *)(p), expected, value)
#define CLZ(x) __clz((i32)(x))
#define SQRT_F32(x) __fsqrt_rn(x)
INLINE f32 rounded_sqrt(f32 x) { return __fsqrt_rn(x); }

// Four numbers, .x to .w, in local memory at multiples of 16 bytes.
#define VECTOR4_(T) \
  struct __align__(16) T##x4 { \
    T x, y, z, w; \
  }; \
  INLINE T##x4 splat_##T(T v) { \
    const T##x4 out = {v, v, v, v}; \
    return out; \
  }
VECTOR4_(f32)
VECTOR4_(f64)
VECTOR4_(i64)
#define SPLAT4(T, value) PASTE(splat_, T)(value)
#define LOAD4(T, p) (*(const PASTE(T, x4) *)(p))
#define STORE4(T, p, v) *(PASTE(T, x4) *)(p) = v
#define MULTIPLY_ADD4(T, s, v, sum) PASTE(multiply_add_, T)(s, v, sum)
#define MULTIPLY_ADD_(T, one) \
  INLINE T##x4 multiply_add_##T(T s, T##x4 v, T##x4 sum) { \
    const T##x4 out = {one(s, v.x, sum.x), one(s, v.y, sum.y), one(s, v.z, sum.z), one(s, v.w, sum.w)}; \
    return out; \
  }
INLINE i64 wrapping_fma(i64 x, i64 y, i64 sum) { return (i64)((u64)sum + (u64)x * (u64)y); }
MULTIPLY_ADD_(f32, fma)
MULTIPLY_ADD_(f64, fma)
MULTIPLY_ADD_(i64, wrapping_fma)
