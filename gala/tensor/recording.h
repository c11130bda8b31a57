#pragma once

namespace gala {

// While one thread records work of a GPU, no other may wait for the whole device: it would get an error,
// and the recording would be lost. cuDNN waits so when it meets a convolution of a new shape and tries
// which algorithm is quickest. So passes that are not recorded and recordings keep out of each other's
// way, in the whole process; what was recorded can be replayed at any time.

/// Held while a pass is queued operation by operation. Many threads can hold it, and a thread more than
/// once.
class Unrecorded {
 public:
  Unrecorded();
  ~Unrecorded();
  Unrecorded(const Unrecorded&) = delete;
  Unrecorded& operator=(const Unrecorded&) = delete;
};

/// Held by the one thread that records, which may then go through `Unrecorded` too.
class Recording {
 public:
  /// Waits for the others. Throws where this thread holds `Unrecorded` or `Recording` already: it would
  /// wait for itself.
  Recording();
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
};

}  // namespace gala
