#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

namespace gala {

/// Images as views take them, without gradient and dense in their memory format. Throws Error unless
/// they are [N, 3, H, W] in float32 and have pixels.
at::Tensor checked_images(const at::Tensor& images);

/// How the numbers of dense images lie: `planes` one after the other, in which a pixel is `step` numbers.
struct PixelLayout {
  std::int64_t planes, step;
};
PixelLayout pixel_layout(const at::Tensor& dense);

}  // namespace gala
