#include "gala/device/capture_gate.h"

#include <condition_variable>
#include <mutex>

#include "gala/base/error.h"

namespace gala {
namespace {

struct Gate {
  std::mutex mutex;
  std::condition_variable changed;
  int uncaptured = 0;  ///< threads inside
  int waiting = 0;     ///< to capture; nobody else goes in before them
  bool capture = false;
};

Gate& gate() {
  static Gate gate;
  return gate;
}

thread_local int depth = 0;  ///< how often this thread is inside, of either kind

}  // namespace

Uncaptured::Uncaptured() {
  if (depth == 0) {
    std::unique_lock lock(gate().mutex);
    gate().changed.wait(lock, [] { return !gate().capture && gate().waiting == 0; });
    ++gate().uncaptured;
  }
  ++depth;
}

Uncaptured::~Uncaptured() {
  if (--depth > 0) return;
  const std::lock_guard lock(gate().mutex);
  if (--gate().uncaptured == 0) gate().changed.notify_all();
}

Capturing::Capturing() {
  if (depth > 0) fail("work cannot be captured inside a pass that is not");
  std::unique_lock lock(gate().mutex);
  ++gate().waiting;
  gate().changed.wait(lock, [] { return !gate().capture && gate().uncaptured == 0; });
  --gate().waiting;
  gate().capture = true;
  ++depth;
}

Capturing::~Capturing() {
  --depth;
  const std::lock_guard lock(gate().mutex);
  gate().capture = false;
  gate().changed.notify_all();
}

}  // namespace gala
