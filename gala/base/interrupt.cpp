#include "gala/base/interrupt.h"

#include <atomic>
#include <csignal>

namespace gala {
namespace {

std::atomic<bool> flag{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void handle(int signal) {
  flag.store(true);
  std::signal(signal, SIG_DFL);
}

}  // namespace

void catch_interrupts() {
  std::signal(SIGINT, handle);
  std::signal(SIGTERM, handle);
}

bool interrupted() {
  return flag.load();
}

}  // namespace gala
