#include <algorithm>
#include <numeric>

#include "outrace/backend/gpu/errors.h"
#include "outrace/backend/gpu/kernel_rows.h"
#include "outrace/core/error.h"

namespace outrace::gpu {

void CallBuilder::begin(const Call& call) {
  label_ = call.label;
  scratch_ = 0;
}

Arg CallBuilder::array(const View& view) const {
  OUTRACE_ASSERT(view.value >= 0, label_, " reads a scalar as an array");
  return Arg::array(view.value, view.offset * size_of(plan_.values[view.value].dtype));
}

Arg CallBuilder::scratch(int64_t bytes) {
  constexpr int64_t kAlign = 256;  // of OpenCL sub-buffers and of every GPU's widest access
  const int64_t offset = scratch_;
  scratch_ += (bytes + kAlign - 1) / kAlign * kAlign;
  most_scratch_ = std::max(most_scratch_, scratch_);
  return Arg::array(extra(scratch_memory), offset);
}

Arg CallBuilder::scalar(int index) const { return Arg::array(extra(scalars), int64_t{16} * index); }

Arg CallBuilder::status_buffer() const { return Arg::array(extra(status)); }

Arg CallBuilder::error(std::function<std::string(int64_t value, int64_t at)> text) {
  reports_ = true;
  return Arg::i32(errors_.add(std::move(text)));
}

void CallBuilder::launch(const KernelText& text, const char* name, const Grid& grid, std::vector<Arg> args,
                         Fused fused) {
  for (const int64_t n : grid.groups)
    if (n == 0) return;
  if (grid.groups[0] >= kSmallSpace || grid.groups[1] >= 65536 || grid.groups[2] >= 65536)
    fail(ErrorKind::device, "[", label_, "] too much for one kernel: ", grid.groups[0], " x ", grid.groups[1], " x ",
         grid.groups[2], " groups of work-items; GPUs take fewer than ", kSmallSpace, " x 65536 x 65536");
  if ((fused & prologue) != 0) args.insert(args.end(), text.prologue_args().begin(), text.prologue_args().end());
  if ((fused & epilogue) != 0) args.insert(args.end(), text.epilogue_args().begin(), text.epilogue_args().end());
  int64_t bytes = 0;
  for (const Arg& a : args) bytes += a.kind == Arg::Kind::array ? 16 : 8;
  if (bytes > facts().parameter_bytes)
    fail(ErrorKind::device, "[", label_, "] ", facts().name, " takes ", facts().parameter_bytes,
         " bytes of kernel parameters; this fused kernel needs ", bytes);
  launches_.push_back({.label = label_,
                       .kernel = driver_.build(text.source(facts()))->kernel(name),
                       .groups = grid.groups,
                       .local = grid.lanes && facts().is_cpu ? std::array{1, 1, 1} : grid.local,
                       .args = std::move(args),
                       .library = nullptr});
}

void CallBuilder::library(std::shared_ptr<LibraryCall> call) {
  launches_.push_back({.label = label_, .kernel = nullptr, .args = {}, .library = std::move(call)});
}

TileProgram read_operand(const Call& call, size_t which, const Plan& plan, DType compute) {
  TileProgram p;
  p.compute = compute;
  p.space = call.operand_shapes[which];
  p.loads.push_back({.kind = TileLoad::Kind::view,
                     .dtype = stored(call.operands[which], plan),
                     .view = call.operands[which],
                     .constant = 0,
                     .scalar = -1});
  p.result = 0;
  return p;
}

TileProgram finish(const Call& call, DType compute) {
  TileProgram p = call.epilogue;
  if (p.empty()) {
    p.compute = compute;
    p.space = call.shape;
  }
  OUTRACE_ASSERT(p.compute == compute, call.label);
  if (call.result < 0) return p;
  int producer = -1;
  for (size_t r = 0; r < p.loads.size(); ++r)
    if (p.loads[r].kind == TileLoad::Kind::producer) producer = static_cast<int>(r);
  if (producer < 0) {
    // Registers of instructions stand behind those of loads.
    const int16_t at = static_cast<int16_t>(p.loads.size());
    const auto moved = [&](auto& r) { r = static_cast<std::decay_t<decltype(r)>>(r >= at ? r + 1 : r); };
    for (TileInstr& i : p.instrs) {
      moved(i.x);
      moved(i.z);
      moved(i.w);
    }
    for (TileStore& s : p.stores) moved(s.reg);
    producer = at;
    p.loads.push_back({.kind = TileLoad::Kind::producer, .dtype = call.dtype, .view = {}, .constant = 0, .scalar = -1});
  }
  TileStore s;
  s.reg = producer;
  s.dtype = call.dtype;
  s.view = {call.result, 0, contiguous_strides(p.space)};
  p.stores.push_back(s);
  return p;
}

}  // namespace outrace::gpu
