// Intrusive reference counting for nodes, slots and buffers. T has `std::atomic<int32_t> refs` and a static
// `destroy(T*)`.
#pragma once
#include <atomic>
#include <cstdint>
#include <utility>

namespace outrace {

template <class T>
class Ref {
 public:
  Ref() = default;
  Ref(std::nullptr_t) {}
  explicit Ref(T* p) : p_(p) { retain(); }
  Ref(const Ref& other) : p_(other.p_) { retain(); }
  Ref(Ref&& other) noexcept : p_(std::exchange(other.p_, nullptr)) {}
  ~Ref() { release(); }
  Ref& operator=(const Ref& other) {
    Ref(other).swap(*this);
    return *this;
  }
  Ref& operator=(Ref&& other) noexcept {
    Ref(std::move(other)).swap(*this);
    return *this;
  }
  void swap(Ref& other) noexcept { std::swap(p_, other.p_); }
  void reset() { Ref().swap(*this); }

  T* get() const { return p_; }
  T* operator->() const { return p_; }
  T& operator*() const { return *p_; }
  explicit operator bool() const { return p_ != nullptr; }
  friend bool operator==(const Ref& a, const Ref& b) { return a.p_ == b.p_; }

 private:
  void retain() {
    if (p_) p_->refs.fetch_add(1, std::memory_order_relaxed);
  }
  void release() {
    if (p_ && p_->refs.fetch_sub(1, std::memory_order_acq_rel) == 1) T::destroy(p_);
  }
  T* p_ = nullptr;
};

}  // namespace outrace
