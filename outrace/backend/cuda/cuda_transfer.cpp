#include "outrace/backend/cuda/cuda_transfer.h"

#include <algorithm>
#include <cstring>

namespace outrace::cuda {
namespace {

CUdeviceptr address(const void* p) { return reinterpret_cast<CUdeviceptr>(p); }

}  // namespace

Transfer::Slot& Transfer::next(Ring& ring) {
  if (ring.slots.empty()) {
    void* host = nullptr;
    const int64_t bytes = ring.slot_bytes * ring.count;
    context_.check(context_.api.allocate_host(&host, static_cast<size_t>(bytes), 0), "staging");
    char* device = ring.staged ? static_cast<char*>(memory_.allocate(bytes)) : nullptr;
    if (ring.staged) {
      // The place was allocated in the main queue's order; the other queue must not be earlier.
      CUevent allocated = context_.make_event();
      context_.check(context_.api.record_event(allocated, context_.queue), "staging");
      context_.check(context_.api.wait_event(context_.uploads, allocated, 0), "staging");
    }
    for (int i = 0; i < ring.count; ++i) {
      Slot& s = ring.slots.emplace_back();
      s.host = static_cast<char*>(host) + ring.slot_bytes * i;
      s.read = context_.make_event();
      if (!ring.staged) continue;
      s.device = device + ring.slot_bytes * i;
      s.moved = context_.make_event();
    }
  }
  Slot& slot = ring.slots[ring.next++ % ring.slots.size()];
  if (slot.used) context_.check(context_.api.synchronize_event(slot.read), "copy");
  return slot;
}

void Transfer::in(void* to, const void* host, int64_t bytes) {
  const Api& api = context_.api;
  Ring& ring = bytes <= small_.slot_bytes ? small_ : large_;
  for (int64_t done = 0; done < bytes; done += ring.slot_bytes) {
    const size_t part = static_cast<size_t>(std::min(ring.slot_bytes, bytes - done));
    const CUdeviceptr target = address(static_cast<char*>(to) + done);
    Slot& slot = next(ring);
    std::memcpy(slot.host, static_cast<const char*>(host) + done, part);
    if (!ring.staged) {
      context_.check(api.copy_in(target, slot.host, part, context_.queue), "copy");
      context_.check(api.record_event(slot.read, context_.queue), "copy");
    } else {
      if (slot.used) context_.check(api.wait_event(context_.uploads, slot.moved, 0), "copy");
      context_.check(api.copy_in(address(slot.device), slot.host, part, context_.uploads), "copy");
      context_.check(api.record_event(slot.read, context_.uploads), "copy");
      context_.check(api.wait_event(context_.queue, slot.read, 0), "copy");
      context_.check(api.copy(target, address(slot.device), part, context_.queue), "copy");
      context_.check(api.record_event(slot.moved, context_.queue), "copy");
    }
    slot.used = true;
  }
}

// Two slots in turn: the host copies out of one while the device fills the other.
void Transfer::out(void* host, const void* from, int64_t bytes) {
  const Api& api = context_.api;
  Ring& ring = bytes <= small_.slot_bytes ? small_ : large_;
  struct Part {
    Slot* slot;
    int64_t at, bytes;
  } waiting{nullptr, 0, 0};
  const auto finish = [&](const Part& p) {
    context_.check(api.synchronize_event(p.slot->read), "copy");
    std::memcpy(static_cast<char*>(host) + p.at, p.slot->host, static_cast<size_t>(p.bytes));
  };
  for (int64_t done = 0; done < bytes; done += ring.slot_bytes) {
    const Part part{&next(ring), done, std::min(ring.slot_bytes, bytes - done)};
    context_.check(api.copy_out(part.slot->host, address(static_cast<const char*>(from) + done),
                                static_cast<size_t>(part.bytes), context_.queue),
                   "copy");
    context_.check(api.record_event(part.slot->read, context_.queue), "copy");
    // The slot's place on the device is untouched, so its other event stays as it is.
    if (ring.staged && !part.slot->used) context_.check(api.record_event(part.slot->moved, context_.queue), "copy");
    part.slot->used = true;
    if (waiting.slot != nullptr) finish(waiting);
    waiting = part;
  }
  if (waiting.slot != nullptr) finish(waiting);
}

}  // namespace outrace::cuda
