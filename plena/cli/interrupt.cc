#include "plena/cli/interrupt.h"

#include <csignal>

#include <unistd.h>

namespace plena {

namespace {

std::atomic<bool> interrupt_flag = false;
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may touch it");

constexpr int kInterruptedStatus = 130;

void on_interrupt(int /*signal*/) {
  if (interrupt_flag.exchange(true)) ::_exit(kInterruptedStatus);
}

}  // namespace

const std::atomic<bool>& interrupted() {
  return interrupt_flag;
}

void request_stop() {
  interrupt_flag = true;
}

// Without SA_RESTART: a read that waits for the terminal returns, so that its caller can look.
void catch_signals() {
  struct sigaction action{};
  action.sa_handler = on_interrupt;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
}

}  // namespace plena
