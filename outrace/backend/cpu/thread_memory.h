// Scratch memory of the calling thread.
#pragma once
#include <cstdint>

#include "outrace/core/aligned.h"

namespace outrace::cpu {

// `count` elements, their values undefined: memory of the calling thread that only grows, one for each use. Use is any
// type that names it, local to the caller.
template <class Use, class T>
T* thread_memory(int64_t count) {
  thread_local AlignedArray<T> memory;
  thread_local int64_t size = 0;
  if (size < count) {
    memory = aligned_array<T>(count);
    size = count;
  }
  return memory.get();
}

}  // namespace outrace::cpu
