#include "gala/tensor/recording.h"

#include <condition_variable>
#include <mutex>

#include "gala/base/error.h"

namespace gala {
namespace {

struct Gate {
  std::mutex mutex;
  std::condition_variable changed;
  int unrecorded = 0;  ///< threads inside
  int waiting = 0;     ///< to record; nobody else goes in before them
  bool recording = false;
};

Gate& gate() {
  static Gate gate;
  return gate;
}

thread_local int depth = 0;  ///< how often this thread is inside, of either kind

}  // namespace

Unrecorded::Unrecorded() {
  if (depth == 0) {
    std::unique_lock lock(gate().mutex);
    gate().changed.wait(lock, [] { return !gate().recording && gate().waiting == 0; });
    ++gate().unrecorded;
  }
  ++depth;
}

Unrecorded::~Unrecorded() {
  if (--depth > 0) return;
  const std::lock_guard lock(gate().mutex);
  if (--gate().unrecorded == 0) gate().changed.notify_all();
}

Recording::Recording() {
  if (depth > 0) fail("work cannot be recorded inside a pass that is not");
  std::unique_lock lock(gate().mutex);
  ++gate().waiting;
  gate().changed.wait(lock, [] { return !gate().recording && gate().unrecorded == 0; });
  --gate().waiting;
  gate().recording = true;
  ++depth;
}

Recording::~Recording() {
  --depth;
  const std::lock_guard lock(gate().mutex);
  gate().recording = false;
  gate().changed.notify_all();
}

}  // namespace gala
