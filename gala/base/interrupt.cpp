#include "gala/base/interrupt.h"

#include <atomic>
#include <csignal>
#include <initializer_list>

namespace gala {
namespace {

std::atomic<bool> flag{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void handle(int signal) {
  flag.store(true);
  // A terminal that closes may send its signal twice, once for the shell and once for itself; the
  // second must not end what the first asked to be saved.
  // And whoever writes to a closed pipe writes to it again.
  if (signal != SIGHUP && signal != SIGPIPE) std::signal(signal, SIG_DFL);
}

}  // namespace

void catch_interrupts() {
  std::signal(SIGINT, handle);
  std::signal(SIGTERM, handle);
  // Under nohup it is ignored, and stays so.
  for (const int signal : {SIGHUP, SIGPIPE}) {
    if (std::signal(signal, handle) == SIG_IGN) std::signal(signal, SIG_IGN);
  }
}

bool interrupted() {
  return flag.load();
}

}  // namespace gala
