// A plan ready to run: runs of calls on one device, each compiled by its backend, and the copies between devices.
#pragma once
#include <memory>
#include <vector>

#include "outrace/backend/backend.h"
#include "outrace/graph/plan.h"

namespace outrace {

class Executable {
 public:
  explicit Executable(Plan plan);
  void run(Bindings& bindings);
  const Plan& plan() const { return plan_; }
  // Grows the arenas to this program's need; throws Error(memory) before anything is changed.
  void reserve();

 private:
  struct Segment {
    Device device;
    std::unique_ptr<Program> program;  // null: one transfer
    int transfer = -1;                 // call
  };
  void* address(const View& view, const Bindings& bindings, DType dtype) const;
  void transfer(const Call& call, const Bindings& bindings);
  Plan plan_;
  std::vector<Segment> segments_;
};

}  // namespace outrace
