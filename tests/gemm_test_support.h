// Arrays that end at a page nobody may touch, and an epilogue that writes down what it was handed.
#pragma once
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "outrace/backend/cpu/gemm.h"
#include "outrace/backend/cpu/gemm_kernels.h"

namespace outrace::cpu {

// `size` numbers whose last one ends a page; the next page is forbidden, the bytes before the first hold a pattern.
template <class T>
class EdgeArray {
 public:
  EdgeArray() = default;
  explicit EdgeArray(int64_t size) : size_(size) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE)), bytes = static_cast<size_t>(size) * sizeof(T);
    bytes_ = (bytes + kGuard + page - 1) / page * page + page;
    void* p = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) std::abort();
    base_ = static_cast<unsigned char*>(p);
    if (mprotect(base_ + bytes_ - page, page, PROT_NONE) != 0) std::abort();
    data_ = reinterpret_cast<T*>(base_ + bytes_ - page - bytes);
    std::memset(reinterpret_cast<unsigned char*>(data_) - kGuard, kPattern, kGuard);
  }
  EdgeArray(EdgeArray&& other) noexcept { swap(other); }
  EdgeArray& operator=(EdgeArray&& other) noexcept {
    swap(other);
    return *this;
  }
  ~EdgeArray() {
    if (base_ != nullptr) munmap(base_, bytes_);
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  int64_t size() const { return size_; }
  bool intact() const {
    const unsigned char* guard = reinterpret_cast<const unsigned char*>(data_) - kGuard;
    return std::all_of(guard, guard + kGuard, [](unsigned char c) { return c == kPattern; });
  }

 private:
  static constexpr size_t kGuard = 256;
  static constexpr unsigned char kPattern = 0xff;  // as numbers: NaN
  void swap(EdgeArray& other) {
    std::swap(size_, other.size_), std::swap(bytes_, other.bytes_), std::swap(base_, other.base_),
        std::swap(data_, other.data_);
  }

  int64_t size_ = 0;
  size_t bytes_ = 0;
  unsigned char* base_ = nullptr;
  T* data_ = nullptr;
};

// Called from several threads, but each element only once, so nothing is written by two.
template <class T>
class Collector {
 public:
  Collector(int64_t count, int64_t batch)
      : count_(count), values_(static_cast<size_t>(count * batch)), times_(static_cast<size_t>(count * batch)) {}

  static void collect(const void* context, const GemmBlock<T>& block) {
    auto& self = *const_cast<Collector*>(static_cast<const Collector*>(context));
    if (block.rows < 1 || block.length < 1 || block.rows * block.length > kGemmBlock) self.too_large_ = true;
    for (int64_t r = 0; r < block.rows; ++r)
      for (int64_t i = 0; i < block.length; ++i) {
        const auto at = static_cast<size_t>(block.batch * self.count_ + block.index + r * block.index_stride + i);
        self.values_.at(at) = block.tile[r * block.tile_stride + i];
        ++self.times_.at(at);
      }
  }

  bool each_once() const {
    return !too_large_ && std::all_of(times_.begin(), times_.end(), [](unsigned char n) { return n == 1; });
  }
  const std::vector<T>& values() const { return values_; }

 private:
  int64_t count_;
  std::vector<T> values_;
  std::vector<unsigned char> times_;
  bool too_large_ = false;
};

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

}  // namespace outrace::cpu
