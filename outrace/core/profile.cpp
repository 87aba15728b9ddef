#include "outrace/core/profile.h"

#include <atomic>
#include <mutex>
#include <utility>

namespace outrace {
namespace {

std::atomic<bool> switched_on{false};
std::atomic<int64_t> to_devices{0}, from_devices{0};

struct Collector {
  std::mutex mutex;
  std::vector<CallProfile> calls;
};

Collector& collector() {
  static auto* instance = new Collector;  // never destroyed: programs may run in destructors of static objects
  return *instance;
}

}  // namespace

bool profiling() { return switched_on.load(std::memory_order_relaxed); }
void set_profiling(bool on) { switched_on.store(on, std::memory_order_relaxed); }

void record_profile(const std::vector<CallProfile>& calls) {
  Collector& c = collector();
  std::lock_guard hold(c.mutex);
  c.calls.insert(c.calls.end(), calls.begin(), calls.end());
}

std::vector<CallProfile> take_profile() {
  Collector& c = collector();
  std::lock_guard hold(c.mutex);
  return std::exchange(c.calls, {});
}

Transfers transfers() {
  return {to_devices.load(std::memory_order_relaxed), from_devices.load(std::memory_order_relaxed)};
}

void count_transfer(const Transfers& more) {
  to_devices.fetch_add(more.to_devices, std::memory_order_relaxed);
  from_devices.fetch_add(more.from_devices, std::memory_order_relaxed);
}

}  // namespace outrace
