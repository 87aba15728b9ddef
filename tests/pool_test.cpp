// The CPU's memory pool: reuse, limits, poison.
#include "outrace/backend/cpu/pool.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include "outrace/core/error.h"

namespace outrace::cpu {
namespace {

constexpr int64_t kMegabyte = 1 << 20;

TEST(Pool, RoundsAndAligns) {
  EXPECT_EQ(Pool::rounded(0), 64);
  EXPECT_EQ(Pool::rounded(64), 64);
  EXPECT_EQ(Pool::rounded(65), 128);
  EXPECT_EQ(Pool::rounded(64 * 1024 + 1), 68 * 1024);
  Pool pool(64 * kMegabyte, 16 * kMegabyte);
  for (const int64_t bytes : {int64_t{0}, int64_t{1}, int64_t{100}, int64_t{70'000}, 5 * kMegabyte}) {
    void* block = pool.allocate(bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 64, 0u);
    std::memset(block, 1, static_cast<size_t>(bytes));
    pool.free(block, bytes);
  }
  EXPECT_EQ(pool.usage().in_use, 0);
}

// Large arrays begin at different places of a page, and are given back whole.
TEST(Pool, LargeBlocksAreStaggered) {
  for (const int64_t bytes : {kMegabyte / 2, 8 * kMegabyte}) {
    Pool pool(256 * kMegabyte, 0);
    std::vector<void*> blocks;
    std::set<uintptr_t> places;
    for (int i = 0; i < 8; ++i) {
      blocks.push_back(pool.allocate(bytes));
      places.insert(reinterpret_cast<uintptr_t>(blocks.back()) % 4096);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(blocks.back()) % 64, 0u);
      std::memset(blocks.back(), 1, static_cast<size_t>(bytes));
    }
    EXPECT_EQ(places.size(), blocks.size());
    for (void* block : blocks) pool.free(block, bytes);
    EXPECT_EQ(pool.usage().in_use, 0);
  }
}

TEST(Pool, AFreedBlockServesTheNextRequestOfItsSize) {
  Pool pool(64 * kMegabyte, 16 * kMegabyte);
  void* first = pool.allocate(1000);
  void* other = pool.allocate(1000);
  EXPECT_NE(first, other);
  pool.free(first, 1000);
  EXPECT_EQ(pool.usage().cached, 1024);
  EXPECT_EQ(pool.allocate(980), first);  // the same size once rounded
  EXPECT_EQ(pool.usage().cached, 0);
  EXPECT_EQ(pool.usage().in_use, 2048);
  EXPECT_EQ(pool.usage().most_in_use, 2048);
  pool.free(first, 980);
  pool.free(other, 1000);
  pool.release_cached();
  EXPECT_EQ(pool.usage().cached, 0);
}

TEST(Pool, CachedBytesAreBounded) {
  Pool pool(64 * kMegabyte, 2 * kMegabyte);
  std::vector<void*> blocks;
  for (int i = 0; i < 5; ++i) blocks.push_back(pool.allocate(kMegabyte));
  for (void* block : blocks) {
    pool.free(block, kMegabyte);
    EXPECT_LE(pool.usage().cached, 2 * kMegabyte);
  }
  void* large = pool.allocate(3 * kMegabyte);
  pool.free(large, 3 * kMegabyte);  // larger than all that may wait
  EXPECT_LE(pool.usage().cached, 2 * kMegabyte);
  EXPECT_EQ(pool.usage().in_use, 0);
}

TEST(Pool, OutOfMemoryNamesTheSizes) {
  Pool pool(8 * kMegabyte, 8 * kMegabyte);
  void* held = pool.allocate(3 * kMegabyte);
  void* waiting = pool.allocate(4 * kMegabyte);
  pool.free(waiting, 4 * kMegabyte);
  void* fits = pool.allocate(5 * kMegabyte);  // what waits is given back for it
  try {
    pool.allocate(2'000'000);
    ADD_FAILURE() << "beyond the limit";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::memory);
    EXPECT_NE(std::string(e.what()).find("2.0 MB"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("8.4 MB"), std::string::npos) << e.what();
  }
  EXPECT_THROW(pool.allocate(-1), Error);
  EXPECT_THROW(pool.allocate(INT64_MAX), Error);
  pool.free(fits, 5 * kMegabyte);
  pool.free(held, 3 * kMegabyte);
}

#if !defined(__SANITIZE_ADDRESS__)  // whose allocator ends the program
TEST(Pool, TheSystemRefuses) {
  Pool boundless(INT64_MAX, 0);
  EXPECT_THROW(boundless.allocate(int64_t{1} << 52), Error);
  EXPECT_EQ(boundless.usage().in_use, 0);
}
#endif

TEST(Pool, PoisonShowsInNewBlocks) {
  Pool pool(8 * kMegabyte, 8 * kMegabyte);
  set_poisoning(true);
  auto* block = static_cast<float*>(pool.allocate(256));
  for (int i = 0; i < 64; ++i) {
    EXPECT_TRUE(std::isnan(block[i]));
    block[i] = 1;
  }
  pool.free(block, 256);
  auto* again = static_cast<float*>(pool.allocate(256));
  EXPECT_EQ(again, block);
  for (int i = 0; i < 64; ++i) EXPECT_TRUE(std::isnan(again[i]));
  pool.free(again, 256);
  set_poisoning(false);
}

TEST(Pool, Threads) {
  Pool pool(64 * kMegabyte, kMegabyte);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&pool, t] {
      for (int i = 0; i < 2000; ++i) {
        const int64_t bytes = 64 + (i + t) % 7 * 1000;
        auto* block = static_cast<char*>(pool.allocate(bytes));
        std::memset(block, t, static_cast<size_t>(bytes));
        EXPECT_EQ(block[bytes - 1], t);
        pool.free(block, bytes);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(pool.usage().in_use, 0);
}

}  // namespace
}  // namespace outrace::cpu
