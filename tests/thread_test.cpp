// parallel_for: every task once, in contiguous runs, nested and failing; and the one new start that bounds spinning.
#include "outrace/core/thread.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <set>
#include <stdexcept>
#include <vector>

#include "outrace/core/aligned.h"
#include "outrace/core/error.h"

namespace outrace {
namespace {

class Threads {
 public:
  explicit Threads(int count) : before_(num_threads()) { set_num_threads(count); }
  ~Threads() { set_num_threads(before_); }

 private:
  int before_;
};

TEST(Thread, EveryTaskOnceInContiguousRuns) {
  for (const int threads : {1, 2, 3, 5}) {
    const Threads scope(threads);
    for (const int64_t tasks : {0, 1, 2, 3, 4, 7, 100}) {
      std::vector<std::atomic<int>> calls(static_cast<size_t>(tasks));
      std::vector<int> owner(static_cast<size_t>(tasks));
      parallel_for(tasks, [&](int64_t i) {
        ++calls[static_cast<size_t>(i)];
        owner[static_cast<size_t>(i)] = thread_index();
      });
      for (const auto& count : calls) EXPECT_EQ(count, 1);
      for (size_t i = 1; i < owner.size(); ++i) EXPECT_GE(owner[i], owner[i - 1]);
      if (tasks == 100) {
        EXPECT_EQ(std::set<int>(owner.begin(), owner.end()).size(), static_cast<size_t>(threads));
      }
      EXPECT_EQ(thread_index(), 0);
    }
  }
}

TEST(Thread, NestedCallsRunInline) {
  const Threads scope(3);
  std::atomic<int> total{0};
  parallel_for(6, [&](int64_t) {
    const int outer = thread_index();
    parallel_for(10, [&](int64_t) {
      EXPECT_EQ(thread_index(), outer);
      ++total;
    });
  });
  EXPECT_EQ(total, 60);
}

TEST(Thread, AnExceptionArrivesAndThePoolGoesOn) {
  const Threads scope(2);
  const auto task = [](int64_t i) {
    if (i == 3) fail(ErrorKind::value, "task ", i);
  };
  for (int round = 0; round < 3; ++round) EXPECT_THROW(parallel_for(8, task), Error);
  std::atomic<int> calls{0};
  parallel_for(8, [&](int64_t) { ++calls; });
  EXPECT_EQ(calls, 8);
  EXPECT_EQ(thread_index(), 0);
}

TEST(Thread, RefusesNonsense) {
  const int before = num_threads();
  EXPECT_THROW(set_num_threads(0), Error);
  EXPECT_THROW(set_num_threads(1025), Error);
  EXPECT_EQ(num_threads(), before);
}

TEST(Thread, AlignedArrays) {
  for (const int64_t count : {0, 1, 63, 1000}) {
    const AlignedArray<float> a = aligned_array<float>(count);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(a.get()) % kAlignment, 0u);
  }
  EXPECT_THROW(aligned_array<double>(int64_t{1} << 58), Error);
}

constexpr int kStartedAnew = 42;

// The child of this test calls bound_spinning(), which starts this very test program again with the variables set.
TEST(Thread, SpinningIsBoundedByOneNewStart) {
  if (getenv("OUTRACE_SPINNING_BOUNDED") != nullptr) {
    bound_spinning();  // must return
    _exit(getenv("GOMP_SPINCOUNT") != nullptr ? kStartedAnew : 1);
  }
  const auto child_status = [](const char* user_variable) {
    const pid_t child = fork();
    if (child == 0) {
      unsetenv("GOMP_SPINCOUNT");
      unsetenv("OMP_WAIT_POLICY");
      if (user_variable != nullptr) setenv(user_variable, "passive", 1);
      setenv("GTEST_FILTER", "Thread.SpinningIsBoundedByOneNewStart", 1);
      const int null = open("/dev/null", O_WRONLY);
      dup2(null, 1);
      dup2(null, 2);
      bound_spinning();
      _exit(0);
    }
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  };
  EXPECT_EQ(child_status(nullptr), kStartedAnew);
  EXPECT_EQ(child_status("OMP_WAIT_POLICY"), 0) << "the user's choice stands";
}

}  // namespace
}  // namespace outrace
