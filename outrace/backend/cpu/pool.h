// Memory for buffers on the CPU. A freed block waits for the next request of its size, so that a training step asks the
// system for nothing; what waits is bounded, and is given back before a request fails.
#pragma once
#include <cstdint>
#include <mutex>
#include <unordered_map>

namespace outrace::cpu {

class Pool {
 public:
  // limit: bytes in use and waiting together; most_cached: bytes waiting.
  Pool(int64_t limit, int64_t most_cached) : limit_(limit), most_cached_(most_cached) {}
  ~Pool() { release_cached(); }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // 64-byte aligned, never null, also for 0 bytes. Throws Error(memory) that says what was asked, is in use and is the
  // limit.
  void* allocate(int64_t bytes);
  void free(void* block, int64_t bytes);  // `bytes` as they were asked for
  void release_cached();

  struct Usage {
    int64_t in_use = 0, cached = 0, most_in_use = 0;  // bytes, sizes rounded up
  };
  Usage usage() const;

  // Blocks are multiples of a cache line, large ones of a page.
  static int64_t rounded(int64_t bytes);

 private:
  void release_cached_locked();
  [[noreturn]] void refuse(int64_t bytes) const;

  const int64_t limit_, most_cached_;
  mutable std::mutex mutex_;
  // By size: the first waiting block. Each holds the address of the next in its first bytes, so free() allocates
  // nothing.
  std::unordered_map<int64_t, void*> waiting_;
  Usage usage_;
};

// OUTRACE_POISON=1, or set_poisoning: memory that holds no value is filled with NaN (bytes 0xff), so that a read of it
// shows: pool blocks when they are freed and handed out, and the arena before a program runs.
bool poisoning();
void set_poisoning(bool on);
void poison(void* block, int64_t bytes);

}  // namespace outrace::cpu
