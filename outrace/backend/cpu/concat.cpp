#include "outrace/backend/cpu/concat.h"

#include <algorithm>
#include <cstring>

#include "outrace/backend/cpu/tile_kernels.h"
#include "outrace/core/cpu_info.h"
#include "outrace/core/thread.h"

namespace outrace::cpu {
namespace {

constexpr int64_t kTaskBytes = 128 * 1024;    // some 10 us
constexpr int64_t kFoldTask = 16 * 1024;      // elements
constexpr int64_t kStreamedPiece = 4 * 1024;  // shorter ones are not worth going past the caches
constexpr int64_t kUnknownCache = int64_t{8} << 20;

// Many small pieces: the size of one is known where it is copied.
template <class U>
void copy_pieces(const CatPart& p, int64_t rows, int64_t first, char* to, int64_t to_step) {
  const char* from = p.data + first * p.row_step;
  for (int64_t r = 0; r < rows; ++r) {
    U value;
    std::memcpy(&value, from + r * p.row_step, sizeof(U));
    std::memcpy(to + r * to_step, &value, sizeof(U));
  }
}

void copy_rows(const CatPart& p, int64_t rows, int64_t first, char* to, int64_t to_step, bool streamed) {
  switch (p.bytes) {
    case 1: return copy_pieces<uint8_t>(p, rows, first, to, to_step);
    case 2: return copy_pieces<uint16_t>(p, rows, first, to, to_step);
    case 4: return copy_pieces<uint32_t>(p, rows, first, to, to_step);
    case 8: return copy_pieces<uint64_t>(p, rows, first, to, to_step);
    default: break;
  }
  for (int64_t r = 0; r < rows; ++r) {
    const char* from = p.data + (first + r) * p.row_step;
    if (streamed && p.bytes >= kStreamedPiece)
      tile_move_kernels().stream(to + r * to_step, from, p.bytes);
    else
      std::memcpy(to + r * to_step, from, static_cast<size_t>(p.bytes));
  }
}

template <class T, class Sum>
void fold_as(const FoldCall& c, const T* windows, T* out) {
  // A task takes some entries of one [size, inner] plane.
  const int64_t entries = std::max<int64_t>(1, kFoldTask / std::max<int64_t>(c.inner, 1));
  const int64_t groups = ceil_div(c.size, entries);
  parallel_for(c.outer * groups, [&](int64_t task) {
    const int64_t o = task / groups, first = task % groups * entries, last = std::min(first + entries, c.size);
    const T* from = windows + o * c.count * c.inner * c.length;
    for (int64_t p = first; p < last; ++p) {
      // Windows w with w * step <= p < w * step + length.
      const int64_t begin = p < c.length ? 0 : (p - c.length) / c.step + 1;
      const int64_t end = std::min(p / c.step + 1, c.count);
      for (int64_t i = 0; i < c.inner; ++i) {
        Sum sum{};
        for (int64_t w = begin; w < end; ++w)
          sum = static_cast<Sum>(sum + static_cast<Sum>(from[(w * c.inner + i) * c.length + p - w * c.step]));
        out[(o * c.size + p) * c.inner + i] = static_cast<T>(sum);
      }
    }
  });
}

}  // namespace

void concat(std::span<const CatPart> parts, int64_t rows, void* out) {
  int64_t whole = 0;
  for (const CatPart& p : parts) whole += p.bytes;
  if (whole == 0 || rows == 0) return;
  const int64_t half_cache = cpu_info().l3_bytes > 0 ? cpu_info().l3_bytes / 2 : kUnknownCache;
  const bool streamed = whole > half_cache / rows;
  char* to = static_cast<char*>(out);
  // Several rows a task, or several tasks a row.
  const int64_t together = std::max<int64_t>(1, kTaskBytes / whole);
  const int64_t cuts = whole > 2 * kTaskBytes ? ceil_div(whole, kTaskBytes) : 1;
  parallel_for(ceil_div(rows, together) * cuts, [&](int64_t task) {
    const int64_t first = task / cuts * together, last = std::min(first + together, rows);
    const int64_t begin = cuts > 1 ? task % cuts * kTaskBytes : 0;
    const int64_t end = cuts > 1 ? std::min(begin + kTaskBytes, whole) : whole;
    int64_t at = 0;
    for (const CatPart& p : parts) {
      const int64_t from = std::max(begin, at), until = std::min(end, at + p.bytes);
      if (from < until) {
        const CatPart piece{p.data + (from - at), until - from, p.row_step};
        copy_rows(piece, last - first, first, to + first * whole + from, whole, streamed);
      }
      at += p.bytes;
    }
    if (streamed) tile_move_kernels().fence();
  });
}

void fold(const FoldCall& c, const void* windows, void* out) {
  if (c.outer * c.size * c.inner == 0) return;
  visit_dtype(c.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* from = static_cast<const T*>(windows);
    T* to = static_cast<T*>(out);
    if constexpr (is_float(dtype_of<T>()) && sizeof(T) == 2)
      fold_as<T, float>(c, from, to);
    else if constexpr (std::is_same_v<T, int32_t> || std::is_same_v<T, int64_t>)
      fold_as<T, uint64_t>(c, from, to);
    else
      fold_as<T, T>(c, from, to);
  });
}

}  // namespace outrace::cpu
