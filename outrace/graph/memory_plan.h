// Gives every temporary of a plan an offset in its device's arena.
#pragma once
#include <vector>

#include "outrace/graph/plan.h"

namespace outrace {

constexpr int64_t kArenaAlignment = 64;  // a cache line, and the widest vector

// First and last call that touch a value; {-1, -1}: never.
struct Lifetime {
  int first = -1, last = -1;
};
std::vector<Lifetime> lifetimes(const Plan& plan);

// Writes PlanValue::arena_offset and Plan::arenas. Two temporaries overlap in memory only when their lifetimes do not.
void plan_memory(Plan& plan);

}  // namespace outrace
