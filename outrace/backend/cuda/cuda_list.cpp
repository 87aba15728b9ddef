#include "outrace/backend/cuda/cuda_list.h"

#include <bit>

#include "outrace/core/error.h"

namespace outrace::cuda {
namespace {

constexpr size_t kLongestNames = 300;

uint64_t cell_of(const gpu::Arg& a) {
  switch (a.kind) {
    case gpu::Arg::Kind::f32: return std::bit_cast<uint32_t>(static_cast<float>(a.real));
    case gpu::Arg::Kind::f64: return std::bit_cast<uint64_t>(a.real);
    case gpu::Arg::Kind::i32: return static_cast<uint32_t>(a.integer);
    default: return static_cast<uint64_t>(a.integer);
  }
}

}  // namespace

CudaList::CudaList(Context& context, std::vector<gpu::Launch> launches, bool graphs)
    : context_(context), graphs_(graphs && launches.size() > 1) {
  items_.reserve(launches.size());
  for (gpu::Launch& launch : launches) {
    Item& item = items_.emplace_back();
    if (!ops_.ends_with(launch.label) && ops_.size() < kLongestNames) ops_ += (ops_.empty() ? "" : ", ") + launch.label;
    item.label = std::move(launch.label);
    item.library = std::move(launch.library);
    if (item.library) {
      item.slots = item.library->slots();
      item.bound.resize(item.slots.size());
      continue;
    }
    CUDA_KERNEL_NODE_PARAMS& p = item.params;
    p.func = static_cast<const CudaKernel&>(*launch.kernel).function;
    p.gridDimX = static_cast<unsigned>(launch.groups[0]);
    p.gridDimY = static_cast<unsigned>(launch.groups[1]);
    p.gridDimZ = static_cast<unsigned>(launch.groups[2]);
    p.blockDimX = static_cast<unsigned>(launch.local[0]);
    p.blockDimY = static_cast<unsigned>(launch.local[1]);
    p.blockDimZ = static_cast<unsigned>(launch.local[2]);
    for (const gpu::Arg& a : launch.args) {
      if (a.kind == gpu::Arg::Kind::array) {  // an address and the bytes behind it: two parameters
        item.arrays.push_back({item.cells.size(), a.slot});
        item.cells.push_back(0);
      }
      item.cells.push_back(cell_of(a));
    }
    for (uint64_t& cell : item.cells) item.pointers.push_back(&cell);
    item.pointers.push_back(nullptr);
    p.kernelParams = item.pointers.data();
  }
}

CudaList::~CudaList() {
  if (exec_ != nullptr) context_.api.set_context(context_.context);
  drop();
}

void CudaList::drop() {
  if (exec_ != nullptr) context_.api.destroy_exec(exec_);
  if (graph_ != nullptr) context_.api.destroy_graph(graph_);
  exec_ = nullptr;
  graph_ = nullptr;
}

bool CudaList::bind(Item& item, void* const* addresses) {
  bool changed = false;
  for (size_t i = 0; i < item.slots.size(); ++i)
    if (void* address = addresses[item.slots[i]]; item.bound[i] != address) {
      item.bound[i] = address;
      changed = true;
    }
  for (const ArrayArg& a : item.arrays) {
    const uint64_t address = reinterpret_cast<uint64_t>(addresses[a.slot]);
    changed |= item.cells[a.cell] != address;
    item.cells[a.cell] = address;
  }
  return changed;
}

void CudaList::enqueue(Item& item, void* const* addresses) {
  if (bind(item, addresses)) drop();  // what the graph has is no longer what the cells say
  context_.enqueued(item.label);
  if (item.library) return item.library->enqueue(context_.queue, addresses);
  const CUDA_KERNEL_NODE_PARAMS& p = item.params;
  context_.check(context_.api.launch(p.func, p.gridDimX, p.gridDimY, p.gridDimZ, p.blockDimX, p.blockDimY, p.blockDimZ,
                                     0, context_.queue, p.kernelParams, nullptr),
                 item.label.c_str());
}

CUgraph CudaList::record(Item& item, void* const* addresses) {
  CUgraph child = nullptr;
  context_.check(context_.api.begin_capture(context_.recording, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
                 item.label.c_str());
  try {
    item.library->enqueue(context_.recording, addresses);
  } catch (...) {
    context_.api.end_capture(context_.recording, &child);
    if (child != nullptr) context_.api.destroy_graph(child);
    throw;
  }
  context_.check(context_.api.end_capture(context_.recording, &child), item.label.c_str());
  return child;
}

// One node after the other: the queue's order is the program's.
void CudaList::build(void* const* addresses) {
  drop();
  const Api& api = context_.api;
  context_.check(api.create_graph(&graph_, 0), "graph");
  CUgraphNode before = nullptr;
  for (Item& item : items_) {
    bind(item, addresses);
    const size_t dependencies = before != nullptr ? 1 : 0;
    if (item.library) {
      CUgraph child = record(item, addresses);
      const CUresult code = api.add_child(&item.node, graph_, &before, dependencies, child);
      api.destroy_graph(child);  // the node has its own copy
      context_.check(code, item.label.c_str());
    } else {
      context_.check(api.add_kernel(&item.node, graph_, &before, dependencies, &item.params), item.label.c_str());
    }
    before = item.node;
  }
  context_.check(api.instantiate(&exec_, graph_, 0), "graph");
}

bool CudaList::update(void* const* addresses) {
  const Api& api = context_.api;
  for (Item& item : items_) {
    if (!bind(item, addresses)) continue;
    CUresult code = CUDA_SUCCESS;
    if (item.library) {
      CUgraph child = record(item, addresses);
      code = api.set_child(exec_, item.node, child);
      api.destroy_graph(child);
    } else {
      code = api.set_kernel(exec_, item.node, &item.params);
    }
    // A library may need other kernels for other addresses; then the nodes no longer fit.
    if (code == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE) return false;
    context_.check(code, item.label.c_str());
  }
  return true;
}

void CudaList::run(void* const* addresses) {
  context_.enter();
  if (!graphs_ || !ran_) {
    for (Item& item : items_) enqueue(item, addresses);
    ran_ = true;
    return;
  }
  if (exec_ == nullptr || !update(addresses)) build(addresses);
  context_.enqueued(ops_);
  context_.check(context_.api.launch_graph(exec_, context_.queue), ops_.c_str());
}

std::vector<double> CudaList::run_timed(void* const* addresses) {
  context_.enter();
  const auto [start, stop] = context_.timers();
  std::vector<double> us;
  for (Item& item : items_) {
    context_.check(context_.api.record_event(start, context_.queue), "time");
    enqueue(item, addresses);
    context_.check(context_.api.record_event(stop, context_.queue), "time");
    context_.check(context_.api.synchronize_event(stop), item.label.c_str());
    float ms = 0;
    context_.check(context_.api.elapsed(&ms, start, stop), "time");
    us.push_back(static_cast<double>(ms) * 1e3);
  }
  context_.waited();
  return us;
}

}  // namespace outrace::cuda
