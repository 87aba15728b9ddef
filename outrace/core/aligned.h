// Memory that starts on a cache line, so that no vector load of up to 64 bytes straddles two.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>

#include "outrace/core/error.h"

namespace outrace {

constexpr size_t kAlignment = 64;  // a cache line of x86-64 and ARM, and one AVX-512 register

struct AlignedDelete {
  void operator()(void* p) const { ::operator delete(p, std::align_val_t(kAlignment)); }
};
template <class T>
using AlignedArray = std::unique_ptr<T[], AlignedDelete>;

// `count` uninitialized elements. Throws Error(memory) that names the size.
template <class T>
AlignedArray<T> aligned_array(int64_t count) {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);
  OUTRACE_ASSERT(count >= 0, "aligned_array of ", count);
  constexpr int64_t kMost = (int64_t{1} << 47) / sizeof(T);  // the address space: the product cannot overflow
  void* p = nullptr;
  if (count <= kMost)
    p = ::operator new(static_cast<size_t>(count) * sizeof(T), std::align_val_t(kAlignment), std::nothrow);
  if (p == nullptr)
    fail(ErrorKind::memory, "[memory] the system refused ", count, " elements of ", sizeof(T), " bytes");
  return AlignedArray<T>(static_cast<T*>(p));
}

}  // namespace outrace
