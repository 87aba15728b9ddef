// A plan as resolved calls on the CPU. A run fills a table of pointers and goes through the calls: nothing is
// allocated, looked up or decided.
#pragma once
#include <string>
#include <vector>

#include "outrace/backend/backend.h"
#include "outrace/backend/cpu/kernels.h"
#include "outrace/backend/cpu/pool.h"

namespace outrace::cpu {

class CpuProgram final : public Program {
 public:
  // Constants are written to memory of `pool`, which must outlive the program.
  CpuProgram(const Plan& plan, Pool& pool);
  ~CpuProgram() override;
  CpuProgram(const CpuProgram&) = delete;

  // An exception of a call (a label that is no class) leaves the later calls unrun.
  void run(const Bindings& bindings) override;

 private:
  struct Facts {  // of a call, for people
    std::string label, kernel;
    double flops, bytes;
  };
  struct Slot {
    int value, index;
  };
  struct Temp {
    int value;
    int64_t offset;
  };

  void place_values(const Plan& plan);
  void place_constant(const PlanValue& value, int index);
  void bind(const Bindings& bindings);
  void run_timed(const Frame& frame);

  std::vector<std::unique_ptr<ResolvedCall>> calls_;
  std::vector<Facts> facts_;
  std::vector<void*> values_;
  std::vector<Slot> inputs_, outputs_;
  std::vector<Temp> temps_;
  void* arena_ = nullptr;       // where temps_ point now
  int64_t poisoned_bytes_ = 0;  // of the arena; 0 if it holds values that other programs of the plan made
  struct Constant {
    void* memory;
    int64_t bytes;
  };
  std::vector<Constant> constants_;
  Pool& pool_;
};

}  // namespace outrace::cpu
