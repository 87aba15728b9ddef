// Plans and graphs as text, for OUTRACE_DEBUG and for tests.
#pragma once
#include <string>

#include "outrace/graph/plan.h"
#include "outrace/graph/walk.h"

namespace outrace {

// One line a call: "matmul+add+relu  in x, w, b  out h  f32 [64, 512]  67.1 MFLOP  2.4 MB", and the memory plan's
// totals.
std::string to_string(const Plan& plan);

// OUTRACE_DEBUG=1: that a program was made, and in what it differs from the last one; from 2 the schedule too.
void print_new_program(const Plan& plan, const Walk& walk);

}  // namespace outrace
