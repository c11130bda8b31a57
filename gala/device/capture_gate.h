#pragma once

namespace gala {

// While one thread captures work of a GPU, no other may wait for the whole device: it would get an error,
// and the capture would be lost. cuDNN waits so when it meets a convolution of a new shape and tries
// which algorithm is quickest. So passes that are not captured and captures keep out of each other's
// way, in the whole process; what was captured can be replayed at any time.

/// Held while a pass is queued operation by operation. Many threads can hold it, and a thread more than
/// once.
class Uncaptured {
 public:
  Uncaptured();
  ~Uncaptured();
  Uncaptured(const Uncaptured&) = delete;
  Uncaptured& operator=(const Uncaptured&) = delete;
};

/// Held by the one thread that captures, which may then go through `Uncaptured` too.
class Capturing {
 public:
  /// Waits for the others. Throws where this thread holds `Uncaptured` or `Capturing` already: it would
  /// wait for itself.
  Capturing();
  ~Capturing();
  Capturing(const Capturing&) = delete;
  Capturing& operator=(const Capturing&) = delete;
};

}  // namespace gala
