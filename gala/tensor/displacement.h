#pragma once
#include <ATen/core/Tensor.h>

#include <array>
#include <string_view>

#include "gala/tensor/arena.h"

namespace gala {

/// How TD is kept.
enum class DisplacementForm {
  kSum,        ///< its own float32 sum of applied updates (first form of Eq. 4)
  kDifference  ///< θ - anchor; steps too small to change a float32 parameter are lost
};
constexpr std::array<std::string_view, 2> enum_names(DisplacementForm) {
  return {"sum", "difference"};
}

/// Since when TD counts.
enum class Anchor {
  kWindow,   ///< since the current window opened
  kPrevious  ///< since the window before it opened
};
constexpr std::array<std::string_view, 2> enum_names(Anchor) {
  return {"window", "previous"};
}

/// The displacement TD of every parameter since an anchor (Eq. 4 and 7), in the arena's layout.
///
/// The sum is the default because an opening step of 5e-8 does not move a float32 scale of 1: as a
/// difference, norm layers would stay at TD = 0 and win every choice.
class Displacement {
 public:
  Displacement(const ParameterArena& arena, DisplacementForm form, Anchor anchor);

  /// Moves the anchor to the current parameters (or to those of the window that now ends).
  void open_window(const ParameterArena& arena);
  /// TD is zero everywhere and both anchors are the current parameters.
  void reset(const ParameterArena& arena);

  DisplacementForm form() const { return form_; }
  /// With `sum`: TD. With `difference`: the parameters at the anchor.
  const at::Tensor& buffer() const { return buffer_; }
  /// With `previous`: the part of TD that was applied in this window (`sum`), or the parameters when
  /// this window opened (`difference`). Undefined with `window`.
  const at::Tensor& recent() const { return recent_; }
  /// Adds an applied update to one tensor's TD; for `difference` there is nothing to do.
  void add(const ParameterArena& arena, std::size_t tensor, const at::Tensor& delta) const;
  /// TD of one tensor.
  at::Tensor shift(const ParameterArena& arena, std::size_t tensor) const;

  void save(const ParameterArena& arena, State& state) const;
  void load(const ParameterArena& arena, const State& state);

 private:
  DisplacementForm form_;
  at::Tensor buffer_;
  at::Tensor recent_;
};

}  // namespace gala
