#include "app/signals.h"

#include <unistd.h>

#include <csignal>
#include <initializer_list>

namespace outrace::app {
namespace {

volatile std::sig_atomic_t received = 0;

void on_signal(int signal) {
  if (received != 0) _exit(128 + signal);
  received = signal;
}

}  // namespace

void watch_signals() {
  struct sigaction act {};
  act.sa_handler = on_signal;
  act.sa_flags = SA_RESTART;
  for (int signal : {SIGINT, SIGTERM}) {
    struct sigaction before {};
    sigaction(signal, nullptr, &before);
    if (before.sa_handler != SIG_IGN) sigaction(signal, &act, nullptr);  // nohup and background jobs stay deaf to it
  }
  act.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &act, nullptr);
}

int stop_signal() { return received; }

}  // namespace outrace::app
