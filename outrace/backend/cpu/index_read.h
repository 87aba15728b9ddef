// How index kernels read their indices: in pieces, as i64, with those out of range found on the way.
#pragma once
#include <atomic>
#include <limits>

#include "outrace/backend/cpu/index.h"

namespace outrace::cpu {

constexpr int64_t kIndexPiece = 512;  // read at once: 4 KB, in L1
// Elements worth a task of their own: some 10 us of scattered reads.
constexpr int64_t kIndexTask = 16 * 1024;
constexpr int64_t kIndexTaskBytes = 128 * 1024;

class IndexReader {
 public:
  IndexReader(const IndexCall& call, const void* index)
      : call_(call), index_(index), size_(call.array[static_cast<int>(call.attrs.axis)]) {}

  // Indices first .. first + count - 1, at most kIndexPiece of them. False if one is out of range: `at` is of no use.
  bool read(int64_t first, int64_t count, int64_t* at) {
    const bool good = call_.index_dtype == DType::i32 ? copy(static_cast<const int32_t*>(index_) + first, count, at)
                                                      : copy(static_cast<const int64_t*>(index_) + first, count, at);
    if (!good) bad_.store(true, std::memory_order_relaxed);
    return good;
  }

  // Throws if any read() found one out of range. On the calling thread, after all reads.
  void throw_if_bad() const;
  // Checks all of them.
  void check_all();

 private:
  template <class I>
  bool copy(const I* from, int64_t count, int64_t* at) const {
    uint64_t wrong = 0;
    for (int64_t i = 0; i < count; ++i) {
      const auto v = static_cast<int64_t>(from[i]);
      at[i] = v;
      wrong |= static_cast<uint64_t>(v) >= static_cast<uint64_t>(size_);
    }
    return wrong == 0;
  }

  const IndexCall& call_;
  const void* index_;
  int64_t size_;
  std::atomic<bool> bad_{false};
};

}  // namespace outrace::cpu
