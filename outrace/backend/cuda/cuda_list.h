// A program's launches as one CUDA graph. The first run, and programs of one launch, go launch by launch: building a
// graph costs more than it saves a program that runs once. Later runs are one call each; when an array moved, only the
// kernels that read it get their new parameters, in place.
// A library's call is recorded into a graph of its own that becomes a node: the library decides which kernels it needs.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "outrace/backend/cuda/cuda_context.h"
#include "outrace/backend/gpu/driver.h"

namespace outrace::cuda {

class CudaKernel final : public gpu::Kernel {
 public:
  explicit CudaKernel(CUfunction function) : function(function) {}
  const CUfunction function;
};

class CudaList final : public gpu::LaunchList {
 public:
  // `graphs`: whether runs may become graphs.
  CudaList(Context& context, std::vector<gpu::Launch> launches, bool graphs);
  ~CudaList() override;
  void run(void* const* addresses) override;
  std::vector<double> run_timed(void* const* addresses) override;

 private:
  struct ArrayArg {
    size_t cell;
    int slot;
  };
  struct Item {
    std::string label;
    CUDA_KERNEL_NODE_PARAMS params{};
    std::vector<uint64_t> cells;  // of the parameters, 8 bytes each, whatever their size
    std::vector<void*> pointers;  // to the cells; a null at the end
    std::vector<ArrayArg> arrays;
    std::shared_ptr<gpu::LibraryCall> library;
    std::vector<int> slots;  // of the library's call
    std::vector<void*> bound;
    CUgraphNode node = nullptr;
  };

  static bool bind(Item& item, void* const* addresses);  // whether an address differs from last time
  void enqueue(Item& item, void* const* addresses);
  CUgraph record(Item& item, void* const* addresses);
  void build(void* const* addresses);
  bool update(void* const* addresses);  // false: the graph must be built anew
  void drop();

  Context& context_;
  std::vector<Item> items_;
  std::string ops_;  // for errors
  bool graphs_;
  bool ran_ = false;
  CUgraph graph_ = nullptr;
  CUgraphExec exec_ = nullptr;
};

}  // namespace outrace::cuda
