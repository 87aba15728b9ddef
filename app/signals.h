// Ctrl-C and its like: a loop finishes its step, prints what there is, and the program ends with 128 + the signal.
#pragma once

namespace outrace::app {

// SIGINT and SIGTERM set stop_signal(); a second one ends the program at once. SIGPIPE is ignored: the write that fails
// says so (terminal.h).
void watch_signals();

// The signal that asked for an end, or 0.
int stop_signal();

}  // namespace outrace::app
