// Each thread's record of pending work: nodes are made here, hash-consed, and wait for a flush.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <source_location>
#include <span>
#include <vector>

#include "outrace/graph/tensor.h"

namespace outrace {

// What capture() needs from the recording that runs inside it.
struct CaptureLog {
  struct Assigned {
    Ref<Slot> slot;
    NodePtr before;  // its value when the recording began
  };
  std::vector<Assigned> assigned;  // slots that received a new value, each once
  // Modules called, and whether they were training.
  std::vector<std::pair<std::shared_ptr<const bool>, bool>> training;
  std::vector<std::function<void()>> on_replay;   // host work of each replay: step counts, random serials
  std::vector<std::function<void()>> on_failure;  // undoes it when the run fails
};

class Recorder {
 public:
  static Recorder& current();

  // A new node, or the equal one recorded since the last flush. Random ops pass unique = true.
  NodePtr record(const OpDef& op, std::span<const NodePtr> inputs, DType dtype, const Shape& shape, Device device,
                 const Attrs& attrs, std::source_location where, bool unique = false);

  void link(Slot& slot);
  void unlink(Slot& slot);

  // Everything this thread recorded and somebody holds.
  void flush(std::source_location where = std::source_location::current());
  // Only what `node` needs.
  void flush_for(const NodePtr& node);
  // Slots with pending values, oldest first.
  std::vector<Slot*> pending() const;
  void forget_equal_nodes();  // empties the hash-consing table

  CaptureLog* capture = nullptr;
  std::vector<Ref<Slot>> graded;  // slots that backward() gave a gradient since the last flush

 private:
  Recorder() = default;
  struct ThreadHold;
  void grow_table();

  mutable std::mutex list_lock_;
  Slot *first_ = nullptr, *last_ = nullptr;
  std::vector<NodePtr> table_ = std::vector<NodePtr>(512);
  std::vector<uint32_t> used_;
  int64_t recorded_since_flush_ = 0;
  bool flushing_ = false;
};

// Guards graph walks (they leave marks in nodes shared between threads) and the run of programs: one engine thread at a
// time.
std::recursive_mutex& engine_lock();
uint32_t next_mark();

// Records an op on tensors; the device is that of the inputs (checked equal).
Tensor record(const OpDef& op, std::initializer_list<const Tensor*> inputs, DType dtype, const Shape& shape,
              const Attrs& attrs, std::source_location where);
// Leaves.
Tensor constant(double value, DType dtype, Device device);
// A number read anew at each run; with a source, at each replay of a captured step.
Tensor scalar(ScalarValue value, DType dtype, Device device, ScalarSource source = nullptr);
// 0, 1, -1, 2, 0.5 are constants of the graph; every other number is a scalar input, so that changing it needs no new
// program.
Tensor number(double value, DType dtype, Device device);

}  // namespace outrace
