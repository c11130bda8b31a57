#pragma once
#include "gala/tensor/state_archive.h"

namespace gala {

/// What the parts of a method that remember something have in common. What changes inside a pass (a
/// moving mean of the answers) lies in device tensors that are written in place, so that a captured
/// pass can hold them.
class Part {
 public:
  virtual ~Part() = default;

  /// Forgets everything it learned.
  virtual void reset() {}
  /// Forgets what it learned of parameters that are put back to the source.
  virtual void restart() { reset(); }
  virtual void remember(StateArchive&) {}
};

}  // namespace gala
