#include "gala/view/batch.h"

#include <ATen/ATen.h>

#include "gala/base/error.h"

namespace gala {

at::Tensor checked_images(const at::Tensor& images) {
  if (images.dim() != 4 || images.size(1) != 3 || images.scalar_type() != at::kFloat ||
      images.size(2) < 1 || images.size(3) < 1) {
    fail("a view takes images [N, 3, H, W] in float32, not {} [{}]", toString(images.scalar_type()),
         fmt::join(images.sizes(), ", "));
  }
  return images.detach().contiguous(images.suggest_memory_format());
}

PixelLayout pixel_layout(const at::Tensor& dense) {
  const bool channels_last = dense.suggest_memory_format() == at::MemoryFormat::ChannelsLast;
  return channels_last ? PixelLayout{1, dense.size(1)} : PixelLayout{dense.size(1), 1};
}

}  // namespace gala
