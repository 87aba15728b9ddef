// Recycled memory for small objects made and dropped by the hundred at every step: a free list a thread.
// malloc's own thread cache holds seven blocks a size; a training step drops a hundred nodes at once.
#pragma once
#include <cstddef>
#include <new>

namespace outrace {

// class X : public Recycled<X> {...}: new and delete go through the list. Objects may be freed by another thread.
template <class T>
class Recycled {
 public:
  static void* operator new(size_t size) {
    List& list = local();
    if (!list.first) return ::operator new(size);
    Block* b = list.first;
    list.first = b->next;
    --list.count;
    return b;
  }
  static void operator delete(void* p, size_t) {
    List& list = local();
    if (list.closed || list.count >= kMaxKept) return ::operator delete(p);
    auto* b = static_cast<Block*>(p);
    b->next = list.first;
    list.first = b;
    ++list.count;
  }

 private:
  static constexpr int kMaxKept = 4096;
  struct Block {
    Block* next;
  };
  struct List {
    Block* first = nullptr;
    int count = 0;
    bool closed = false;  // objects may still be dropped while the thread ends
    ~List() {
      closed = true;
      while (first) {
        Block* b = first;
        first = b->next;
        ::operator delete(b);
      }
    }
  };
  static List& local() {
    thread_local List list;
    return list;
  }
};

}  // namespace outrace
