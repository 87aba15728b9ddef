// The thread pool: OpenMP's, the same that oneDNN uses. Work is cut into tasks by the problem's size, never by the
// number of threads, so that results do not depend on it; threads only share out the tasks.
#pragma once
#include <cstdint>

#include "outrace/core/function_ref.h"

namespace outrace {

// Threads a parallel_for uses: what set_num_threads chose, or OMP_NUM_THREADS, or cpu_info().cores.
int num_threads();
// Throws Error(option) unless 1 <= count <= 1024.
void set_num_threads(int count);

// Tasks of at most `each` that `count` things make.
constexpr int64_t ceil_div(int64_t count, int64_t each) { return (count + each - 1) / each; }

// Calls task(i) once for each 0 <= i < tasks; each thread takes one contiguous run of them. On the calling thread alone
// if there is one task, one thread, or this is already inside a parallel_for. The first exception of a task is thrown
// again here, after all ended.
void parallel_for(int64_t tasks, FunctionRef<void(int64_t task)> task);

// Which thread of the running parallel_for this is, 0 .. num_threads() - 1; 0 outside. For scratch memory, never for
// results.
int thread_index();

// Call it first in main(). Limits how long idle OpenMP threads spin: libgomp's default costs other busy threads most of
// a core each, and it reads its setting before main() starts, so this starts the program anew, once, with
// GOMP_SPINCOUNT set (about 1 ms). Does nothing if the user set GOMP_SPINCOUNT or OMP_WAIT_POLICY. Figures in
// thread.cpp.
void bound_spinning();

}  // namespace outrace
