#pragma once
#include <cstdint>

#include "gala/layer/archive.h"
#include "gala/layer/memory.h"
#include "gala/layer/window.h"
#include "gala/optim/sweep_kernels.h"
#include "gala/optim/workspace.h"

namespace gala {

/// The displacement TD of every parameter since an anchor (Eq. 4 and 7), in the arena's layout.
///
/// The sum is the default because an opening step of 5e-8 does not move a float32 scale of 1: as a
/// difference, norm layers would stay at TD = 0 and win every choice.
class Displacement {
 public:
  /// `values` are the parameters, `size` of them; they and the workspace outlive this.
  Displacement(const float* values, std::int64_t size, Workspace& workspace, DisplacementForm form,
               Anchor anchor, double keep = 1);

  /// Moves the anchor to the current parameters (or to those of the window that now ends).
  void open_window();
  /// TD is zero everywhere and both anchors are the current parameters.
  void reset();
  /// For the passes, which add every applied update to it, or with `proposed` every one of them.
  DisplacementView view() const;

  DisplacementForm form() const { return form_; }
  /// With `sum`: TD. With `difference`: the parameters at the anchor.
  const Memory& buffer() const { return buffer_; }
  /// With `previous`: the part of TD that was applied in this window (`sum`), or the parameters when
  /// this window opened (`difference`). Nothing with `window`.
  const Memory& recent() const { return recent_; }

  void remember(Archive& archive);

 private:
  void begin(const Memory& buffer);

  const float* values_;
  Workspace* workspace_;
  DisplacementForm form_;
  float keep_;
  Memory buffer_;
  Memory recent_;
};

}  // namespace gala
