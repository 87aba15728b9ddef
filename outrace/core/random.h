// Philox4x32-10, the counter-based generator (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC'11).
// Element i of a random tensor depends only on (seed, serial, i), so any device and any number of threads gives the
// same numbers.
#pragma once
#include <array>
#include <cstdint>

namespace outrace {

// One block: four 32-bit words from a 128-bit counter and a 64-bit key.
std::array<uint32_t, 4> philox_block(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// What a random op needs: the seed of the run and how many random tensors were drawn since manual_seed.
// Block b of a tensor has the key `seed` and the counter {b low, b high, serial low, serial high}. It yields the
// elements 4b to 4b + 3 of an f32 tensor, or 2b and 2b + 1 of an f64 or integer tensor.
struct RandomState {
  uint64_t seed = 0;
  uint64_t serial = 0;
};

// Element `index` of the tensor drawn at `state`. uniform: [0, 1) with 24 random bits (f32) or 53 (f64).
float uniform_f32(RandomState state, uint64_t index);
double uniform_f64(RandomState state, uint64_t index);
// Standard normal by Box-Muller with our own log, sin, cos (no contraction), equal to the last bit on every device.
// The largest magnitude is 6.7 (f32, 32 bits below the logarithm) or 8.5 (f64, 52 bits).
float normal_f32(RandomState state, uint64_t index);
double normal_f64(RandomState state, uint64_t index);
// Integers in [low, high), unbiased enough for any range below 2^63 (multiply-high of 64 random bits).
int64_t integer_i64(RandomState state, uint64_t index, int64_t low, int64_t high);

// Elements begin <= i < end of a tensor into out[0 .. end - begin), the same bits as one by one but with each block
// drawn once. The value is low + u * (high - low), or mean + std * z, computed in the element's type; rounding may make
// it equal to `high`.
void fill_uniform(float* out, RandomState state, uint64_t begin, uint64_t end, double low, double high);
void fill_uniform(double* out, RandomState state, uint64_t begin, uint64_t end, double low, double high);
void fill_normal(float* out, RandomState state, uint64_t begin, uint64_t end, double mean, double std);
void fill_normal(double* out, RandomState state, uint64_t begin, uint64_t end, double mean, double std);
void fill_integer(int64_t* out, RandomState state, uint64_t begin, uint64_t end, int64_t low, int64_t high);

}  // namespace outrace
