#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "gala/base/registry.h"
#include "gala/model/preprocessing.h"

namespace gala {

/// A batch seen otherwise: what a network is shown beside the images themselves. Drawing and looking
/// are apart, so that looks can be captured once and replayed with fresh draws.
class View {
 public:
  static constexpr std::string_view kKind = "view";
  /// The most looks that can be drawn at once.
  static constexpr int kMostLooks = 256;
  virtual ~View() = default;

  /// Called once before anything else: where images lie and how they were preprocessed.
  virtual void attach(at::Device device, const Preprocessing& preprocessing);
  /// Draws what `count` looks at a batch need; `number` tells the step. It depends on seed and number
  /// alone. Only host memory is written, and nothing is waited for: the caller waited for the looks
  /// of the draw before.
  virtual void draw(std::uint64_t seed, std::int64_t number, int count = 1) = 0;
  /// Queues the look `which` (0 .. count-1 of the last draw) at images [N, 3, H, W] in float32,
  /// preprocessed. The result has their shape, memory format and preprocessing, and no gradient. On a
  /// GPU it can be captured: the queued work itself fetches what was drawn, and a replay sees the last
  /// draw. Shapes may differ from call to call.
  virtual at::Tensor look(const at::Tensor& images, int which = 0) = 0;
};

std::span<const RegistryEntry<View>> view_registry();
std::unique_ptr<View> make_view(const Spec& spec);

}  // namespace gala
